"""What the rules look at: every page's text with its executed notebook, and how a rule reports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bookkit import notebook as notebooks
from bookkit import text as texts
from bookkit.book import Book, Chapter
from bookkit.errors import BookError
from bookkit.text import Cell

Output = Mapping[str, Any]

FENCED = re.compile(
    r"^ {0,3}(?P<fence>~{3,})[^\n]*\n.*?(?:^ {0,3}(?P=fence)~*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
INLINE_CODE = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
STYLE_SHEET = re.compile(r"<style.*?</style>", re.DOTALL)
BETWEEN_TAGS = re.compile(r">([^<]+)<")
SVG = "image/svg+xml"


@dataclass(frozen=True)
class Problem:
    """One fault: the file (relative to the book), its 1-based line, the rule's name, what is wrong, the
    way out.
    """

    path: str
    line: int | None
    rule: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.rule}: {self.message}" + (f"\n{self.hint}" if self.hint else "")


@dataclass(frozen=True)
class Executed:
    """A code cell as its notebook holds it; `line` is that of the same cell in the text, None when it
    changed.
    """

    number: int
    source: str
    line: int | None
    options: Mapping[str, Any]
    tags: tuple[str, ...]
    count: int | None
    outputs: tuple[Output, ...]

    @property
    def label(self) -> str:
        """The cell's `#| label:`, or ""."""
        return str(self.options.get("label", ""))

    @property
    def is_shown(self) -> bool:
        """Whether the page shows the outputs."""
        return self.options.get("include") is not False and self.options.get("output") is not False


@dataclass(frozen=True)
class Page:
    """One document: its text, and its notebook when it has one."""

    chapter: Chapter
    text: texts.Text
    notebook: notebooks.Notebook | None = None

    @property
    def markdown(self) -> tuple[Cell, ...]:
        """The Markdown cells."""
        return tuple(cell for cell in self.text.cells if cell.kind == "markdown")

    @property
    def code(self) -> tuple[Cell, ...]:
        """The code cells as the text has them."""
        return tuple(cell for cell in self.text.cells if cell.kind == "code")

    @cached_property
    def executed(self) -> tuple[Executed, ...]:
        """The code cells as the notebook has them; none without a notebook."""
        lines: dict[str, list[int]] = {}
        for cell in reversed(self.code):
            lines.setdefault(cell.source, []).append(cell.line)
        cells = enumerate(self.notebook["cells"] if self.notebook else [], start=1)
        return tuple(_executed(number, cell, lines) for number, cell in cells if cell["cell_type"] == "code")

    def problem(self, line: int | None, message: str, hint: str = "") -> Problem:
        """A fault in this page's text."""
        return Problem(self.chapter.source, line, "", message, hint)

    def output_problem(self, cell: Executed, message: str, hint: str = "") -> Problem:
        """A fault in what a cell shows, told at the cell's line in the text."""
        return self.problem(cell.line, f"cell {cell.number}: {message}", hint)


@dataclass(frozen=True)
class Manuscript:
    """The whole book. `faults` are the pages and notebooks that cannot be read at all."""

    book: Book
    pages: tuple[Page, ...]
    faults: tuple[Problem, ...]

    @property
    def executed(self) -> tuple[Page, ...]:
        """The pages that have a notebook."""
        return tuple(page for page in self.pages if page.notebook is not None)


Rule = Callable[[Manuscript], Iterator[Problem]]


def gather(book: Book) -> Manuscript:
    """Read everything once."""
    pages: list[Page] = []
    faults: list[Problem] = []
    for chapter in book.pages:
        try:
            page_text = texts.read(chapter.path)
            pages.append(Page(chapter, page_text))
            if chapter.is_executed and chapter.notebook.exists():
                pages[-1] = Page(chapter, page_text, notebooks.load(chapter.notebook))
        except BookError as error:
            faults.append(from_error(book, error))
    return Manuscript(book, tuple(pages), tuple(faults))


