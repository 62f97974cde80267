"""The book's documents as Pandoc Markdown, made from the cells and outputs of its notebooks.

Pandoc reads notebooks itself, but not the way this book needs it: it drops the `#|` options and, unless told
otherwise, identifiers, citations and divs. So the cells are written out here, each picture among the outputs
as a file of its own.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from bookkit import notebook, text
from bookkit.book import Book, Chapter
from bookkit.errors import BookError
from bookkit.files import read_text

Options = Mapping[str, Any]
Output = Mapping[str, Any]

FIGURES = "figures"
TEXT_WIDTH, TEXT_HEIGHT = 597, 700  # of a printed page, in CSS pixels, with room for a caption
SVG = "image/svg+xml"
PICTURES = {SVG: "svg", "image/png": "png", "image/jpeg": "jpg"}
# What is shown of an output that comes in several forms, best first. A page of the book can show any HTML.
PREFERENCE = {
    "html": (SVG, "text/html", "text/markdown", "image/png", "image/jpeg", "text/plain"),
    "whole": (SVG, "text/markdown", "image/png", "image/jpeg", "text/plain"),
}
UNNUMBERED = re.compile(r"^#\s.*\{[^{}]*(\.unnumbered\b|(?<![\w-])-(?![\w-]))[^{}]*\}\s*$")
H1 = re.compile(r"^#\s")
PASTED = re.compile(r"(?:\]\(<?|src=[\"'])(attachment:[^\s)>\"']*)")
SVG_TAG = re.compile(r"<svg\b[^>]*>", re.DOTALL)
VIEW_BOX = re.compile(r'viewBox="[-\d.eE]+[ ,]+[-\d.eE]+[ ,]+([\d.]+)[ ,]+([\d.]+)"')
LENGTH = {name: re.compile(rf'\s{name}="([\d.]+)(pt|px)?"') for name in ("width", "height")}


@dataclass(frozen=True)
class Page:
    """A document of the book to be rendered.

    `number` is the chapter number a reader sees ("5"), None for an unnumbered page. `cells` are notebook
    cells (nbformat's dicts, sources joined); a page that is not executed is one Markdown cell.
    """

    chapter: Chapter
    number: str | None
    cells: tuple[Mapping[str, Any], ...]

    @property
    def href(self) -> str:
        """Its HTML page, relative to the site: where its text stands, with another suffix."""
        return PurePosixPath(self.chapter.source).with_suffix(".html").as_posix()

    @property
    def folder(self) -> str:
        """The folder of text and page, "" or one that ends with a slash."""
        parent = PurePosixPath(self.chapter.source).parent.as_posix()
        return "" if parent == "." else f"{parent}/"

    @property
    def notebook(self) -> str | None:
        """The notebook's path in the book, None for a page that has none."""
        source = PurePosixPath(self.chapter.source)
        return source.with_suffix(".ipynb").as_posix() if self.chapter.is_executed else None


@dataclass(frozen=True)
class Manuscript:
    """A page in Pandoc Markdown; `pictures` are files it shows, by path; `starts` the line of each cell."""

    markdown: str
    pictures: Mapping[str, bytes]
    starts: tuple[tuple[int, int], ...] = ()  # (1-based line in `markdown`, 1-based cell)


@dataclass
class _Writer:
    """Where the cells of one page are written to."""

    page: Page
    target: str  # a key of PREFERENCE
    blocks: list[str] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)

    def picture(self, name: str, output: Output) -> str:
        """Keep a picture and return its reference: `asset:` and a path from the book's root."""
        kind = _preferred(output, PREFERENCE["whole"])
        path = f"{FIGURES}/{name}.{PICTURES[kind]}"
        value = output["data"][kind]
        self.pictures[path] = value.encode() if kind == SVG else base64.b64decode(value)
        return f"asset:{path}"


def load(book: Book) -> list[Page]:
    """Every document in reading order. Raises BookError for one without its notebook.

    Chapters are numbered in reading order, as Quarto numbers them; a page whose title is `.unnumbered`, and
    the solutions, are not.
    """
    if book.missing:
        raise BookError(
            f"lists {', '.join(book.missing)}, which does not exist",
            path=book.root / "_quarto.yml",
            hint="Write the text, or take the line out of the list.",
        )
    pages: list[Page] = []
    for chapter in book.pages:
        cells = _cells(chapter)
        numbered = not chapter.is_solution and not _is_unnumbered(cells)
        number = 1 + sum(page.number is not None for page in pages)
        pages.append(Page(chapter, str(number) if numbered else None, cells))
    return pages


