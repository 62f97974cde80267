"""Rules about what cells show: the same on every machine, compared by every test, nothing private."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

from bookkit.check.manuscript import Executed, Manuscript, Output, Page, Problem, svg_of, texts_of
from bookkit.export import PREFIX

ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<])/(?:home|root|tmp|usr|var|opt|etc|work|workspace|Users|private|mnt|srv|proc|nix|run|builds|content)"
    r"/[\w.@+-]+|\b[A-Za-z]:\\{1,2}[\w.]+|file://\S+"
)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")
PROCESS = re.compile(r"\bipykernel_\d+|\bpid[ =:]+\d+", re.IGNORECASE)
NETWORK = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\blocalhost:\d+")
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
DATE = re.compile(
    rf"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{{1,2}}\.? {MONTH}\.? (?:19|20)\d\d\b|"
    rf"\b{MONTH}\.? \d{{1,2}},? (?:19|20)\d\d\b"
)
TIME = re.compile(r"(?<![\w:.+-])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\w:])")
CLOCK_CALL = re.compile(r"\b(?P<kind>datetime|date|time)\((?P<numbers>\s*\d[\d\s,_]*)")
ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
SKIPPING_TAGS = re.compile(r"nbval-|^skip-execution$")
SKIPPING_COMMENT = re.compile(r"^\s*#\s*(?:NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)", re.MULTILINE)
IDENTIFIER = re.compile(r'(?<=\sid=")[^"]+')
WIDTH = re.compile(r'<svg\b[^>]*?\swidth="(?P<number>[\d.]+)(?P<unit>pt|px|in|)"')
PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "in": 96.0}
WIDEST = 800  # pixels; 16-pixel text is then 7 pixels high in a column of 360
ANSI = "\x1b["
FIGURE_SIZE = "<Figure size"
UNCOMPARED = ("image/png", "image/jpeg")
TABLES = ("text/html", "text/markdown")


def outputs_are_portable(manuscript: Manuscript) -> Iterator[Problem]:
    """No absolute path, host, address, process id, date or time stands in an output that no cell spells."""
    spelled = Spelled(manuscript)
    for page, cell, output in _outputs(manuscript):
        for shown in texts_of(output):
            for what, found in _private(shown):
                if not spelled.covers(what, found):
                    yield page.output_problem(
                        cell,
                        f"its output holds {what}: {found}",
                        "It differs on another machine or day: pass it in, or do not print it.",
                    )


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
    for page, cell, output in _outputs(manuscript):
        for kind in UNCOMPARED:
            if kind in output.get("data", {}):
                yield page.output_problem(
                    cell, f"its {kind} output is compared by no test", "Show it with figures.show, as SVG."
                )


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
    """No colour codes, which PDF prints, and no figure told by the words of one matplotlib release."""
    for page, cell, output in _outputs(manuscript):
        shown = "".join(texts_of(output))
        if ANSI in shown:
            yield page.output_problem(cell, "its output holds terminal colour codes", "Build it again.")
        if FIGURE_SIZE in shown:
            yield page.output_problem(
                cell,
                "its output is matplotlib's own text for a figure",
                "End the cell with figures.show(figure).",
            )


def labels_show_what_they_name(manuscript: Manuscript) -> Iterator[Problem]:
    """A `fig-` cell shows SVG under its own name, a `tbl-` cell a table; a picture has a label."""
    for page in manuscript.executed:
        for cell in page.executed:
            if cell.is_shown:
                yield from _named(page, cell)


def pictures_fit_a_phone(manuscript: Manuscript) -> Iterator[Problem]:
    """No picture is so wide that its text, shrunk to a phone's page, cannot be read."""
    for page, cell, output in _outputs(manuscript):
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
    for page, cell, output in _outputs(manuscript):
        own = set(IDENTIFIER.findall(svg_of(output)))
        taken = sorted(name for name in own if name in owners)
        if taken:
            yield page.output_problem(
                cell,
                f"its picture has the id {taken[0]}, as one of {owners[taken[0]]} has",
                "Give the cell a label and draw with bookkit.figures or bookkit.diagram.",
            )
        owners |= dict.fromkeys(own, f"{page.chapter.source}, cell {cell.number}")


class Spelled:
    """What the cells of the book spell out, so that an output may repeat it."""

    def __init__(self, manuscript: Manuscript) -> None:
        self.code = "\n".join(cell.code for page in manuscript.pages for cell in page.code)
        self.moments = [
            (call["kind"], [int(number) for number in re.findall(r"\d+", call["numbers"].replace("_", ""))])
            for call in CLOCK_CALL.finditer(self.code)
        ]

    def covers(self, what: str, found: str) -> bool:
        """Whether some cell holds it, or builds the date or time with `datetime`, `date` or `time`."""
        if found in self.code:
            return True
        if what == "a date":
            return any(kind != "time" and _same_day(found, numbers) for kind, numbers in self.moments)
        if what == "a time":
            moment = [int(number) for number in found.split(":")]
            return any(_clock(kind, numbers)[: len(moment)] == moment for kind, numbers in self.moments)
        return False


def _same_day(found: str, numbers: list[int]) -> bool:
    if iso := ISO_DATE.fullmatch(found):
        return numbers[:3] == [int(part) for part in iso.groups()]
    return len(numbers) >= 3 and {str(numbers[0]), str(numbers[2])} <= set(re.findall(r"\d+", found))


def _clock(kind: str, numbers: list[int]) -> list[int]:
    """Hours, minutes and seconds of a call, those left out being 0."""
    given = numbers[:3] if kind == "time" else numbers[3:6]
    return given + [0] * (3 - len(given))


def _outputs(manuscript: Manuscript) -> Iterator[tuple[Page, Executed, Output]]:
    for page in manuscript.executed:
        for cell in page.executed:
            for output in cell.outputs:
                yield page, cell, output


def _private(shown: str) -> Iterator[tuple[str, str]]:
    """What in a text belongs to one machine or one moment: its kind, and the text itself."""
    kinds = {
        "an absolute path": ABSOLUTE_PATH,
        "an address": ADDRESS,
        "a process id": PROCESS,
        "a network address": NETWORK,
        "a date": DATE,
        "a time": TIME,
    }
    for what, pattern in kinds.items():
        yield from ((what, found[0]) for found in pattern.finditer(shown))
    host = _host_name()
    if host and re.search(rf"(?<![\w-]){re.escape(host)}(?![\w-])", shown):
        yield "this machine's name", host


def _host_name() -> str:
    """This machine's name; "" for one that is an ordinary word."""
    name = platform.node()
    return name if len(name) >= 4 and name != "localhost" else ""


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
