"""Rules about what cells show: executed, clean, and compared by every test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bookkit.check.manuscript import (
    Executed,
    Manuscript,
    Page,
    Problem,
    line_in_code,
    line_of,
    outputs_of,
    parsed,
    svg_of,
    texts_of,
)
from bookkit.export import PREFIX

SKIPPING_TAGS = re.compile(r"nbval-|^skip-execution$")
SKIPPING_COMMENT = re.compile(r"^\s*#\s*(?:NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)", re.MULTILINE)
IDENTIFIER = re.compile(r'(?<=\sid=")[^"]+')
WIDTH = re.compile(r'<svg\b[^>]*?\swidth="(?P<number>[\d.]+)(?P<unit>pt|px|in|)"')
PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "in": 96.0}
WIDEST = 800  # pixels; 16-pixel text is then 7 pixels high in a column of 360
ANSI = "\x1b["
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # a tab and a line's end are none
REDRAWING = ("clear_output", "update_display")
STARTING = ("run", "call", "check_call", "Popen")  # of subprocess
CAPTURING = {"stdout", "capture_output", None}  # None: a `**` that may hold either
FIGURE_SIZE = "<Figure size"
UNCOMPARED = ("image/png", "image/jpeg")
TABLES = ("text/html", "text/markdown")


def cells_are_executed(manuscript: Manuscript) -> Iterator[Problem]:
    """Execution counts are 1, 2, 3 …: a cell without one is compared with nothing."""
    for page in manuscript.executed:
        code = [cell for cell in page.executed if cell.source.strip()]
        for place, cell in enumerate(code, start=1):
            if cell.count != place:
                count = "null" if cell.count is None else cell.count
                yield page.output_problem(
                    cell,
                    f"its execution count is {count} instead of {place}",
                    "Run `bookkit build --force`: a test compares nothing for a cell that did not run.",
                )


def outputs_are_compared(manuscript: Manuscript) -> Iterator[Problem]:
    """No tag, comment or kind of output makes the tests skip a comparison."""
    for page in manuscript.executed:
        for cell in page.executed:
            if any(SKIPPING_TAGS.search(tag) for tag in cell.tags) or SKIPPING_COMMENT.search(cell.source):
                yield page.output_problem(
                    cell,
                    "it asks the tests not to compare its output",
                    "Make the output deterministic instead.",
                )
    for page, cell, output in outputs_of(manuscript):
        for kind in UNCOMPARED:
            if kind in output.get("data", {}):
                yield page.output_problem(
                    cell, f"its {kind} output is compared by no test", "Show it with figures.show, as SVG."
                )


def outputs_arrive_once(manuscript: Manuscript) -> Iterator[Problem]:
    """No cell takes an output back, changes it later, or lets another process write it: tests see another
    notebook than the build then.
    """
    for page in manuscript.pages:
        for cell in page.code:
            for node in ast.walk(parsed(cell)):
                if isinstance(node, ast.Call) and (found := _unsteady(node)):
                    message, hint = found
                    line = line_in_code(cell, node)
                    yield page.problem(line, f"cell {cell.number}: {message}", hint)


def errors_are_meant(manuscript: Manuscript) -> Iterator[Problem]:
    """An error stands in an output only where the cell's tag says so; a tagged cell raises."""
    for page in manuscript.executed:
        for cell in page.executed:
            raised = any(output["output_type"] == "error" for output in cell.outputs)
            meant = "raises-exception" in cell.tags
            if raised and not meant:
                hint = 'Mend the cell, or open it with: ```python tags=["raises-exception"]'
                yield page.output_problem(cell, "its output is an error", hint)
            elif meant and not raised:
                yield page.output_problem(
                    cell, "it is tagged raises-exception and raises nothing", "Take the tag out."
                )


def outputs_are_clean(manuscript: Manuscript) -> Iterator[Problem]:
    """No colour codes, which PDF prints, no control character, which makes a page of an EPUB malformed, and
    no figure told by the words of one matplotlib release.
    """
    for page, cell, output in outputs_of(manuscript):
        shown = "".join([*texts_of(output), svg_of(output)])
        if ANSI in shown:
            yield page.output_problem(cell, "its output holds terminal colour codes", "Print without them.")
        elif control := CONTROL.search(shown):
            yield page.output_problem(
                cell, f"its output holds the control character {_code_point(control)}", "Print its repr()."
            )
        if FIGURE_SIZE in shown:
            yield page.output_problem(
                cell,
                "its output is matplotlib's own text for a figure",
                "End the cell with figures.show(figure).",
            )


