"""The pages: one set of sources, two engines.

`quarto` is the book's real engine, used when its program is on the PATH; `pandoc` needs nothing but wheels.
Neither ever executes code.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from bookkit.book import Book
from bookkit.errors import BookError
from bookkit.render import stamp

FORMATS = ("html", "epub", "pdf")
ENGINES = ("quarto", "pandoc")


def run(book: Book, formats: Sequence[str] = ("html",), engine: str | None = None) -> list[Path]:
    """Render the book and return the files written, the HTML pages in reading order.

    Without an `engine` it is Quarto where its program is on the PATH, else Pandoc. Raises BookError for an
    unknown format or engine, and for everything in the book that does not resolve: then nothing is replaced.
    """
    chosen = engine or ("quarto" if shutil.which("quarto") else "pandoc")
    _refuse_unknown("format", formats, FORMATS)
    _refuse_unknown("engine", [chosen], ENGINES)
    if chosen == "quarto":
        from bookkit.render import quarto

        return quarto.run(book)
    from bookkit.render import pandoc

    return pandoc.run(book, list(dict.fromkeys(formats)))


def is_fresh(book: Book) -> bool:
    """Whether the HTML pages are there and were rendered from what the book is now. Takes milliseconds."""
    return stamp.is_fresh(book, "html")


def _refuse_unknown(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise BookError(f"no {what} is called {name!r}", hint=f"There are: {', '.join(known)}.")
