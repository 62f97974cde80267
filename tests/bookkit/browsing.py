"""Driving Chromium over built pages: what test_pages.py and test_book_pages.py share.

One Chromium (Debian's) is started for a test file. Where there is none, or no Playwright, those files are
skipped and say so. Set BOOKKIT_CHROMIUM to the path of another one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.base", reason="axe-playwright-python is not installed")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def chromium() -> str | None:
    """The browser to drive: BOOKKIT_CHROMIUM, Debian's, or one on the PATH."""
    for candidate in (os.environ.get("BOOKKIT_CHROMIUM"), "/usr/bin/chromium", shutil.which("chromium")):
        if candidate and Path(candidate).exists():
            return candidate
    return None


needs_chromium = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")


@contextmanager
def started_browser() -> Iterator[Any]:
    """A running browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


class Reader:
    """A browser window that remembers what went wrong in it and what it asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**({"viewport": DESK} | options))
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[Any] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def read(self, address: str) -> Any:
        self.page.goto(address)
        return self.page


def violations(page: Any, skip_code: bool = False) -> list[str]:
    """What axe-core finds wrong, a line each.

    `skip_code` leaves the insides of code blocks out: their colours come from one style sheet, and asking for
    the contrast of every word takes longer than all the rest.
    """
    page.evaluate(Path(axe.AXE_FILE_PATH).read_text(encoding="utf-8"))
    where = {"include": [["html"]], "exclude": [["pre > code > *"]] if skip_code else []}
    # Preloading would fetch the style sheet, which `file:` forbids.
    script = "(where) => axe.run(where, {preload: false}).then((found) => found.violations)"
    found = page.evaluate(script, where)
    return [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]


def overflow(page: Any) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def check_pages(
    browser: Any, size: dict[str, int], scheme: str, pages: Iterable[Path], skip_code: bool = False
) -> None:
    """No page breaks a rule of axe, is wider than the window, or complains; folds are opened first."""
    window = Reader(browser, viewport=size, color_scheme=scheme)
    for path in pages:
        page = window.read(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
        assert violations(page, skip_code) == [], path.name
        assert overflow(page) <= 0, path.name
    assert window.complaints == []
    window.context.close()
