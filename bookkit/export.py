"""Every labelled figure of the executed notebooks as a file of its own, with an index.

`figures/gate-two-runs.svg` is the output of the cell labelled `fig-gate-two-runs`; `figures/index.json` says
of each label which file, chapter, caption and alt text belong to it. A file is replaced or removed only if
the index lists it, so that a picture somebody put there by hand stays.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookkit import files, notebook, text
from bookkit.book import Book, Chapter
from bookkit.errors import BookError

FOLDER = "figures"
INDEX = "index.json"
PREFIX = "fig-"
SVG = "image/svg+xml"
NAME = re.compile(r"fig-[\w.-]+", re.ASCII)
Index = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Picture:
    """One labelled SVG output: `label` is the cell's, with -2, -3 … for a cell's further outputs."""

    label: str
    chapter: str
    caption: str
    alt: str
    svg: str

    @property
    def file(self) -> str:
        """The file's name in `figures/`."""
        return f"{self.label.removeprefix(PREFIX)}.svg"

    @property
    def entry(self) -> dict[str, str]:
        """What the index says of it."""
        return {"file": self.file, "chapter": self.chapter, "caption": self.caption, "alt": self.alt}


def run(book: Book, labels: Sequence[str] | None = None, check: bool = False) -> list[str]:
    """Export the figures called `labels` (all without any); return what changed, or would (`check`).

    A label may be given without `fig-`. The figures of a chapter that has no notebook at the moment stay
    as they are. Raises BookError for a label that no executed cell has, or two have, and for a file in the
    way that was not exported by this tool. The result holds paths relative to the book.
    """
    folder = book.root / FOLDER
    old = read_index(book)
    pictures = _by_label(list(pictures_of(book)))
    chosen = [pictures[label] for label in _known(labels, pictures)] if labels else list(pictures.values())
    kept = old if labels else _waiting(book, old)
    index = _ordered(kept | {picture.label: picture.entry for picture in chosen}, pictures)
    dropped = _dropped(folder, old, index)
    wanted = {folder / INDEX: _index_text(index)} | {folder / picture.file: picture.svg for picture in chosen}
    changed = {path: content for path, content in wanted.items() if _differs(path, content)}
    _refuse_foreign(folder, old, changed)
    if not check:
        _apply(dropped, changed)
    return sorted(path.relative_to(book.root).as_posix() for path in (*dropped, *changed))


def pictures_of(book: Book) -> Iterator[Picture]:
    """Every labelled figure of the notebooks that exist, in reading order."""
    for chapter in book.chapters:
        if chapter.notebook.exists():
            yield from _pictures(chapter, notebook.load(chapter.notebook))


def read_index(book: Book) -> dict[str, dict[str, str]]:
    """Label → entry as the last export wrote it; empty before the first. Raises BookError for a broken
    one.
    """
    path = book.root / FOLDER / INDEX
    if not path.exists():
        return {}
    try:
        index = json.loads(files.read_text(path))
        return {label: {key: str(value) for key, value in entry.items()} for label, entry in index.items()}
    except (ValueError, AttributeError) as error:
        raise BookError(
            f"is not the index of figures: {error}",
            path=path,
            hint="Restore it from version control, or delete it together with the figures, and build again.",
        ) from error


def _pictures(chapter: Chapter, executed: notebook.Notebook) -> Iterator[Picture]:
    for number, cell in enumerate(executed["cells"], start=1):
        if cell["cell_type"] == "code" and f"label: {PREFIX}" in cell["source"].replace('"', "").replace(
            "'", ""
        ):
            yield from _pictures_of_cell(chapter, cell, number)


