"""The pages of the book itself in a real browser: the promises that test_pages.py holds a small book to.

Every page is read at both widths. All four of width and theme are tried where the environment says CI; else
light on a phone and dark on a desk. Code's own colours are left to test_pages.py, which has them all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import LOOKS, check_pages, needs_chromium, started_browser

from bookkit.book import load
from bookkit.render import sources
from bookkit.render.site import build

REPOSITORY = Path(__file__).parents[2]
FEWER = {name: LOOKS[name] for name in ("phone-light", "desk-dark")}
LINKED = re.compile(r'(?:href|src)="([^"]*theme/[^"]*)"')
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages of the real book, made in a folder of their own."""
    book = load(REPOSITORY)
    if book.missing or any(not chapter.notebook.exists() for chapter in book.chapters):
        pytest.skip("the book's notebooks are not all built")
    folder = tmp_path_factory.mktemp("real")
    for name, content in build(book, sources.load(book)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return sorted(folder.rglob("*.html"))


def test_no_page_breaks_a_rule_or_overflows(pages: list[Path], browser: Any) -> None:
    check_pages(browser, LOOKS if os.environ.get("CI") else FEWER, pages, plain_code=True)


def test_no_page_is_heavy(pages: list[Path]) -> None:
    sizes = {path.name: path.stat().st_size + weight_of_theme(path) for path in pages}
    assert {name: size for name, size in sizes.items() if size >= 150_000} == {}


def weight_of_theme(page: Path) -> int:
    """The bytes of the style sheets and scripts that a page links."""
    linked = LINKED.findall(page.read_text(encoding="utf-8"))
    assert len(linked) == 2
    return sum((page.parent / name).stat().st_size for name in linked)
