"""How a running build is shown: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from bookkit.book import Chapter
from bookkit.execute import Outcome

if TYPE_CHECKING:
    from rich.progress import TaskID


class Display(Protocol):
    """Lines, and the progress of executing chapters."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def started(self, chapter: Chapter, cells: int) -> None:
        """A chapter of that many code cells starts."""

    def advanced(self, chapter: Chapter) -> None:
        """One more of its cells ran."""

    def finished(self, outcome: Outcome) -> None:
        """It ended, well or not."""


class Lines:
    """A line for each chapter that ended; for logs."""

    def say(self, line: str) -> None:
        """Print the line at once, so that a log shows it while the build goes on."""
        print(line, flush=True)

    def started(self, chapter: Chapter, cells: int) -> None:
        """Says nothing: two lines a chapter would be one too many."""

    def advanced(self, chapter: Chapter) -> None:
        """Says nothing."""

    def finished(self, outcome: Outcome) -> None:
        """One line: what was executed, why, how long it took."""
        self.say(told(outcome))


class Bars(Lines):
    """A bar for each running chapter, above it the lines of those that ended; for terminals."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cells"),
            TimeElapsedColumn(),
            transient=True,
        )
        self.tasks: dict[str, TaskID] = {}

    def say(self, line: str) -> None:
        """Print the line above the bars."""
        self.progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def started(self, chapter: Chapter, cells: int) -> None:
        """Show the chapter's bar."""
        self.tasks[chapter.source] = self.progress.add_task(chapter.title, total=cells)

    def advanced(self, chapter: Chapter) -> None:
        """Move its bar by one cell."""
        self.progress.advance(self._task(chapter))

    def finished(self, outcome: Outcome) -> None:
        """Take its bar away and leave a line."""
        self.progress.remove_task(self._task(outcome.standing.chapter))
        super().finished(outcome)

    def _task(self, chapter: Chapter) -> TaskID:
        return self.tasks[chapter.source]


def told(outcome: Outcome) -> str:
    """One line on what became of a chapter."""
    title, seconds = outcome.standing.chapter.title, f"{outcome.seconds:.1f} s"
    if outcome.error:
        return f"{title}: failed after {seconds}"
    return f"{title}: executed in {seconds} ({'; '.join(outcome.standing.reasons) or 'asked for'})"


@contextmanager
def display() -> Iterator[Display]:
    """The display that fits where the output goes."""
    if not sys.stdout.isatty():
        yield Lines()
        return
    bars = Bars()
    with bars.progress:
        yield bars
