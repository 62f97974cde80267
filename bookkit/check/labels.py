"""Rules about labels and what refers to them, in the whole book."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from bookkit import files
from bookkit.check.manuscript import (
    Manuscript,
    Page,
    Problem,
    captions,
    line_of,
    option_line,
    plain_prose,
)

PREFIXES = ("fig-", "tbl-", "lst-", "eq-", "sec-")
NAME = re.compile(r"[\w.-]+", re.ASCII)
ATTRIBUTES = re.compile(r"(?P<heading>^#+[^\n]*)?\{[^{}\n]*#(?P<id>[A-Za-z][\w:.-]*)[^{}\n]*\}", re.MULTILINE)
REFERENCE = re.compile(r"(?<![\w@\\/.])@(?P<key>[A-Za-z](?:[\w:.-]*\w)?)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
OUTSIDE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//|mailto:)", re.IGNORECASE)
BIBTEX_KEY = re.compile(r"^\s*@\w+\s*\{\s*([^,\s]+)\s*,", re.MULTILINE)


@dataclass(frozen=True)
class Label:
    """A label: its name, where it is given, and whether a code cell gives it."""

    name: str
    page: Page
    line: int
    of_cell: bool

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.page.chapter.source}:{self.line}"


def labels_have_prefixes(manuscript: Manuscript) -> Iterator[Problem]:
    """Labels start with fig-, tbl-, lst-, eq- or sec-; a chapter's figures with fig-, its name and a dash."""
    for label in labels_of(manuscript):
        allowed = PREFIXES[:3] if label.of_cell else (*PREFIXES, "refs")
        own = f"fig-{label.page.chapter.module or label.page.chapter.name}-"
        if label.of_cell and not NAME.fullmatch(label.name):
            yield label.page.problem(
                label.line,
                f"the label {label.name} cannot be the name of a file",
                "Use letters, digits, dots and dashes only.",
            )
        elif not label.name.startswith(allowed):
            yield label.page.problem(
                label.line,
                f"the label {label.name} has no prefix that makes it one",
                f"Labels of {'cells' if label.of_cell else 'Markdown'} start with {', '.join(allowed)}.",
            )
        elif label.name.startswith("fig-") and _has_module(label.page) and not label.name.startswith(own):
            yield label.page.problem(
                label.line, f"the figure {label.name} is not named after its chapter", f"Call it {own}…"
            )


def labels_are_unique(manuscript: Manuscript) -> Iterator[Problem]:
    """No label is given twice in the book: references would go to the last one, silently."""
    first: dict[str, Label] = {}
    for label in labels_of(manuscript):
        if label.name in first:
            yield label.page.problem(
                label.line, f"the label {label.name} stands at {first[label.name].place} too", "Rename one."
            )
        first.setdefault(label.name, label)


def references_resolve(manuscript: Manuscript) -> Iterator[Problem]:
    """Every @fig-, @tbl-, @lst-, @eq- and @sec- has its label, every other @key its entry in the
    bibliography.
    """
    known = {label.name for label in labels_of(manuscript)}
    cited = _bibliography(manuscript)
    for page in manuscript.pages:
        for line, key in _references(page):
            name = key[0].lower() + key[1:] if key[:1].isupper() else key
            if name.startswith(PREFIXES):
                if name not in known:
                    yield page.problem(line, f"@{key} refers to no label of the book", _nearest(name, known))
            elif key not in cited:
                yield page.problem(
                    line,
                    f"@{key} is in no bibliography",
                    _nearest(key, cited) or "Add it to the bibliography.",
                )


def links_resolve(manuscript: Manuscript) -> Iterator[Problem]:
    """A link inside the book leads to a file that exists, and to a label in it."""
    labels: dict[str, set[str]] = {}
    for label in labels_of(manuscript):
        labels.setdefault(label.page.chapter.source, set()).add(label.name)
    for page in manuscript.pages:
        for cell in page.markdown:
            visible = plain_prose(cell.source)
            for pattern in (LINK, IMAGE):
                for found in pattern.finditer(visible):
                    if message := _broken(manuscript, page, labels, found["target"]):
                        yield page.problem(line_of(cell, found.start()), message, "Correct the link.")


def labels_of(manuscript: Manuscript) -> Iterator[Label]:
    """Every label of the book, in reading order."""
    for page in manuscript.pages:
        for cell in page.text.cells:
            if cell.kind == "code" and "label" in cell.options:
                yield Label(str(cell.options["label"]), page, option_line(cell, "label"), of_cell=True)
            elif cell.kind == "markdown":
                for found in ATTRIBUTES.finditer(plain_prose(cell.source)):
                    yield Label(found["id"], page, line_of(cell, found.start("id")), of_cell=False)


def _has_module(page: Page) -> bool:
    return page.chapter.is_executed and not page.chapter.is_solution


def _references(page: Page) -> Iterator[tuple[int | None, str]]:
    """Every @key of a page's prose, captions and Markdown outputs, with its line."""
    for cell in page.text.cells:
        if cell.kind == "markdown":
            for found in REFERENCE.finditer(plain_prose(cell.source)):
                yield line_of(cell, found.start()), found["key"]
        for key, caption in captions(cell):
            yield from ((option_line(cell, key), found) for found in REFERENCE.findall(plain_prose(caption)))
    for executed in page.executed:
        for output in executed.outputs:
            shown = str(output.get("data", {}).get("text/markdown", ""))
            yield from ((executed.line, found) for found in REFERENCE.findall(plain_prose(shown)))


def _bibliography(manuscript: Manuscript) -> set[str]:
    """The keys of the bibliography; none without a file."""
    path = manuscript.book.bibliography
    return set(BIBTEX_KEY.findall(files.read_text(path))) if path and path.is_file() else set()


def _nearest(name: str, known: set[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"Did you mean @{close[0]}?" if close else ""


def _broken(manuscript: Manuscript, page: Page, labels: dict[str, set[str]], target: str) -> str:
    """What is wrong with a link's target; "" for one that leads somewhere, or out of the book."""
    if target.lower().startswith("attachment:"):
        return f"the picture {target} was pasted into a notebook, and no text holds it"
    if OUTSIDE.match(target):
        return ""
    path, _, fragment = target.partition("#")
    source = _resolved(PurePosixPath(page.chapter.source).parent, path) if path else page.chapter.source
    file = manuscript.book.root / source
    text_file = file.with_suffix(".md") if file.suffix == ".ipynb" else file
    if not text_file.exists():
        return f"the link {target} leads to no file"
    document = PurePosixPath(source).with_suffix(".md").as_posix()
    if fragment and file.suffix in (".md", ".ipynb") and fragment not in labels.get(document, set()):
        return f"the link {target} leads to no label of {document}"
    return ""


def _resolved(folder: PurePosixPath, path: str) -> str:
    """A relative path from a folder, without `.` and `..`."""
    parts: list[str] = []
    for part in (folder / path).parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
