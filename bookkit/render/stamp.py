"""What the output folder was made from: a digest of every input, and the files that each format wrote.

While a format is written, its stamp lists old files and new ones, and no inputs: a render that was killed
leaves every file whole, the format not fresh, and no file that the next render does not know for its own.
Nothing heavy is imported here: a build asks this module first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bookkit import files
from bookkit.book import CONFIG, Book
from bookkit.errors import BookError

STAMP = ".bookkit"
PICTURES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp"}
CODE = Path(__file__).parent
THEME = CODE.parent / "theme"


def output_folder(book: Book) -> Path:
    """Where pages go: `output-dir` of `_quarto.yml`, else `_book`. Raises BookError outside the book."""
    project = book.config.get("project")
    name = project.get("output-dir", "_book") if isinstance(project, dict) else "_book"
    folder = (book.root / str(name)).resolve()
    if folder == book.root.resolve() or not folder.is_relative_to(book.root.resolve()):
        raise BookError(f"output-dir: {name} is not a folder inside the book", path=book.root / CONFIG)
    return folder


def inputs(book: Book) -> str:
    """A digest of everything that pages are made from: notebooks, texts, sources, theme, this code."""
    state = hashlib.sha256()
    for path in sorted(set(_input_paths(book))):
        name = path.relative_to(book.root) if path.is_relative_to(book.root) else path.name
        state.update(f"{Path(name).as_posix()}\0".encode())
        state.update(hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b"missing")
    return state.hexdigest()


def _input_paths(book: Book) -> Iterator[Path]:
    yield book.root / CONFIG
    if book.bibliography:
        yield book.bibliography
    for page in book.pages:
        yield page.notebook if page.is_executed else page.path
    for folder in {book.root / "figures", *(page.path.parent for page in book.pages)} - {book.root}:
        yield from (path for path in folder.rglob("*") if path.suffix in PICTURES)
    yield from (path for path in THEME.iterdir() if path.is_file())
    yield from CODE.glob("*.py")


def is_fresh(book: Book, kind: str = "html") -> bool:
    """Whether the format was rendered from what is there now, and all its files still are."""
    folder = output_folder(book)
    record = _read(folder).get(kind)
    if record is None or record.get("inputs") != inputs(book):
        return False
    sizes: Mapping[str, int] = record.get("files", {})
    return bool(sizes) and all(_size(folder / name) == size for name, size in sizes.items())


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None


def publish(book: Book, kind: str, digest: str, contents: Mapping[str, bytes]) -> list[Path]:
    """Bring a format's files into the output folder, each in one step; return the paths, pages in order.

    Files that the format wrote last time and does not any more are removed, unless another format has them;
    nobody else's are touched. `digest` is what `inputs` gave before the files were made.
    """
    folder = output_folder(book)
    records = _read(folder)
    before = records.pop(kind, {}).get("files", {})
    sizes = {name: len(content) for name, content in sorted(contents.items())}
    _write(folder, records | {kind: {"inputs": "", "files": before | sizes}})
    for name, content in contents.items():
        files.write_bytes(folder / name, content)
    others = {name for record in records.values() for name in record.get("files", {})}
    for name in set(before) - set(contents) - others:
        _remove(folder, name)
    _write(folder, records | {kind: {"inputs": digest, "files": sizes}})
    return [folder / name for name in contents]


def record(book: Book, kind: str, digest: str, names: Mapping[str, int]) -> None:
    """Note files that another program wrote into the output folder."""
    folder = output_folder(book)
    _write(folder, _read(folder) | {kind: {"inputs": digest, "files": dict(names)}})


def _remove(folder: Path, name: str) -> None:
    """Delete a file that the stamp lists. The stamp is a file like any other: it may name nothing outside."""
    path = (folder / name).resolve()
    if path.is_relative_to(folder):
        path.unlink(missing_ok=True)


def _read(folder: Path) -> dict[str, Any]:
    """The stamp's records that can be read; of one that is damaged nothing is fresh."""
    try:
        value = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    records = value if isinstance(value, dict) else {}
    return {key: each for key, each in records.items() if _is_record(each)}


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("files", {}), dict)


def _write(folder: Path, records: Mapping[str, Any]) -> None:
    files.write_text(folder / STAMP, json.dumps(records, indent=1, sort_keys=True) + "\n")
