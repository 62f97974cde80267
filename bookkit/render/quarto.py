"""The book's real engine: `quarto render`, never executing, its warnings taken for what they are.

Quarto resolves what it can, prints a warning for the rest, and exits with status 0. Here a reference, label
or citation that does not resolve fails the render, whether Quarto said so or only wrote `?@fig-x` somewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bookkit.book import CONFIG, Book
from bookkit.errors import BookError, raise_all
from bookkit.render import resolve, sources, stamp
from bookkit.render.fragments import convert, located
from bookkit.render.sources import Page

ANSI = re.compile(r"\x1b\[[0-9;]*m")
SIGNS = (
    re.compile(r"Unable to resolve crossref:?\s*@?(?P<needle>[\w:.-]*)", re.IGNORECASE),
    re.compile(r"Unable to resolve link target:?\s*(?P<needle>\S*)", re.IGNORECASE),
    re.compile(r"citation (?P<needle>[\w:.#$%&+?<>~/-]+) not found", re.IGNORECASE),
    re.compile(
        r"Duplicate (?:identifier|label|reference|note reference|link reference)\W*(?P<needle>[\w:.-]*)", re.I
    ),
    re.compile(r"Could not (?:fetch|find) (?:resource|image)\W*(?P<needle>[^\s'\"]*)", re.IGNORECASE),
    re.compile(r"(?:Div|Fenced div).*unclosed(?P<needle>)", re.IGNORECASE),
)
UNRESOLVED = re.compile(r"\?@([\w:.-]+)|\?(?:meta|var):([\w.-]+)")
CODE = re.compile(r"<(code|script)\b.*?</\1>", re.DOTALL)
PAGES = {".html": "html", ".epub": "epub", ".pdf": "pdf"}


def run(book: Book) -> list[Path]:
    """Render every format in one run (Quarto empties the folder first) and return the files, pages in order.

    Raises BookError when the program is missing or fails, when the settings would let it execute code, and
    for every reference, label or citation that does not resolve.
    """
    program = shutil.which("quarto")
    if program is None:
        raise BookError(
            "the program `quarto` is not on the PATH",
            hint="Install Quarto 1.9 or newer, or render with the embedded engine: --engine pandoc",
        )
    _refuse_execution(book)
    digest = stamp.inputs(book)
    pages = sources.load(book)
    resolve.index(book, convert(book, pages, "html"))  # Quarto resolves a duplicate label without a word
    log = _render(book, program)
    raise_all(list({str(error): error for error in _complaints(book, pages, log)}.values()))
    return _record(book, digest, pages)


def _refuse_execution(book: Book) -> None:
    execute = book.config.get("execute")
    if not isinstance(execute, dict) or execute.get("enabled") is not False:
        raise BookError(
            "would let Quarto execute the notebooks", path=CONFIG, hint="Write: execute: {enabled: false}"
        )


def _render(book: Book, program: str) -> str:
    """Quarto's output. `NO_COLOR` keeps colour codes out of it."""
    done = subprocess.run(
        [program, "render", str(book.root), "--no-execute"],
        cwd=book.root,
        env=os.environ | {"NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    log = ANSI.sub("", done.stdout.decode("utf-8", "replace"))
    if done.returncode:
        tail = "\n".join(log.strip().splitlines()[-15:])
        raise BookError(f"quarto failed (exit status {done.returncode}):\n{tail}")
    return log


def _complaints(book: Book, pages: list[Page], log: str) -> Iterator[BookError]:
    for line in log.splitlines():
        for sign in SIGNS:
            if found := sign.search(line):
                yield _located(pages, f"quarto: {line.strip()}", found["needle"].strip("'\"`"))
    for path in sorted(stamp.output_folder(book).rglob("*.html")):
        prose = CODE.sub("", path.read_text(encoding="utf-8", errors="replace"))
        for found in UNRESOLVED.finditer(prose):
            needle = found[1] or found[2]
            where = path.relative_to(book.root).as_posix()
            yield _located(pages, f"`{found[0]}` stands unresolved in {where}", needle)


def _located(pages: list[Page], message: str, needle: str) -> BookError:
    """The error at the line of the page that names the needle; without a place when none does."""
    for page in pages if needle else []:
        for spelling in (f"@{needle}", needle):
            error = located(page, message, spelling)
            if error.line is not None:
                return error
    return BookError(message)


def _record(book: Book, digest: str, pages: list[Page]) -> list[Path]:
    """Note what Quarto wrote, for `is_fresh`, and name the files."""
    folder = stamp.output_folder(book)
    written = [path for path in sorted(folder.rglob("*")) if path.suffix in PAGES and path.is_file()]
    if not written:
        raise BookError("quarto ended well and wrote nothing", path=folder)
    for suffix, kind in PAGES.items():
        sizes = {
            path.relative_to(folder).as_posix(): path.stat().st_size
            for path in written
            if path.suffix == suffix
        }
        if sizes:
            stamp.record(book, kind, digest, sizes)
    order = {folder / page.href: place for place, page in enumerate(pages)}
    return sorted(written, key=lambda path: order.get(path, len(order)))
