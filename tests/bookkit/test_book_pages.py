"""The pages of the book itself in a real browser: the promises that test_pages.py holds a small book to.

Every page is read at both widths. All four of width and theme are tried where the environment says CI; else
light on a phone and dark on a desk. Code's own colours are left to test_pages.py, which has them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import DESK, PHONE, check_pages, needs_chromium, started_browser

from bookkit.book import load
from bookkit.render import sources
from bookkit.render.site import build

REPOSITORY = Path(__file__).parents[2]
LOOKS = {"phone-light": (PHONE, "light"), "desk-dark": (DESK, "dark")}
if os.environ.get("CI"):
    LOOKS |= {"phone-dark": (PHONE, "dark"), "desk-light": (DESK, "light")}
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


@pytest.mark.parametrize("look", LOOKS)
def test_no_page_breaks_a_rule_or_overflows(pages: list[Path], browser: Any, look: str) -> None:
    size, scheme = LOOKS[look]
    check_pages(browser, size, scheme, pages, skip_code=True)


def test_no_page_is_heavy(pages: list[Path]) -> None:
    site = next(path.parent for path in pages if (path.parent / "theme").is_dir())
    shared = sum(path.stat().st_size for path in (site / "theme").iterdir())
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size + shared for path in pages}
    assert {name: size for name, size in sizes.items() if size >= 150_000} == {}
