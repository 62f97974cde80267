"""From chapters to everything that is built from them, doing only what their content makes necessary."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bookkit import execute, files, notebook, tangle, text
from bookkit.book import Book, Chapter
from bookkit.errors import BookError, raise_all
from bookkit.inputs import Sources
from bookkit.notebook import Standing, State
from bookkit.progress import Display, Lines

SECONDS = ".bookkit/seconds.json"  # how long each chapter took last, for `status`; not part of the book


@dataclass(frozen=True)
class Report:
    """What a build did, as repository paths, chapters' titles and figures' paths; empty when there was
    nothing.
    """

    modules: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    executed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return not (self.modules or self.rewritten or self.executed or self.figures or self.pages)


def run(
    book: Book,
    chapters: Sequence[Chapter] = (),
    *,
    force: bool = False,
    render: bool = True,
    jobs: int | None = None,
    display: Display | None = None,
) -> Report:
    """Tangle, execute what is stale, export the figures, render the pages.

    `chapters` limits the first two to some chapters; `force` makes everything anew. Raises BookError before
    anything is written when a cell cannot be saved, or when a module or a notebook was edited by hand; and
    after everything that could be executed was, when a cell failed.
    """
    show = display or Lines()
    chosen = chapters or book.select(())
    plan = tangle.plan(book, chosen, force=force)
    standings = _unrefused(book, chosen, plan)
    report = Report(modules=_tangle(book, plan, show))
    report = _notebooks(book, standings, report, show, force=force, jobs=jobs)
    unbuilt = [chapter.title for chapter in book.chapters if not chapter.notebook.exists()]
    if unbuilt or book.missing:
        show.say(f"Figures and pages wait for: {', '.join([*unbuilt, *book.missing])}.")
        return report
    report = replace(report, figures=_figures(book, show))
    return replace(report, pages=_pages(book, show, force=force)) if render else report


def notebooks(
    book: Book,
    chapters: Sequence[Chapter],
    show: Display,
    *,
    force: bool = False,
    jobs: int | None = None,
) -> list[str]:
    """Rewrite and execute the notebooks of `chapters` with the modules as they are; return the titles
    changed.
    """
    standings = _unrefused(book, chapters, tangle.Plan({}, {}, ()))
    report = _notebooks(book, standings, Report(), show, force=force, jobs=jobs)
    return [*report.rewritten, *report.executed]


def behind(book: Book, chapters: Sequence[Chapter], *, force: bool = False) -> list[str]:
    """What `notebooks` would change, each with the reason."""
    standings = _unrefused(book, chapters, tangle.Plan({}, {}, ()))
    stale = [standing for standing in standings if force or standing.state is not State.FRESH]
    return [
        f"{_notebook_name(standing)} ({'; '.join(standing.reasons) or 'asked for'})" for standing in stale
    ]


def _notebook_name(standing: Standing) -> str:
    return standing.chapter.notebook.relative_to(standing.chapter.root).as_posix()


def _unrefused(book: Book, chapters: Sequence[Chapter], plan: tangle.Plan) -> list[Standing]:
    """How the chapters stand once the plan's modules are written. Raises BookError for notebooks edited by
    hand.
    """
    sources = Sources(book, plan.changed)
    standings = [stand(chapter, sources, plan.texts.get(chapter.path)) for chapter in chapters]
    raise_all([refusal(standing) for standing in standings if standing.state.is_refused])
    return standings


def _tangle(book: Book, plan: tangle.Plan, show: Display) -> tuple[str, ...]:
    tangle.apply(plan)
    changed = tuple(path.relative_to(book.root).as_posix() for path in plan.changed)
    for name in changed:
        show.say(f"{name}: written")
    for path in plan.orphans:
        show.say(
            f"{path.relative_to(book.root).as_posix()}: no chapter saves cells to it any more; delete it"
        )
    return changed


def _notebooks(
    book: Book, standings: Sequence[Standing], report: Report, show: Display, *, force: bool, jobs: int | None
) -> Report:
    """Rewrite and execute; raise what failed once everything else is done."""
    rewritten = [standing for standing in standings if standing.state is State.TEXT and not force]
    for standing in rewritten:
        notebook.rewrite(standing)
        show.say(f"{standing.chapter.title}: rewritten, nothing to execute ({'; '.join(standing.reasons)})")
    stale = [standing for standing in standings if force or standing.state.needs_execution]
    skipped = [standing for standing in stale if execute.lacking(standing.chapter)]
    for standing in skipped:
        show.say(_skipped(standing))
    executed = execute_standings(book, [each for each in stale if each not in skipped], show, jobs=jobs)
    return replace(
        report,
        rewritten=tuple(standing.chapter.title for standing in rewritten),
        executed=tuple(executed),
        skipped=tuple(standing.chapter.title for standing in skipped),
    )


def _skipped(standing: Standing) -> str:
    missing = ", ".join(execute.lacking(standing.chapter))
    return f"{standing.chapter.title}: outputs kept, not executed: it requires {missing}, not installed"


def execute_standings(
    book: Book, standings: Sequence[Standing], show: Display, *, jobs: int | None = None
) -> list[str]:
    """Execute these chapters and return their titles. Raises BookError for those that failed, after all are
    done.
    """
    if not standings:
        return []
    outcomes = execute.run(standings, show, jobs=jobs)
    done = [outcome for outcome in outcomes if outcome.error is None]
    _remember_seconds(book, {outcome.standing.chapter.title: outcome.seconds for outcome in done})
    raise_all([outcome.error for outcome in outcomes if outcome.error])
    return [outcome.standing.chapter.title for outcome in done]


def stand(chapter: Chapter, sources: Sources, read: text.Text | None = None) -> Standing:
    """How a chapter (`read` already, or not) and its notebook agree, given the modules `sources` knows."""
    chapter_text = read or text.read(chapter.path)
    return notebook.examine(chapter, chapter_text, sources.parts(chapter, chapter_text))


def refusal(standing: Standing) -> BookError:
    """Why a notebook that somebody edited is not touched, and the way out."""
    chapter = standing.chapter
    cells = "".join(f"\n  {reason}" for reason in standing.reasons)
    path = _notebook_name(standing)
    if standing.state is State.EDITED:
        return BookError(
            f"was edited, and the text was not:{cells}",
            path=path,
            hint=f"`bookkit pull {chapter.title}` takes them into the text; to drop them, delete {path}.",
        )
    return BookError(
        f"and {chapter.source} were both edited, and differ:{cells}",
        path=path,
        hint=f"Neither was changed. Make them agree by hand, or delete {path} to keep the text alone.",
    )


def _figures(book: Book, show: Display) -> tuple[str, ...]:
    from bookkit import export

    changed = tuple(str(name) for name in export.run(book, [], False))
    for name in changed:
        show.say(f"{name}: written")
    return changed


def _pages(book: Book, show: Display, *, force: bool) -> tuple[str, ...]:
    from bookkit import render

    if not force and render.is_fresh(book):
        return ()
    start = time.perf_counter()
    paths = render.run(book, ["html"], None)
    show.say(f"pages: rendered in {time.perf_counter() - start:.1f} s; read {_start_page(book, paths)}")
    return tuple(_relative(book, path) for path in paths)


def _start_page(book: Book, paths: Sequence[Path]) -> str:
    pages = [path for path in paths if path.name == "index.html"] or list(paths)
    return _relative(book, pages[0]) if pages else "_book"


def _relative(book: Book, path: Path) -> str:
    return path.relative_to(book.root).as_posix() if path.is_relative_to(book.root) else path.as_posix()


def known_seconds(book: Book) -> dict[str, float]:
    """How long each chapter took when it was last executed here, by title."""
    path = book.root / SECONDS
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = value.items() if isinstance(value, dict) else ()
    return {title: float(seconds) for title, seconds in known if isinstance(seconds, int | float)}


def _remember_seconds(book: Book, seconds: Mapping[str, float]) -> None:
    known = known_seconds(book) | {title: round(value, 1) for title, value in seconds.items()}
    with suppress(BookError):  # a cache: what a cell failed with is told all the same
        files.write_text(book.root / SECONDS, json.dumps(known, indent=1, sort_keys=True) + "\n")