def _pictures_of_cell(chapter: Chapter, cell: Mapping[str, Any], number: int) -> Iterator[Picture]:
    options = text.yaml_mapping(
        text.split_options(cell["source"])[0], chapter.notebook, 1, "the `#|` options", number
    )
    label = str(options.get("label", ""))
    drawn = [output["data"][SVG] for output in cell["outputs"] if SVG in output.get("data", {})]
    if not label.startswith(PREFIX):
        return
    if not NAME.fullmatch(label):
        raise BookError(
            f"the label {label} cannot be the name of a file",
            path=chapter.source,
            cell=number,
            hint="Use letters, digits, dots and dashes only.",
        )
    for place, svg in enumerate(drawn, start=1):
        name = label if place == 1 else f"{label}-{place}"
        caption, alt = (str(options.get(key, "")) for key in ("fig-cap", "fig-alt"))
        yield Picture(name, chapter.source, caption, alt, svg.rstrip("\n") + "\n")


def _by_label(pictures: Sequence[Picture]) -> dict[str, Picture]:
    found: dict[str, Picture] = {}
    for picture in pictures:
        if picture.label in found:
            raise BookError(
                f"the label {picture.label} belongs to a figure of {found[picture.label].chapter} already",
                path=picture.chapter,
                hint="Give one of the two another label.",
            )
        found[picture.label] = picture
    return found


def _known(labels: Sequence[str], pictures: Mapping[str, Picture]) -> list[str]:
    """The labels with their prefix. Raises BookError for one that no figure has."""
    wanted = [label if label.startswith(PREFIX) else PREFIX + label for label in labels]
    for label in wanted:
        if label not in pictures:
            close = difflib.get_close_matches(label, pictures, n=3, cutoff=0.5)
            raise BookError(f"no executed cell has the label {label!r}", hint=_suggestion(close, pictures))
    return wanted


def _suggestion(close: Sequence[str], pictures: Mapping[str, Picture]) -> str:
    if close:
        return "Did you mean " + " or ".join(close) + "?"
    if pictures:
        return "The labels are: " + ", ".join(pictures) + "."
    return "No notebook holds a labelled figure yet: run `bookkit execute` first."


def _waiting(book: Book, old: Index) -> dict[str, dict[str, str]]:
    """The entries of chapters that are in the book and have no notebook at the moment."""
    waiting = {chapter.source for chapter in book.chapters if not chapter.notebook.exists()}
    return {label: dict(entry) for label, entry in old.items() if entry.get("chapter") in waiting}


def _dropped(folder: Path, old: Index, new: Index) -> list[Path]:
    """Files that an earlier export wrote for labels that are gone."""
    before, after = ({Path(entry.get("file", "")).name for entry in index.values()} for index in (old, new))
    gone = before - after - {"", INDEX}
    return [folder / name for name in sorted(gone) if (folder / name).is_file()]


def _ordered(
    index: Mapping[str, dict[str, str]], pictures: Mapping[str, Picture]
) -> dict[str, dict[str, str]]:
    """The entries in reading order; those whose notebook is missing come last."""
    order = {label: place for place, label in enumerate(pictures)}
    return dict(sorted(index.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def _index_text(index: Index) -> str:
    return json.dumps(index, indent=1, ensure_ascii=False) + "\n"


def _differs(path: Path, content: str) -> bool:
    return not path.exists() or path.read_bytes() != content.encode("utf-8")


def _refuse_foreign(folder: Path, old: Index, changed: Iterable[Path]) -> None:
    """Nothing that this tool did not write is ever replaced."""
    own = {entry.get("file") for entry in old.values()} | {INDEX}
    for path in changed:
        if path.exists() and path.name not in own:
            if not (folder / INDEX).exists():
                raise BookError(
                    f"is missing: nothing says whether {path.name} was exported or put there by hand",
                    path=f"{folder.name}/{INDEX}",
                    hint="Restore it from version control; or delete the pictures, and export again.",
                )
            raise BookError(
                "is in the way of a figure, and was not exported by bookkit",
                path=f"{folder.name}/{path.name}",
                hint="Move it elsewhere, or give the cell another label.",
            )


def _apply(dropped: Sequence[Path], changed: Mapping[Path, str]) -> None:
    """An interrupted export leaves only files that the index lists, which the next one may replace or remove:
    files that go are removed before the index forgets them, new ones are written after it names them.
    """
    for path in dropped:
        path.unlink(missing_ok=True)
    for path, content in changed.items():
        files.write_text(path, content)