def texts_are_clean(manuscript: Manuscript) -> Iterator[Problem]:
    """No control character stands in a text: pages would carry it on, and no reader sees it."""
    for page in manuscript.pages:
        for cell in page.text.cells:
            for found in CONTROL.finditer(cell.source):
                yield page.problem(
                    line_of(cell, found.start()),
                    f"cell {cell.number}: the control character {_code_point(found)}",
                    r"Take it out, or write it as an escape: \x1b.",
                )


def labels_show_what_they_name(manuscript: Manuscript) -> Iterator[Problem]:
    """A `fig-` cell shows SVG under its own name, a `tbl-` cell a table; a picture has a label."""
    for page in manuscript.executed:
        for cell in page.executed:
            if cell.is_shown:
                yield from _named(page, cell)


def pictures_fit_a_phone(manuscript: Manuscript) -> Iterator[Problem]:
    """No picture is so wide that its text, shrunk to a phone's page, cannot be read."""
    for page, cell, output in outputs_of(manuscript):
        found = WIDTH.search(svg_of(output))
        if found and float(found["number"]) * PIXELS[found["unit"]] > WIDEST:
            yield page.output_problem(
                cell,
                f"its picture is {found['number']}{found['unit']} wide; a phone can show {WIDEST} px",
                "Let a flowchart run from top to bottom, shorten its texts, or split it.",
            )


def pictures_share_no_id(manuscript: Manuscript) -> Iterator[Problem]:
    """Identifiers of SVG elements are unique in the whole book: pictures of one page share one id space."""
    owners: dict[str, str] = {}
    for page, cell, output in outputs_of(manuscript):
        own = set(IDENTIFIER.findall(svg_of(output)))
        taken = sorted(name for name in own if name in owners)
        if taken:
            yield page.output_problem(
                cell,
                f"its picture has the id {taken[0]}, as one of {owners[taken[0]]} has",
                "Give the cell a label and draw with bookkit.figures or bookkit.diagram.",
            )
        owners |= dict.fromkeys(own, f"{page.chapter.source}, cell {cell.number}")


def _code_point(found: re.Match[str]) -> str:
    return f"U+{ord(found[0]):04X}"


def _unsteady(call: ast.Call) -> tuple[str, str] | None:
    """What makes the output of a call differ between build and test, and the way out."""
    name = ast.unparse(call.func)
    words = {keyword.arg for keyword in call.keywords}
    if "display_id" in words or name.rpartition(".")[2] in REDRAWING:
        return f"{name} changes an output that stands already", "Show every output once, when it is done."
    starts = name == "os.system" or name in {f"subprocess.{each}" for each in STARTING}
    if starts and not words & CAPTURING:
        hint = "Capture it: subprocess.run(…, capture_output=True, text=True), then print its stdout."
        return f"what {name} writes goes around the notebook", hint
    return None


def _named(page: Page, cell: Executed) -> Iterator[Problem]:
    pictures = [output["data"] for output in cell.outputs if svg_of(output)]
    if pictures and not cell.label.startswith(PREFIX):
        yield page.output_problem(
            cell,
            "it shows a picture and has no `fig-` label",
            "Add `#| label: fig-…`, a caption and an alt text.",
        )
    elif cell.label.startswith(PREFIX) and not pictures:
        yield page.output_problem(
            cell, f"{cell.label} shows no SVG", "Draw it with bookkit.figures or bookkit.diagram."
        )
    for data in pictures:
        if cell.label and not str(data.get("text/plain", "")).startswith(cell.label):
            hint = "Show it with figures.show, in a kernel that the chapter's first cells prepared."
            yield page.output_problem(cell, f"the plain text of {cell.label} is not its label", hint)
    if cell.label.startswith("tbl-") and not any(
        kind in output.get("data", {}) for output in cell.outputs for kind in TABLES
    ):
        yield page.output_problem(cell, f"{cell.label} shows no table", "Display Markdown or HTML.")