def from_error(book: Book, error: BookError) -> Problem:
    """A refusal of another part of the tool, as a problem."""
    path = str(error.path or "")
    root = book.root.as_posix() + "/"
    message = f"cell {error.cell}: {error.message}" if error.cell is not None else error.message
    return Problem(path.replace("\\", "/").removeprefix(root), error.line, "", message, error.hint or "")


def _executed(number: int, cell: Mapping[str, Any], lines: Mapping[str, list[int]]) -> Executed:
    waiting = lines.get(cell["source"], [])
    return Executed(
        number=number,
        source=cell["source"],
        line=waiting.pop() if waiting else None,
        options=_options(cell["source"]),
        tags=tuple(cell.get("metadata", {}).get("tags", [])),
        count=cell.get("execution_count"),
        outputs=tuple(cell.get("outputs", [])),
    )


def _options(source: str) -> Mapping[str, Any]:
    """The `#|` options of a notebook's cell; unreadable ones, which the text's own rule reports, count as
    none.
    """
    options, _ = texts.split_options(source)
    try:
        return texts.yaml_mapping(options, Path(), 1, "options") if options else {}
    except BookError:
        return {}


def blank(pattern: re.Pattern[str], source: str) -> str:
    """The text with each match replaced by as many spaces, so that every place keeps its line and column."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def prose(source: str) -> str:
    """A Markdown cell without its `~~~` blocks and comments; inline code stays."""
    return blank(COMMENT, blank(FENCED, source))


def plain_prose(source: str) -> str:
    """A Markdown cell without any code."""
    return blank(INLINE_CODE, prose(source))


def line_of(cell: Cell, place: int) -> int:
    """The line in the file of a place in a cell's source."""
    return cell.line + cell.source.count("\n", 0, place)


def parsed(cell: Cell) -> ast.Module:
    """A code cell's syntax; empty for one with a magic, of which nothing can be told."""
    try:
        return ast.parse(cell.code)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def line_in_code(cell: Cell, node: ast.expr) -> int:
    """The line in the file of an expression of a code cell."""
    return cell.line + cell.source.count("\n") - cell.code.count("\n") + node.lineno - 1


def option_line(cell: Cell, key: str) -> int:
    """The line in the file of a cell's `#|` option."""
    for offset, line in enumerate(cell.source.split("\n")):
        if re.match(rf"#\|\s*{re.escape(key)}\s*:", line):
            return cell.line + offset
    return cell.line


def outputs_of(manuscript: Manuscript) -> Iterator[tuple[Page, Executed, Output]]:
    """Every output of the book with its page and cell, in reading order."""
    for page in manuscript.executed:
        for cell in page.executed:
            yield from ((page, cell, output) for output in cell.outputs)


def texts_of(output: Output) -> Iterator[str]:
    """Everything in an output that a reader can read."""
    if output["output_type"] == "stream":
        yield str(output.get("text", ""))
    elif output["output_type"] == "error":
        yield "\n".join(str(line) for line in output.get("traceback", []))
        yield f"{output.get('ename')}: {output.get('evalue')}"
    for kind, value in output.get("data", {}).items():
        if kind == SVG:
            yield svg_text(svg_of(output))
        elif isinstance(value, str) and kind.startswith(("text/", "application/json")):
            yield value


def svg_of(output: Output) -> str:
    """The picture that an output shows, or ""."""
    picture = output.get("data", {}).get(SVG)
    return picture if isinstance(picture, str) else ""


def svg_text(svg: str) -> str:
    """The words of a picture: its texts, and the comments in which a plot keeps the text it drew as
    outlines.
    """
    svg = STYLE_SHEET.sub("", svg)
    drawn = [comment[4:-3] for comment in COMMENT.findall(svg)]
    written = BETWEEN_TAGS.findall(COMMENT.sub("", svg))
    return " ".join(" ".join([*drawn, *written]).split())


def captions(cell: Cell) -> Iterator[tuple[str, str]]:
    """The options of a cell that a reader reads: (key, text)."""
    for key in ("fig-cap", "fig-alt", "tbl-cap", "lst-cap", "fig-subcap", "code-summary"):
        value = cell.options.get(key)
        values: Sequence[Any] = value if isinstance(value, list) else [value]
        yield from ((key, each) for each in values if isinstance(each, str))