def _cells(chapter: Chapter) -> tuple[Mapping[str, Any], ...]:
    if chapter.is_executed and not chapter.notebook.exists():
        raise BookError(
            "has no notebook yet",
            path=chapter.source,
            hint=f"Run `bookkit execute {chapter.title}`, or `bookkit build` for everything.",
        )
    if chapter.is_executed:
        return tuple(notebook.load(chapter.notebook)["cells"])
    content = read_text(chapter.path)
    header = text.parse(content, chapter.path).header_text if content.startswith("---") else ""
    return ({"cell_type": "markdown", "source": content.removeprefix(header), "metadata": {}},)


def _is_unnumbered(cells: Sequence[Mapping[str, Any]]) -> bool:
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for line in text.outside_fences(cell["source"].splitlines()):
                if H1.match(line):
                    return bool(UNNUMBERED.match(line))
    return True


def manuscript(page: Page, target: str) -> Manuscript:
    """The page's Markdown for one target: "html" (a page) or "whole" (the book as one document)."""
    writer = _Writer(page, target)
    starts: list[tuple[int, int]] = []
    line = 1
    for number, cell in enumerate(page.cells, start=1):
        done = len(writer.blocks)
        _write_cell(writer, cell, number)
        starts.append((line, number))
        line += sum(block.count("\n") + 2 for block in writer.blocks[done:])
    return Manuscript("\n\n".join(writer.blocks) + "\n", writer.pictures, tuple(starts))


def _write_cell(writer: _Writer, cell: Mapping[str, Any], number: int) -> None:
    if cell["cell_type"] == "markdown":
        _refuse_pasted(writer.page, cell["source"], number)
        writer.blocks.append(cell["source"].strip("\n"))
        return
    if cell["cell_type"] == "raw" or "remove-cell" in cell.get("metadata", {}).get("tags", []):
        return
    source, code = text.split_options(cell["source"])
    path = writer.page.chapter.notebook
    options = text.yaml_mapping(source, path, 1, "the `#|` options", number) if source else {}
    if options.get("include") is False:
        return
    blocks = [*_code(code, options), *_outputs(writer, cell, options, number)]
    if blocks:
        writer.blocks += [":::::: {.cell}", *blocks, "::::::"]


def _refuse_pasted(page: Page, source: str, number: int) -> None:
    """A picture pasted into a notebook's cell would be lost: no text holds it."""
    if found := PASTED.search("\n".join(text.outside_fences(source.splitlines()))):
        raise BookError(
            f"the picture {found[1]} was pasted into the notebook",
            path=page.chapter.source,
            cell=number,
            hint="Save it as a file of the book, and link that.",
        )


def _code(code: str, options: Options) -> Iterator[str]:
    if options.get("echo") is False or not code.strip():
        return
    attributes = ".python .cell-code"
    if "lst-label" in options:
        caption = _attribute(str(options.get("lst-cap", "")))
        attributes = f'#{options["lst-label"]} {attributes} lst-cap="{caption}"'
    block = _fence(code.strip("\n"), attributes)
    if options.get("code-fold"):
        summary = _attribute(str(options.get("code-summary", "Code")))
        block = f'::::: {{.fold summary="{summary}"}}\n{block}\n:::::'
    yield block


def _outputs(writer: _Writer, cell: Mapping[str, Any], options: Options, number: int) -> Iterator[str]:
    if options.get("output") is False:
        return
    outputs = [output for output in cell.get("outputs", []) if _is_wanted(output, options)]
    label = str(options.get("label", ""))
    drawn = [output for output in outputs if _is_picture(output)]
    if drawn and label.startswith("fig-"):
        yield from (_output(writer, output, "", options) for output in outputs if output not in drawn)
        yield _figure(writer, drawn, label, options)
        return
    names = (f"{_slug(writer.page)}-{number}-{place}" for place in range(1, len(outputs) + 1))
    shown = [_output(writer, output, name, options) for output, name in zip(outputs, names, strict=True)]
    if label.startswith("tbl-") and shown:
        caption = str(options.get("tbl-cap", ""))
        yield "\n\n".join([f"::::: {{#{label}}}", *shown, caption, ":::::"])
        return
    yield from shown


def _is_wanted(output: Output, options: Options) -> bool:
    is_warning = output["output_type"] == "stream" and output["name"] == "stderr"
    return not (is_warning and options.get("warning") is False)


def _is_picture(output: Output) -> bool:
    return _preferred(output, PREFERENCE["whole"]) in PICTURES


def _preferred(output: Output, order: Sequence[str]) -> str:
    return next((kind for kind in order if kind in output.get("data", {})), "")


