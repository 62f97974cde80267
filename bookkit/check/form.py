"""Rules about the form of a chapter's text: what Quarto, Jupytext and pandoc read otherwise than it looks."""

from __future__ import annotations

import difflib
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Any

from bookkit import text
from bookkit.check.manuscript import Manuscript, Page, Problem, line_of, option_line, plain_prose, prose

H1 = re.compile(r"^#[ \t]+\S.*$", re.MULTILINE)
SETEXT_H1 = re.compile(r"^\S.*\n=+[ \t]*$", re.MULTILINE)
LINE = re.compile(r".*")
SECTION_ID = re.compile(r"\{[^{}]*#sec-[\w-]+[^{}]*\}\s*$")
DIV = re.compile(r"^ {0,3}(?P<colons>:{3,})[ \t]*(?P<rest>.*?)[ \t]*:*[ \t]*$")
QUARTO_CELL = re.compile(r"^ {0,3}~{3,}\s*\{(?P<language>ojs|mermaid|python)\b.*$", re.MULTILINE)
BIBLIOGRAPHY = re.compile(r"^:{3,}\s*\{[^}]*#refs\b", re.MULTILINE)
HTML_ONLY = re.compile(r"""(?:when|unless)-format=["']html""")
HEADER_TEXT = {"extension": ".md", "format_name": "markdown"}
HIDING_TAGS = re.compile(r"^(?:hide|remove)[-_](?!cell$)")
KNOWN_OPTIONS = {
    "label", "fig-cap", "fig-alt", "fig-subcap", "fig-scap", "fig-width", "fig-align", "tbl-cap",
    "tbl-subcap", "tbl-colwidths", "lst-cap", "lst-label", "echo", "include", "output", "warning",
    "code-fold", "code-summary", "code-line-numbers", "code-overflow", "layout-ncol", "layout-nrow",
    "layout", "column", "classes",
}  # fmt: skip
SWITCHES = ("echo", "include", "output")
CAPTIONED = {"fig-": ("fig-cap", "fig-alt"), "tbl-": ("tbl-cap",), "lst-": ("lst-cap",)}
IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\([^)]*\)(?:\{(?P<attributes>[^}]*)\})?")
TABLE_CAPTION = re.compile(
    r"^[ \t]*(?:Table)?:[ \t]*(?P<caption>.*?)\{[^{}\n]*#tbl-[\w-]+[^{}\n]*\}", re.MULTILINE
)


def headers_are_complete(manuscript: Manuscript) -> Iterator[Problem]:
    """The header says Jupytext Markdown (else `:::` makes it pandoc's), names a kernel, and holds no
    version.
    """
    for page in manuscript.pages:
        header = page.text.header
        if "title" in header:
            yield page.problem(
                1, "the header has a title, to which @sec- cannot refer", "Write `# Title {#sec-name}`."
            )
        if page.chapter.is_executed:
            yield from _jupyter_header(page, header.get("jupyter"))


def pages_have_one_title(manuscript: Manuscript) -> Iterator[Problem]:
    """A page opens with its one H1, which has an id: a second one would take the next chapter's number."""
    for page in manuscript.pages:
        titles = [(cell, found) for cell in page.markdown for found in _titles(cell.source)]
        if not titles:
            yield page.problem(1, "has no H1", "Open it with `# Title {#sec-name}`.")
            continue
        first, found = titles[0]
        line = line_of(first, found.start())
        if first is not page.text.cells[0] or prose(first.source)[: found.start()].strip():
            yield page.problem(line, "its H1 is not the first thing in it", "Put it on top.")
        if not SECTION_ID.search(found[0]):
            yield page.problem(line, "its H1 has no id", "Write `# Title {#sec-name}`.")
        for cell, other in titles[1:]:
            yield page.problem(line_of(cell, other.start()), "a second H1", "Use ## for sections.")
        yield from _titles_in_outputs(page)


def options_come_first(manuscript: Manuscript) -> Iterator[Problem]:
    """`#|` lines open a cell: anything above turns them into printed code."""
    for page in manuscript.pages:
        for cell in page.code:
            row = next(_late_options(cell), None)
            if row is not None:
                yield page.problem(
                    cell.line + row,
                    f"cell {cell.number}: an option below other lines, which is printed and not obeyed",
                    "Order: the `#|` options, then `# @save`, then code.",
                )


