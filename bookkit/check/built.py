"""Rules about what is built: it exists, it is fresh, it is what its source gives."""

from __future__ import annotations

from collections.abc import Iterator

from bookkit import build, export, tangle
from bookkit.check.manuscript import Manuscript, Problem, from_error
from bookkit.errors import BookError, BookErrors
from bookkit.inputs import Sources
from bookkit.notebook import State

REMEDY = {
    State.MISSING: ("has no notebook", "Run `bookkit build`."),
    State.TEXT: (
        "and its notebook differ",
        "Run `bookkit build`: it rewrites the notebook and executes nothing.",
    ),
    State.STALE: ("has a stale notebook", "Run `bookkit build`."),
    State.EDITED: (
        "is not what its edited notebook holds",
        "Run `bookkit pull`, or delete the notebook and build.",
    ),
    State.CONFLICT: (
        "and its notebook were both edited",
        "Bring the two together, then run `bookkit build`.",
    ),
}


def everything_is_readable(manuscript: Manuscript) -> Iterator[Problem]:
    """Every listed page exists and has the book's format; every notebook is one."""
    yield from manuscript.faults
    for name in manuscript.book.missing:
        yield Problem(
            "_quarto.yml", None, "", f"lists {name}, which does not exist", "Write it, or take it out."
        )


def notebooks_are_fresh(manuscript: Manuscript) -> Iterator[Problem]:
    """Text and notebook agree, and nothing that the outputs depend on has changed since."""
    sources = Sources(manuscript.book)
    for page in manuscript.pages:
        if page.chapter.is_executed:
            try:
                standing = build.stand(page.chapter, sources)
            except BookError as error:
                yield from_error(manuscript.book, error)
                continue
            if standing.state is not State.FRESH:
                what, remedy = REMEDY[standing.state]
                yield page.problem(None, f"{what}: {'; '.join(standing.reasons)}", remedy)


def modules_match_chapters(manuscript: Manuscript) -> Iterator[Problem]:
    """Every module is exactly what its chapter's saved cells make, and none is left over."""
    book = manuscript.book
    try:
        plan = tangle.plan(book)
    except BookErrors as errors:
        yield from (from_error(book, error) for error in errors.errors)
        return
    except BookError as error:
        yield from_error(book, error)
        return
    for path in plan.changed:
        name = path.relative_to(book.root).as_posix()
        yield Problem(name, None, "", "is not what its chapter's saved cells make", "Run `bookkit tangle`.")
    for path in plan.orphans:
        name = path.relative_to(book.root).as_posix()
        yield Problem(
            name, None, "", "was generated, and no chapter saves cells to it any more", "Delete it."
        )


def figures_are_exported(manuscript: Manuscript) -> Iterator[Problem]:
    """Every labelled figure has its file, byte for byte, and no other file is listed."""
    try:
        changed = export.run(manuscript.book, check=True)
    except BookError as error:
        yield from_error(manuscript.book, error)
        return
    for name in changed:
        is_there = (manuscript.book.root / name).exists()
        message = "differs from the output it is exported from" if is_there else "is missing"
        yield Problem(name, None, "", message, "Run `bookkit figures`.")
