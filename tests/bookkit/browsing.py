"""Driving Chromium over built pages: what test_pages.py and test_book_pages.py share.

One Chromium (Debian's) is started for a test file. Where there is none, or no Playwright, those files are
skipped and say so. Set BOOKKIT_CHROMIUM to the path of another one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
Look = tuple[dict[str, int], str]  # the window's size and the colour scheme
COLOUR_RULES = ("color-contrast", "link-in-text-block")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
LOOKS: dict[str, Look] = {
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
    "desk-light": (DESK, "light"),
    "desk-dark": (DESK, "dark"),
}


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


def prepare(page: Any, plain_code: bool = False) -> None:
    """Open what is folded and load axe.

    `plain_code` takes the colours out of code first: they come from one style sheet, and asking for the
    contrast of every word takes longer than all the rest.
    """
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    if plain_code:
        page.evaluate(
            "document.querySelectorAll('pre > code').forEach((it) => { it.textContent = it.textContent })"
        )
    page.evaluate(Path(axe.AXE_FILE_PATH).read_text(encoding="utf-8"))


def violations(page: Any, rules: Sequence[str] = ()) -> list[str]:
    """What axe-core, loaded by `prepare`, finds wrong, a line each; by these rules only, or by all."""
    # Preloading would fetch the style sheet, which `file:` forbids.
    options = {"preload": False, "resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("(options) => axe.run(options).then((found) => found.violations)", options)
    return [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]


def overflow(page: Any) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def check_pages(
    browser: Any, looks: Mapping[str, Look], pages: Iterable[Path], plain_code: bool = False
) -> None:
    """No page breaks a rule of axe, is wider than the window, or complains, folds opened, however it looks.

    A page is read once, and then resized and recoloured in place. In the second colours of a width only the
    rules about colours can find anything new, and only they are asked.
    """
    window = Reader(browser)
    wrong: list[str] = []
    for path in pages:
        page = window.read(path.as_uri())
        prepare(page, plain_code)
        widths: set[int] = set()
        for name, (size, scheme) in looks.items():
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            rules = COLOUR_RULES if size["width"] in widths else ()
            wrong += [f"{path.name}, {name}: {each}" for each in violations(page, rules)]
            if overflow(page) > 0:
                wrong.append(f"{path.name}, {name}: {overflow(page)} pixels wider than the window")
            widths.add(size["width"])
    assert wrong + window.complaints == []
    window.context.close()
