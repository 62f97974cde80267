"""The book as `_quarto.yml` and the headers of its chapters describe it."""

from __future__ import annotations

import difflib
import keyword
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bookkit import text
from bookkit.errors import BookError
from bookkit.files import read_text

CONFIG = "_quarto.yml"
DEFAULT_TIMEOUT = 120  # seconds a cell may take
HEADER_KEYS = {"module", "requires", "data", "numbers", "timeout"}
STEM = re.compile(r"^(?:(\d+)-)?(.+)$")


@dataclass(frozen=True)
class Chapter:
    """One document of the book.

    `path` is its text (.md); `number` the digits its file name starts with, or None; `name` the rest of the
    file name; `part` the part it stands in ("" before the first); `module` the module its saved cells go to
    (None for a solution and for a page that is not executed). The other fields come from the header's
    `bookkit:` key: packages it `requires`, `data` files its outputs depend on (relative to the repository),
    `numbers` that its prose may tell without printing them, seconds a cell may take (`timeout`).
    """

    root: Path
    path: Path
    number: str | None
    name: str
    part: str
    module: str | None
    header: dict[str, Any]
    requires: tuple[str, ...]
    data: tuple[str, ...]
    numbers: tuple[str, ...]
    timeout: int
    is_solution: bool
    is_executed: bool
    package: str

    @property
    def notebook(self) -> Path:
        """The executed notebook beside the text."""
        return self.path.with_suffix(".ipynb")

    @property
    def module_path(self) -> Path | None:
        """The generated module that the chapter's saved cells make, or None."""
        return None if self.module is None else self.root / self.package / f"{self.module}.py"

    @property
    def source(self) -> str:
        """The text's path in the repository, with forward slashes."""
        return self.path.relative_to(self.root).as_posix()

    @property
    def title(self) -> str:
        """How messages call the chapter: ``02-tools``, ``solutions/02-tools``."""
        return f"solutions/{self.path.stem}" if self.is_solution else self.path.stem


@dataclass(frozen=True)
class Book:
    """The book: `pages` are its documents in reading order; `missing` those listed that do not exist."""

    root: Path
    title: str
    subtitle: str
    pages: tuple[Chapter, ...]
    bibliography: Path | None
    package: str
    config: dict[str, Any]
    missing: tuple[str, ...] = ()

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """The documents that are executed, solutions included, in reading order."""
        return tuple(page for page in self.pages if page.is_executed)

    def select(self, names: Sequence[str]) -> tuple[Chapter, ...]:
        """The chapters called `names` in reading order; all of them when `names` is empty.

        A chapter answers to its name, its number, both, or a path to its text or notebook. Raises BookError
        for a name that none answers to, and, when all are asked for, for a listed chapter that does not
        exist.
        """
        if not names:
            self._refuse_missing()
            return self.chapters
        wanted = {self.find(name).path for name in names}
        return tuple(chapter for chapter in self.chapters if chapter.path in wanted)

    def find(self, name: str) -> Chapter:
        """The one chapter that answers to `name`; two of one number answer to their names only."""
        key = _key(name)
        found = self._at(name) or [chapter for chapter in self.chapters if key in _answers_to(chapter)]
        if not found:
            raise BookError(f"no chapter is called {name!r}", hint=self._suggest(key))
        if len(found) > 1:
            titles = " or ".join(chapter.title for chapter in found)
            raise BookError(f"several chapters are called {name!r}", hint=f"Say which: {titles}.")
        return found[0]

    def _at(self, name: str) -> list[Chapter]:
        """The chapter whose text or notebook `name` is a path to, as seen from the current folder."""
        path = Path(os.path.abspath(name))
        return [chapter for chapter in self.chapters if path in (chapter.path, chapter.notebook)]

    def _suggest(self, key: str) -> str:
        known = sorted({answer for chapter in self.chapters for answer in _answers_to(chapter)})
        close = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
        if close:
            return "Did you mean " + " or ".join(close) + "?"
        return "The chapters are: " + ", ".join(chapter.title for chapter in self.chapters) + "."

    def _refuse_missing(self) -> None:
        if self.missing:
            raise BookError(
                f"lists {', '.join(self.missing)}, which does not exist",
                path=self.root / CONFIG,
                hint="Write the text, or take the line out of the list.",
            )


def find_root(start: Path) -> Path:
    """The nearest folder, from `start` upwards, that holds `_quarto.yml`."""
    for folder in (start, *start.parents):
        if (folder / CONFIG).is_file():
            return folder
    raise BookError(
        f"no {CONFIG} here or in a folder above",
        path=start,
        hint="Run bookkit inside the book's repository, or name its folder: bookkit --root FOLDER …",
    )


def load(root: Path) -> Book:
    """Read the book's plan. Raises BookError for a file that is malformed, naming it and the line."""
    path = root / CONFIG
    config = text.yaml_mapping(read_text(path), path, 1, CONFIG)
    book = config.get("book")
    if not isinstance(book, dict) or not isinstance(book.get("chapters"), list):
        raise BookError("has no list `book: chapters:`", path=path, hint="List the chapters there, in order.")
    package = _package(config, path)
    listed = list(listed_documents(book["chapters"], "", path))
    listed += listed_documents(book.get("appendices") or [], "", path)
    _refuse_repeated(root, listed)
    pages = [_page(root, name, part, package) for name, part in listed if _text_path(root, name).is_file()]
    missing = [_text_path(root, name).relative_to(root).as_posix() for name, _ in listed]
    return Book(
        root=root,
        title=str(book.get("title", "")),
        subtitle=str(book.get("subtitle", "")),
        pages=tuple(pages),
        bibliography=_bibliography(root, config),
        package=package,
        config=config,
        missing=tuple(name for name in missing if not (root / name).is_file()),
    )


