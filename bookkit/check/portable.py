"""The rule that outputs are the same on every machine and day: nothing private or passing stands in them."""

from __future__ import annotations

import calendar
import platform
import re
from collections.abc import Iterator

from bookkit.check.manuscript import Manuscript, Problem, outputs_of, texts_of

# `/app/x` and `/home/ann/book`; not `/v1/messages`, `and/or`, `../x/y`, nor a pointer, `#/properties/cents`
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/<#~])/(?!v\d+/)[\w.@+-]*\w[\w.@+-]*/[\w.@+-]+(?:/[\w.@+-]+)*|"
    r"\b[A-Za-z]:\\{1,2}[\w.]+|file://\S+"
)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")
PROCESS = re.compile(r"\bipykernel_\d+|\bpid[ =:]+\d+", re.IGNORECASE)
# IPv4, this machine, IPv6 of the blocks in use (`1::2` may be a slice), hardware addresses
NETWORK = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\blocalhost(?::\d+)?\b|"
    r"(?<![\w:])(?:fe80|f[cd][0-9a-f]{2}|[23][0-9a-f]{3}):[0-9a-f:]*:[0-9a-f]+\b|(?<![\w:\[])::1\b|\[::1\]:\d+|"
    r"(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])",
    re.IGNORECASE,
)
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
YEAR = r"(?:19|20)\d\d"
DATE = re.compile(
    rf"\b{YEAR}(?P<dash>[-/])\d\d(?P=dash)\d\d(?!\d)|\b{YEAR}\d{{4}}(?=T\d{{4}})|"
    rf"(?<![\w./])\d{{1,2}}(?P<dot>[./])\d{{1,2}}(?P=dot){YEAR}(?![./]?\d)|"
    rf"\b\d{{1,2}}\.? {MONTH}\.? {YEAR}\b|\b{MONTH}\.? \d{{1,2}},? {YEAR}\b"
)
TIME = re.compile(
    r"(?:(?<=\dT)|(?<![\w:.+-]))(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
    r"(?=Z\b|\s?[AaPp]\.?[Mm]\b|[^\w:]|\Z)"
)
# Seconds since 1970, of the years 2020 to 2033, or their thousandths, millionths, billionths
STAMP = re.compile(r"(?<![\w.,])1[6-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![\w]|[.,]\d)")
KINDS = {
    "an absolute path": ABSOLUTE_PATH,
    "an address": ADDRESS,
    "a process id": PROCESS,
    "a network address": NETWORK,
    "a date": DATE,
    "a time": TIME,
    "a time stamp": STAMP,
}
CLOCK_CALL = re.compile(r"\b(?P<kind>datetime|date|time)\((?P<numbers>\s*\d[\d\s,_]*)")
ISO_DATE = re.compile(r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)")
DAY = 24 * 60 * 60


def outputs_are_portable(manuscript: Manuscript) -> Iterator[Problem]:
    """No absolute path, host, address, process id, date or time stands in an output that no cell spells."""
    spelled = Spelled(manuscript)
    for page, cell, output in outputs_of(manuscript):
        for shown in texts_of(output):
            for what, found in private(shown):
                if not spelled.covers(what, found):
                    yield page.output_problem(
                        cell,
                        f"its output holds {what}: {found}",
                        "It differs on another machine or day: pass it in, or do not print it.",
                    )


def private(shown: str) -> Iterator[tuple[str, str]]:
    """What in a text belongs to one machine or one moment: its kind, and the text itself."""
    for what, pattern in KINDS.items():
        yield from ((what, found[0]) for found in pattern.finditer(shown))
    host = _host_name()
    if host and re.search(rf"(?<![\w-]){re.escape(host)}(?![\w-])", shown):
        yield "this machine's name", host


class Spelled:
    """What the cells of the book spell out, so that an output may repeat it."""

    def __init__(self, manuscript: Manuscript) -> None:
        self.code = "\n".join(cell.code for page in manuscript.pages for cell in page.code)
        self.moments = [
            (call["kind"], [int(number) for number in re.findall(r"\d+", call["numbers"].replace("_", ""))])
            for call in CLOCK_CALL.finditer(self.code)
        ]
        literals = STAMP.findall(re.sub(r"(?<=\d)_(?=\d)", "", self.code))
        self.stamps = [_seconds(literal) for literal in literals]
        self.stamps += [_since_1970(numbers) for kind, numbers in self.moments if kind != "time"]

    def covers(self, what: str, found: str) -> bool:
        """Whether some cell holds it, or builds the date or time with `datetime`, `date` or `time`.

        A stamp may be up to a day from one that a cell holds: clocks that a chapter passes in go on.
        """
        if found in self.code:
            return True
        if what == "a date":
            return any(kind != "time" and _same_day(found, numbers) for kind, numbers in self.moments)
        if what == "a time":
            moment = [int(number) for number in re.findall(r"\d+", found)[:3]]
            return any(_clock(kind, numbers)[: len(moment)] == moment for kind, numbers in self.moments)
        return what == "a time stamp" and any(abs(_seconds(found) - at) <= DAY for at in self.stamps)


def _same_day(found: str, numbers: list[int]) -> bool:
    if iso := ISO_DATE.fullmatch(found):
        return numbers[:3] == [int(part) for part in iso.groups()]
    return len(numbers) >= 3 and {numbers[0], numbers[2]} <= {int(part) for part in re.findall(r"\d+", found)}


def _clock(kind: str, numbers: list[int]) -> list[int]:
    """Hours, minutes and seconds of a call, those left out being 0."""
    given = numbers[:3] if kind == "time" else numbers[3:6]
    return given + [0] * (3 - len(given))


def _seconds(stamp: str) -> float:
    """A stamp in seconds, whatever its unit."""
    whole, _, fraction = stamp.partition(".")
    return float(f"{whole[:10]}.{whole[10:]}{fraction}")


def _since_1970(numbers: list[int]) -> float:
    """The seconds from 1970 to the day and time of a call, taken as UTC; 0 for what is no day."""
    try:
        return float(calendar.timegm((*(numbers + [0] * 6)[:6], 0, 0, 0)))
    except (ValueError, OverflowError):
        return 0.0


def _host_name() -> str:
    """This machine's name; "" for one that is an ordinary word."""
    name = platform.node()
    return name if len(name) >= 4 and name != "localhost" else ""