def options_are_known(manuscript: Manuscript) -> Iterator[Problem]:
    """Options are spelled right and switches hold true or false, else they do nothing and say nothing."""
    for page in manuscript.pages:
        for cell in page.code:
            for key, value in cell.options.items():
                line = option_line(cell, key)
                if key not in KNOWN_OPTIONS:
                    close = difflib.get_close_matches(key, sorted(KNOWN_OPTIONS), n=1, cutoff=0.6)
                    hint = f"Did you mean {close[0]}?" if close else "Take it out."
                    yield page.problem(line, f"cell {cell.number}: no option is called {key}", hint)
                elif key in SWITCHES and not isinstance(value, bool):
                    message = f"cell {cell.number}: {key} is {value!r}"
                    yield page.problem(line, message, "Write true or false.")


def code_is_hidden_by_options(manuscript: Manuscript) -> Iterator[Problem]:
    """Of the tags that hide, Quarto honours `remove-cell` only; a text keeps the tags of code alone."""
    for page in manuscript.pages:
        yield from _tagged_prose(page)
        for cell in page.code:
            for tag in cell.tags:
                if HIDING_TAGS.match(tag):
                    yield page.problem(
                        cell.line,
                        f"cell {cell.number}: the tag {tag} hides nothing",
                        "Use `#| echo: false`, `#| output: false` or `#| include: false`.",
                    )


def results_are_not_hidden_by_semicolons(manuscript: Manuscript) -> Iterator[Problem]:
    """A trailing `;` hides a result in a notebook and not in the build, which runs without history."""
    for page in manuscript.pages:
        for cell in page.code:
            tokens = [token for token in _tokens(cell.source) if token.string.strip()]
            code = [token for token in tokens if token.type != tokenize.COMMENT]
            if code and code[-1].string == ";":
                yield page.problem(
                    cell.line + code[-1].start[0] - 1,
                    f"cell {cell.number}: a trailing `;` hides nothing here",
                    "End the cell with a statement that returns nothing.",
                )


def divs_close_in_their_cell(manuscript: Manuscript) -> Iterator[Problem]:
    """A `:::` div opens and closes in one Markdown cell."""
    for page in manuscript.pages:
        for cell in page.markdown:
            yield from _unbalanced(page, cell)


def bibliography_is_for_html(manuscript: Manuscript) -> Iterator[Problem]:
    """`::: {#refs}` stands in an HTML-only div: in a PDF it leaves an empty chapter beside the
    bibliography.
    """
    for page in manuscript.pages:
        for cell in page.markdown:
            source = prose(cell.source)
            found = BIBLIOGRAPHY.search(source)
            if found and not HTML_ONLY.search(source[: found.start()]):
                yield page.problem(
                    line_of(cell, found.start()),
                    "`::: {#refs}` is not for HTML only",
                    'Put it inside `::: {.content-visible when-format="html"}`.',
                )


def nothing_needs_a_browser(manuscript: Manuscript) -> Iterator[Problem]:
    """No OJS, Mermaid or Quarto cell in prose: they need a browser, a network or an execution while
    rendering.
    """
    for page in manuscript.pages:
        for cell in page.markdown:
            for found in QUARTO_CELL.finditer(cell.source):
                yield page.problem(
                    line_of(cell, found.start()),
                    f"a {found['language']} cell in prose",
                    "Draw diagrams with bookkit.diagram; show code as ~~~python.",
                )


def figures_have_caption_and_alt(manuscript: Manuscript) -> Iterator[Problem]:
    """Every labelled cell has its caption, every figure and image an alt text."""
    for page in manuscript.pages:
        for cell in page.code:
            yield from _uncaptioned(page, cell)
        for cell in page.markdown:
            for found in IMAGE.finditer(plain_prose(cell.source)):
                if not found["alt"].strip() and "fig-alt=" not in (found["attributes"] or ""):
                    line = line_of(cell, found.start())
                    yield page.problem(line, "an image without alt text", "Write ![what it shows](path).")
            for found in TABLE_CAPTION.finditer(plain_prose(cell.source)):
                if not found["caption"].strip():
                    yield page.problem(line_of(cell, found.start()), "a table label without a caption")


def captions_ask(manuscript: Manuscript) -> Iterator[Problem]:
    """A figure's caption asks the question that the figure answers."""
    for page in manuscript.pages:
        for cell in page.code:
            caption = cell.options.get("fig-cap")
            if isinstance(caption, str) and caption.strip() and "?" not in caption:
                yield page.problem(
                    option_line(cell, "fig-cap"),
                    f"cell {cell.number}: the caption asks no question",
                    "Ask the one that the figure answers.",
                )


