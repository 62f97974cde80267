"""The table that says how every chapter stands, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookkit import build, execute, tangle
from bookkit.book import Book, Chapter
from bookkit.errors import BookError
from bookkit.inputs import Sources
from bookkit.notebook import State, recorded

COLUMNS = ("chapter", "module", "cells", "state", "seconds", "why")


@dataclass(frozen=True)
class Row:
    """One chapter: the state of its module and of its notebook, the reasons, the seconds it last took."""

    chapter: Chapter
    module: str
    cells: int
    state: str
    why: str
    seconds: float | None
    made_with: str


def rows(book: Book) -> tuple[list[Row], list[BookError]]:
    """How every chapter stands, as if the modules were written now; and what keeps modules from being
    written.
    """
    errors: list[BookError] = []
    plan = tangle.Plan({}, {}, ())
    try:
        plan = tangle.plan(book)
    except BookError as error:
        errors.append(error)
    sources = Sources(book, plan.changed)
    seconds = build.known_seconds(book)
    return [_row(chapter, plan, sources, seconds.get(chapter.title)) for chapter in book.chapters], errors


def _row(chapter: Chapter, plan: tangle.Plan, sources: Sources, seconds: float | None) -> Row:
    module = _module(chapter, plan)
    try:
        standing = build.stand(chapter, sources, plan.texts.get(chapter.path))
    except BookError as error:
        return Row(chapter, module, 0, "broken", str(error).replace("\n", " "), seconds, "")
    reasons = [*standing.reasons, *_unmet(chapter, standing.state)]
    made_with = _made_with(recorded(standing.notebook) if standing.notebook else {})
    cells = len(standing.text.cells)
    return Row(chapter, module, cells, standing.state.value, "; ".join(reasons), seconds, made_with)


def _unmet(chapter: Chapter, state: State) -> list[str]:
    missing = execute.lacking(chapter)
    return [f"requires {', '.join(missing)}, not installed"] if missing and state.needs_execution else []


def _module(chapter: Chapter, plan: tangle.Plan) -> str:
    """The chapter's module, marked when it is to be written; "" without one."""
    path = chapter.module_path
    if path is None or (path not in plan.changed and not path.exists()):
        return ""
    return f"{chapter.module}{' (to write)' if path in plan.changed else ''}"


def _made_with(known: dict[str, object]) -> str:
    packages = known.get("packages")
    pins = [f"{name} {version}" for name, version in packages.items()] if isinstance(packages, dict) else []
    return ", ".join([f"Python {known['python']}", *pins]) if "python" in known else ""


def table(found: Sequence[Row], *, versions: bool = False) -> str:
    """The rows as aligned text; `versions` adds what each notebook was executed with."""
    columns = (*COLUMNS, "executed with") if versions else COLUMNS
    lines = [columns, *(_cells(row)[: len(columns)] for row in found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def _cells(row: Row) -> tuple[str, ...]:
    seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
    return row.chapter.title, row.module, str(row.cells), row.state, seconds, row.why, row.made_with


def summary(found: Sequence[Row]) -> str:
    """One sentence: how many are fresh."""
    behind = [row for row in found if row.state != State.FRESH.value]
    if not behind:
        return f"All {len(found)} chapters are fresh."
    return f"{len(behind)} of {len(found)} chapters are behind: run `bookkit build`."