def _figure(writer: _Writer, drawn: Sequence[Output], label: str, options: Options) -> str:
    """A labelled figure; several outputs of one cell are its parts."""
    caption = str(options.get("fig-cap", ""))
    if len(drawn) == 1:
        source = writer.picture(label.removeprefix("fig-"), drawn[0])
        attributes = _picture_attributes(writer, drawn[0], str(options.get("fig-alt", "")))
        if not caption:
            return f"::::: {{#{label}}}\n![]({source}){{{attributes}}}\n:::::"
        return f"![{caption}]({source}){{#{label} {attributes}}}"
    stem = label.removeprefix("fig-")
    names = [stem, *(f"{stem}-{place}" for place in range(2, len(drawn) + 1))]
    parts = zip(
        names, drawn, _each(options, "fig-subcap", drawn), _each(options, "fig-alt", drawn), strict=True
    )
    shown = [
        f"![{part}]({writer.picture(name, output)}){{{_picture_attributes(writer, output, alt)}}}"
        for name, output, part, alt in parts
    ]
    columns = options.get("layout-ncol", 1)
    return "\n\n".join([f"::::: {{#{label} ncol={columns}}}", *shown, caption, ":::::"])


def _each(options: Options, key: str, drawn: Sequence[Output]) -> list[str]:
    """The option's value for each picture; one text stands for all."""
    value = options.get(key, "")
    values = [str(item) for item in value] if isinstance(value, list) else [str(value)] * len(drawn)
    return (values + [""] * len(drawn))[: len(drawn)]


def _picture_attributes(writer: _Writer, output: Output, alt: str) -> str:
    attributes = [f'alt="{_attribute(alt)}"']
    size = svg_size(output["data"][SVG]) if SVG in output["data"] else None
    if size and writer.target == "html":
        attributes += [f"width={size[0]}px", f"height={size[1]}px"]
    elif size:
        attributes.append(f"width={_share(*size)}%")
    return " ".join(attributes)


def _share(width: int, height: int) -> int:
    """How much of a printed page's width a picture takes, in percent: its own size if it fits the page."""
    fitting = min(1.0, TEXT_WIDTH / width, TEXT_HEIGHT / height)
    return max(1, round(100 * fitting * width / TEXT_WIDTH))


def svg_size(svg: str) -> tuple[int, int] | None:
    """Width and height of a picture in CSS pixels, from its size or else its view box."""
    tag = SVG_TAG.search(svg)
    if tag is None:
        return None
    found = [LENGTH[name].search(tag[0]) for name in ("width", "height")]
    if found[0] and found[1]:
        pixels = [float(each[1]) * (96 / 72 if each[2] == "pt" else 1) for each in found if each]
        return round(pixels[0]), round(pixels[1])
    box = VIEW_BOX.search(tag[0])
    return (round(float(box[1])), round(float(box[2]))) if box else None


def _output(writer: _Writer, output: Output, name: str, options: Options) -> str:
    if output["output_type"] == "stream":
        return _text_output(output["text"], output["name"])
    if output["output_type"] == "error":
        return _text_output("\n".join(output["traceback"]), "error")
    kind = _preferred(output, PREFERENCE[writer.target])
    if kind in PICTURES:
        attributes = _picture_attributes(writer, output, str(options.get("fig-alt", "")))
        return f"::::: {{.output}}\n![]({writer.picture(name, output)}){{{attributes}}}\n:::::"
    if kind == "text/markdown":
        return f"::::: {{.output .markdown}}\n{output['data'][kind]}\n:::::"
    if kind == "text/html" or _has_html_table(output):
        html = _fence(output["data"]["text/html"], ".html")
        return f"::::: {{.output .html-output}}\n{html}\n:::::"
    return _text_output(output["data"].get("text/plain", ""), "result")


def _has_html_table(output: Output) -> bool:
    """Whether a table can be taken out of the HTML, for formats that show no HTML."""
    return "<table" in output["data"].get("text/html", "")


def _text_output(content: str, kind: str) -> str:
    clean = notebook.ANSI.sub("", content).rstrip("\n")
    return f"::::: {{.output .{kind}}}\n{_fence(clean, '.text')}\n:::::" if clean else ""


def _fence(content: str, attributes: str) -> str:
    """A fenced block that nothing in its content can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence} {{{attributes}}}\n{content}\n{fence}"


def _attribute(value: str) -> str:
    """A text as the value of a quoted Pandoc attribute."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _slug(page: Page) -> str:
    return PurePosixPath(page.chapter.source).with_suffix("").as_posix().replace("/", "-")
