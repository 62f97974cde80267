"""The embedded engine: HTML, EPUB and PDF with the Pandoc and Typst that the wheels carry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bookkit.book import Book
from bookkit.render import site, sources, stamp, whole


def run(book: Book, formats: Sequence[str]) -> list[Path]:
    """Render the formats ("html", "epub", "pdf") and return pages and documents, pages in reading order.

    Everything is made, and found to be right, before the first file of a format is replaced.
    """
    digest = stamp.inputs(book)
    pages = sources.load(book)
    paths: list[Path] = []
    for kind in formats:
        contents = site.build(book, pages) if kind == "html" else whole.build(book, pages, kind)
        written = stamp.publish(book, kind, digest, contents)
        paths += [path for path in written if path.suffix == f".{kind}"]
    return paths
