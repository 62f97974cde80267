"""Each document through Pandoc, as many at once as there are cores; what Pandoc's filter found out about it.

A fragment is kept in `.bookkit/pages/` under the digest of everything it was made from, so that a changed
sentence costs one Pandoc run and not forty.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bookkit import files, text
from bookkit.book import Book
from bookkit.errors import BookError
from bookkit.render.sources import Manuscript, Page, manuscript

THEME = Path(__file__).parent.parent / "theme"
FILTER, STYLE = THEME / "book.lua", THEME / "book.csl"
CACHE = ".bookkit/pages"
READER = "markdown"
COMMON = ("--wrap=none", "--columns=10000", "--section-divs", "--mathml", "--syntax-highlighting=none")
WARNING = re.compile(r"^\[WARNING\] (.+(?:\n  .+)*)", re.MULTILINE)
IDENTIFIER = re.compile(r'\sid="([^"]+)"')
AT_LINE = re.compile(r"line (\d+)")
CITED = re.compile(r"citation (\S+) not found")
QUOTED = re.compile(r"(?:['\u2018])([\w:.-]+)")


@dataclass(frozen=True)
class Fragment:
    """A page as Pandoc wrote it for one target.

    `facts` is what the filter found (labels, headings, ids, references, links, …); `body` is HTML, or the
    JSON of Pandoc's document when it is to become part of a whole.
    """

    page: Page
    manuscript: Manuscript
    facts: Mapping[str, Any]
    body: str


@cache
def pandoc() -> str:
    """The path of the Pandoc program that the wheel `pypandoc_binary` carries."""
    try:
        import pypandoc  # type: ignore[import-untyped]

        return str(pypandoc.get_pandoc_path())
    except (ImportError, OSError) as error:
        raise BookError(
            "the pandoc program is not installed", hint='Run: python -m pip install -e ".[book]"'
        ) from error


def convert(book: Book, pages: Sequence[Page], target: str) -> list[Fragment]:
    """The pages for "html", "epub" or "typst". Raises BookError for what Pandoc warns of."""
    kind = "html" if target == "html" else "whole"
    written = [manuscript(page, kind) for page in pages]
    environment = _environment(book)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [
            pool.submit(_fragment, book, page, each, target, environment)
            for page, each in zip(pages, written, strict=True)
        ]
        return [job.result() for job in jobs]


def _environment(book: Book) -> str:
    """A digest of what every fragment depends on beside its own text."""
    sources = files.read_text(book.bibliography) if book.bibliography else ""
    ours = [path.read_text(encoding="utf-8") for path in (FILTER, STYLE)]
    return files.digest([pandoc(), ours, sources, COMMON])


def _fragment(book: Book, page: Page, source: Manuscript, target: str, environment: str) -> Fragment:
    arguments = _arguments(book, page, target)
    key = files.digest([environment, source.markdown, arguments], 32)
    kept = book.root / CACHE / f"{key}.txt"
    if kept.is_file():
        output = kept.read_text(encoding="utf-8")
    else:
        output = _run(page, source, arguments)
        files.write_text(kept, output)
    facts, body = _split(output, target)
    return Fragment(page, source, facts, body)


def _arguments(book: Book, page: Page, target: str) -> list[str]:
    arguments = ["-f", READER, "-t", "html5" if target == "html" else "json", *COMMON]
    meta = {"target": target, "dir": page.folder, "lang": str(book.config.get("lang", "en"))}
    if page.number:
        meta["chapter"] = page.number
    if page.chapter.is_solution:
        meta["solutions"] = "true"
    if book.bibliography:
        meta |= {"bibliography": str(book.bibliography), "csl": str(STYLE), "link-citations": "true"}
    return [*arguments, f"--lua-filter={FILTER}", *(f"--metadata={key}={meta[key]}" for key in meta)]


def _run(page: Page, source: Manuscript, arguments: Sequence[str]) -> str:
    """Pandoc's output. Its warnings are errors here: an unknown citation, a div that never closes."""
    output, log = run_pandoc(arguments, source.markdown)
    warnings = WARNING.findall(log)
    if warnings:
        raise _warned(page, source, warnings[0])
    return output


def run_pandoc(
    arguments: Sequence[str],
    content: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Pandoc's standard output and its log. Raises BookError when it fails."""
    done = subprocess.run(
        [pandoc(), *arguments],
        input=content.encode(),
        capture_output=True,
        cwd=folder,
        env=os.environ | dict(environment or {}),
        check=False,
    )
    log = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        raise BookError(f"pandoc failed (exit status {done.returncode}): {log.strip()}")
    return done.stdout.decode("utf-8"), log


def _warned(page: Page, source: Manuscript, warning: str) -> BookError:
    message = " ".join(warning.split())
    if cited := CITED.search(message):
        return no_source(page, cited[1], set())
    if found := QUOTED.search(message):
        return located(page, message, found[1])
    line = AT_LINE.search(message)
    cells = [cell for start, cell in source.starts if line and start <= int(line[1])]
    return _in_cell(page, message, cells[-1]) if cells else BookError(message, path=page.chapter.source)


def no_source(page: Page, key: str, known: Set[str]) -> BookError:
    """The error for a citation that the bibliography does not hold; `known` are the keys that it does."""
    close = difflib.get_close_matches(key, list(known), n=2, cutoff=0.6)
    hint = f"Did you mean @{' or @'.join(close)}?" if close else "Add the source to the bibliography."
    return located(page, f"@{key} cites a source that the bibliography does not hold", f"@{key}", hint)


def _in_cell(page: Page, message: str, number: int) -> BookError:
    path = page.chapter.source
    if not page.chapter.is_executed:
        return BookError(message, path=path)
    cells = text.read(page.chapter.path).cells
    line = cells[number - 1].line if number <= len(cells) else None
    return BookError(message, path=path, line=line, cell=number)


def located(page: Page, message: str, needle: str, hint: str | None = None) -> BookError:
    """An error at the first line of the page's text that holds `needle`, as a whole word if it can be."""
    lines = files.read_text(page.chapter.path).splitlines()
    whole = re.compile(rf"(?<![\w-]){re.escape(needle)}(?![\w-])")
    found = [number for number, line in enumerate(lines, start=1) if whole.search(line)]
    return BookError(message, path=page.chapter.source, line=found[0] if found else None, hint=hint)


def _split(output: str, target: str) -> tuple[Mapping[str, Any], str]:
    """The facts, which the filter put in front, and the rest."""
    if target == "html":
        head, _, body = output.partition("\n")
        return json.loads(head) | {"ids": IDENTIFIER.findall(body)}, body
    document = json.loads(output)
    head = document["blocks"].pop(0)["c"][1]
    return json.loads(head), json.dumps(document)