def _package(config: dict[str, Any], path: Path) -> str:
    own = config.get("bookkit", {})
    package = own.get("package") if isinstance(own, dict) else None
    if not isinstance(package, str) or not package.isidentifier() or keyword.iskeyword(package):
        raise BookError(
            "does not say which package the saved cells make", path=path, hint="Add: bookkit: {package: NAME}"
        )
    return package


def _bibliography(root: Path, config: dict[str, Any]) -> Path | None:
    name = config.get("bibliography")
    if name is not None and not isinstance(name, str):
        raise BookError(
            f"`bibliography:` holds {name!r}",
            path=root / CONFIG,
            hint="It names one file: bibliography: references.bib",
        )
    return root / name if name else None


def listed_documents(entries: Any, part: str, path: Path) -> Iterator[tuple[str, str]]:
    """Every listed document with the part it stands in."""
    if not isinstance(entries, list):
        raise BookError(f"lists the documents {entries!r}", path=path, hint="Write a list: `- ` and a path.")
    for entry in entries:
        if isinstance(entry, str):
            _refuse_path(entry, path)
            yield entry, part
        elif isinstance(entry, dict) and isinstance(entry.get("part"), str):
            yield from listed_documents(entry.get("chapters") or [], entry["part"], path)
        else:
            raise BookError(
                f"`book: chapters:` holds {entry!r}",
                path=path,
                hint="An entry is a path, or `part:` with its own `chapters:`.",
            )


def _refuse_path(entry: str, path: Path) -> None:
    parts = PurePosixPath(entry).parts
    if not entry.endswith((".md", ".ipynb")) or entry.startswith("/") or ".." in parts:
        raise BookError(
            f"`book: chapters:` holds {entry!r}",
            path=path,
            hint="A path ends in .ipynb or .md, and is relative to the repository and inside it.",
        )


def _refuse_repeated(root: Path, listed: Sequence[tuple[str, str]]) -> None:
    """A chapter listed twice would save its cells twice."""
    seen: set[Path] = set()
    for name, _ in listed:
        path = _text_path(root, name)
        if path in seen:
            raise BookError(
                f"lists {path.relative_to(root).as_posix()} twice",
                path=root / CONFIG,
                hint="Take one of the two lines out.",
            )
        seen.add(path)


def _text_path(root: Path, name: str) -> Path:
    return (root / name).with_suffix(".md")


def _page(root: Path, name: str, part: str, package: str) -> Chapter:
    path = _text_path(root, name)
    header = text.read_header(path)
    own = _own_header(header, path)
    number, stem = STEM.match(path.stem).groups()  # type: ignore[union-attr]  # `.+` matches every stem
    is_executed = name.endswith(".ipynb")
    is_solution = path.parent.name == "solutions"
    has_module = is_executed and not is_solution
    return Chapter(
        root=root,
        path=path,
        number=number,
        name=stem,
        part=part,
        module=own.get("module", stem.replace("-", "_")) if has_module else None,
        header=header,
        requires=_strings(own, "requires", path),
        data=_strings(own, "data", path),
        numbers=_strings(own, "numbers", path),
        timeout=_timeout(own, path),
        is_solution=is_solution,
        is_executed=is_executed,
        package=package,
    )


def _own_header(header: dict[str, Any], path: Path) -> dict[str, Any]:
    """The header's `bookkit:` mapping, refused when it holds a key that nothing reads."""
    own = header.get("bookkit") or {}
    if not isinstance(own, dict):
        raise BookError("header: `bookkit:` must hold `key: value` lines", path=path, line=1)
    for key in own:
        if key not in HEADER_KEYS:
            raise BookError(
                f"header: `bookkit:` knows no key {key!r}",
                path=path,
                line=1,
                hint=f"It knows: {', '.join(sorted(HEADER_KEYS))}.",
            )
    module = own.get("module", "module")
    if not text.is_module_name(module):
        raise BookError(f"header: {module!r} is no module name", path=path, line=1)
    return own


def _strings(own: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    value = own.get(key, [])
    if not isinstance(value, list):
        raise BookError(
            f"header: `{key}:` must be a list", path=path, line=1, hint=f"Write {key}: [one, two]."
        )
    return tuple(str(item) for item in value)


def _timeout(own: dict[str, Any], path: Path) -> int:
    value = own.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise BookError("header: `timeout:` must be a whole number of seconds", path=path, line=1)
    return value


def _key(name: str) -> str:
    """A chapter's name as typed, without folder `chapters/`, `./` and suffix."""
    key = Path(name).as_posix().removesuffix(".md").removesuffix(".ipynb")
    return key.rsplit("chapters/", 1)[-1]


def _answers_to(chapter: Chapter) -> set[str]:
    number, stem = chapter.number, chapter.path.stem
    names = {stem, chapter.name} | ({number, number.lstrip("0")} if number else set())
    return {f"solutions/{name}" for name in names} if chapter.is_solution else names
