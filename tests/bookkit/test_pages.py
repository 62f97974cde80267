"""The built pages in a real browser: complete without scripts, usable with them, accessible, light."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import render_book
from browsing import LOOKS, PHONE, Reader, check_pages, needs_chromium, prepare, started_browser, violations

from bookkit import render
from bookkit.book import load

PAGES = [
    "index.html",
    "chapters/01-shapes.html",
    "chapters/02-words.html",
    "chapters/solutions/01-shapes.html",
]
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the test book's pages."""
    root = render_book.write_book(tmp_path_factory.mktemp("pages") / "book")
    render.run(load(root), ["html"], "pandoc")
    return root / "_book"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as browser:
        yield browser


@pytest.fixture
def reader(browser: Any, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """A window; parametrise indirectly with the browser context's options."""
    window = Reader(browser, **getattr(request, "param", {}))
    yield window
    window.context.close()
    assert window.complaints == []


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """The address of the same pages from a server."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


class TestEveryPage:
    def test_axe_finds_nothing_and_nothing_overflows(self, site: Path, browser: Any) -> None:
        check_pages(browser, LOOKS, [site / name for name in PAGES])

    def test_a_page_is_light_and_asks_for_little_and_for_nothing_elsewhere(
        self, served: str, browser: Any
    ) -> None:
        for name in PAGES:
            window = Reader(browser)
            page = window.read(served + name)
            page.wait_for_load_state("networkidle")
            assert all(each.url.startswith((served, "data:")) for each in window.requests)
            assert not [each.url for each in window.requests if "search" in each.url]
            counted = [
                each
                for each in window.requests
                if each.url.startswith(served) and "/figures/" not in each.url
            ]
            assert len(counted) <= 8
            assert sum(len(each.response().body()) for each in counted) < 150_000
            assert window.complaints == []
            window.context.close()

    @pytest.mark.parametrize("reader", [{"java_script_enabled": False}], indirect=True)
    def test_without_scripts_everything_is_there_but_what_needs_them(
        self, site: Path, reader: Reader
    ) -> None:
        page = reader.read((site / "chapters/01-shapes.html").as_uri())
        assert page.locator("nav.contents a").count() == 4
        assert page.locator("nav.turn a.next").is_visible()
        assert page.locator(".search-open").is_hidden()
        assert page.locator(".theme").is_hidden()
        assert page.locator("figure#fig-shapes-line img").is_visible()
        page.locator("details.fold > summary").click()
        assert page.get_by_text("unfold me").is_visible()

    @pytest.mark.parametrize("reader", [{"java_script_enabled": False, "viewport": PHONE}], indirect=True)
    def test_without_scripts_a_phone_can_open_the_contents(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "chapters/02-words.html").as_uri())
        assert page.locator("nav.contents").is_hidden()
        page.get_by_role("button", name="Contents").click()
        page.locator("nav.contents").get_by_role("link", name="Shapes").first.click()
        assert page.url.endswith("01-shapes.html")


class TestReading:
    def test_the_skip_link_is_first_and_leads_to_the_text(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "index.html").as_uri())
        page.keyboard.press("Tab")
        link = page.locator(":focus")
        assert link.text_content() == "Skip to the text"
        assert link.bounding_box()["y"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

    def test_focus_is_visible(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "chapters/02-words.html").as_uri())
        for _ in range(8):
            page.keyboard.press("Tab")
            style = page.evaluate(
                "(({outlineStyle, outlineWidth}) => [outlineStyle, parseFloat(outlineWidth)])"
                "(getComputedStyle(document.activeElement))"
            )
            assert style[0] == "solid"
            assert style[1] >= 2

    def test_a_link_to_a_solution_opens_it(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "chapters/01-shapes.html").as_uri())
        page.goto((site / "chapters/solutions/01-shapes.html").as_uri())
        assert page.get_by_text("It does not.").is_hidden()
        page.goto((site / "chapters/01-shapes.html").as_uri())
        page.get_by_role("link", name="solution", exact=True).click()
        page.get_by_text("It does not.").wait_for(state="visible")
        assert page.get_by_text("Round.").is_hidden()

    def test_previous_and_next_walk_through_the_book(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "index.html").as_uri())
        walked = [page.url]
        while page.locator("nav.turn a.next").count():
            page.locator("nav.turn a.next").click()
            walked.append(page.url)
        assert walked == [(site / name).as_uri() for name in PAGES]

    def test_the_page_contents_mark_where_the_reader_is(self, browser: Any, site: Path) -> None:
        window = Reader(browser, viewport={"width": 1440, "height": 500})
        page = window.read((site / "chapters/01-shapes.html").as_uri() + "#sec-shapes-deeper")
        page.locator('.toc a[aria-current][href="#sec-shapes-deeper"]').wait_for()
        window.context.close()

    def test_a_figures_card_stays_light_in_the_dark(self, site: Path, browser: Any) -> None:
        window = Reader(browser, color_scheme="dark")
        page = window.read((site / "chapters/01-shapes.html").as_uri())
        look = "(element) => getComputedStyle(element).backgroundColor"
        assert page.locator("#fig-shapes-line img").evaluate(look) == "rgb(255, 255, 255)"
        assert page.locator("body").evaluate(look) == "rgb(20, 23, 27)"
        assert page.locator("#fig-shapes-line img").get_attribute("alt") == 'A "line", rising.'
        window.context.close()


class TestTheme:
    def test_it_follows_the_system_until_the_reader_chooses_and_the_choice_stays(
        self, served: str, reader: Reader
    ) -> None:
        background = "getComputedStyle(document.body).backgroundColor"
        page = reader.read(served)
        light = page.evaluate(background)
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate(background)
        assert light != dark
        page.get_by_label("Theme").select_option("light")
        assert page.evaluate(background) == light
        page.goto(served + "chapters/02-words.html")
        assert page.evaluate(background) == light
        assert page.get_by_label("Theme").input_value() == "light"
        page.get_by_label("Theme").select_option("")
        assert page.evaluate(background) == dark


class TestCopy:
    @pytest.mark.parametrize(
        "reader", [{"permissions": ["clipboard-read", "clipboard-write"]}], indirect=True
    )
    def test_a_cells_code_is_copied_as_it_was_written(self, served: str, reader: Reader) -> None:
        page = reader.read(served + "chapters/01-shapes.html")
        box = page.locator(".sourceCode", has_text="def corners")
        box.hover()
        box.get_by_role("button", name="Copy this code").click()
        page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.rstrip() == render_book.SHAPES[2][0]

    def test_output_has_no_copy_button(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "chapters/01-shapes.html").as_uri())
        assert page.locator(".output .copy").count() == 0


class TestSearch:
    @pytest.mark.parametrize("from_disk", [True, False], ids=["file", "http"])
    def test_it_finds_a_word_and_leads_to_its_section(
        self, site: Path, served: str, reader: Reader, from_disk: bool
    ) -> None:
        start = (site / "index.html").as_uri() if from_disk else served
        page = reader.read(start)
        page.keyboard.press("/")
        page.get_by_role("searchbox").fill("xylophone")
        page.get_by_text("1 place").wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url("**/chapters/02-words.html#sec-words-one")

    def test_it_can_be_used_with_the_keyboard_alone_and_passes_axe(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "chapters/02-words.html").as_uri())
        page.get_by_role("button", name="Search").press("Enter")
        page.get_by_role("searchbox").fill("line")
        page.locator("dialog.search li").first.wait_for()
        prepare(page)
        assert violations(page) == []
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.tagName") == "A"
        page.keyboard.press("Escape")
        assert page.locator("dialog.search").is_hidden()

    def test_markup_in_a_query_is_text(self, site: Path, reader: Reader) -> None:
        page = reader.read((site / "index.html").as_uri())
        page.keyboard.press("/")
        page.get_by_role("searchbox").fill("<tag> (x")
        page.locator(".search-note").wait_for()
        page.get_by_role("searchbox").fill("<img src=x onerror=alert(1)>")
        page.get_by_text("Nothing found.").wait_for()


class TestPrint:
    def test_paper_shows_what_a_screen_folds_and_drops_what_only_a_screen_needs(
        self, site: Path, reader: Reader
    ) -> None:
        page = reader.read((site / "chapters/01-shapes.html").as_uri())
        assert page.get_by_text("unfold me").is_hidden()
        page.emulate_media(media="print")
        assert page.get_by_text("unfold me").is_visible()
        for screen_only in (".bar", "nav.contents", "nav.turn", "details > summary"):
            assert page.locator(screen_only).first.is_hidden()
        page.goto((site / "chapters/solutions/01-shapes.html").as_uri())
        assert page.get_by_text("It does not.").is_visible()