def configuration_is_safe(manuscript: Manuscript) -> Iterator[Problem]:
    """`_quarto.yml` never lets a renderer execute, and names the language."""
    config = manuscript.book.config
    execute = config.get("execute")
    if not isinstance(execute, dict) or execute.get("enabled") is not False:
        yield Problem(
            "_quarto.yml", None, "", "lets rendering execute notebooks", "Write execute: {enabled: false}."
        )
    if not isinstance(config.get("lang"), str):
        yield Problem("_quarto.yml", None, "", "names no language", "Write lang: en.")
    bibliography = manuscript.book.bibliography
    if bibliography and not bibliography.is_file():
        name = config["bibliography"]
        yield Problem("_quarto.yml", None, "", f"names {name}, which does not exist", "Write it.")


def _jupyter_header(page: Page, jupyter: Any) -> Iterator[Problem]:
    """The `jupyter:` part of an executed page's header."""
    hint = "Copy the header of another chapter."
    jupyter = jupyter if isinstance(jupyter, dict) else {}
    jupytext = jupyter.get("jupytext")
    form = jupytext.get("text_representation") if isinstance(jupytext, dict) else None
    form = form if isinstance(form, dict) else {}
    if {key: form.get(key) for key in HEADER_TEXT} != HEADER_TEXT:
        yield page.problem(1, "the header does not say that the text is Jupytext Markdown", hint)
    for key in ("format_version", "jupytext_version"):
        if key in form:
            yield page.problem(1, f"the header holds {key}, which changes with every release", "Take it out.")
    kernel = jupyter.get("kernelspec")
    if not isinstance(kernel, dict) or not kernel.get("name"):
        yield page.problem(1, "the header names no kernel", hint)


def _titles(source: str) -> list[re.Match[str]]:
    """The H1 headings of a Markdown text, in order."""
    visible = plain_prose(source)
    places = sorted(found.start() for pattern in (H1, SETEXT_H1) for found in pattern.finditer(visible))
    lines = (LINE.match(source, place) for place in places)
    return [line for line in lines if line]


def _titles_in_outputs(page: Page) -> Iterator[Problem]:
    for cell in page.executed:
        for output in cell.outputs:
            if _titles(str(output.get("data", {}).get("text/markdown", ""))):
                yield page.output_problem(cell, "its Markdown output holds an H1", "Start at ##.")


def _late_options(cell: text.Cell) -> Iterator[int]:
    """The rows of `#|` comments below the options that open the cell."""
    opening = len(cell.source.split("\n")) - len(cell.code.split("\n"))
    for token in _tokens(cell.source):
        row = token.start[0] - 1
        if token.type == tokenize.COMMENT and token.string.startswith("#|") and row >= opening:
            yield row


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a cell as far as they can be read."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(source).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _tagged_prose(page: Page) -> Iterator[Problem]:
    """The notebook's Markdown cells that have tags: some renderers obey them, and no text says so."""
    for number, cell in enumerate(page.notebook["cells"] if page.notebook else [], start=1):
        tags = cell.get("metadata", {}).get("tags")
        if cell["cell_type"] == "markdown" and tags:
            yield page.problem(
                None, f"cell {number}: a tag on Markdown: {', '.join(tags)}", "Take it out of the notebook."
            )


def _unbalanced(page: Page, cell: text.Cell) -> Iterator[Problem]:
    """Divs of one Markdown cell that close without opening, or open and do not close."""
    opened: list[int] = []
    for row, line in enumerate(prose(cell.source).split("\n")):
        found = DIV.match(line)
        if not found:
            continue
        if found["rest"]:
            opened.append(row)
        elif opened:
            opened.pop()
        else:
            yield page.problem(cell.line + row, "`:::` closes a div that this cell does not open", _DIV_HINT)
    for row in opened:
        yield page.problem(cell.line + row, "this div does not close in its Markdown cell", _DIV_HINT)


_DIV_HINT = "Keep a div in one cell: no code cell and no two blank lines inside."


def _uncaptioned(page: Page, cell: text.Cell) -> Iterator[Problem]:
    """The caption and alt text that a cell's label asks for and that are missing or empty."""
    label = str(cell.options.get("label", ""))
    for key in CAPTIONED.get(label[:4], ()):
        value = cell.options.get(key)
        if not value or not str(value).strip():
            yield page.problem(
                option_line(cell, "label"), f"cell {cell.number}: {label} has no {key}", f'Add #| {key}: "…"'
            )
