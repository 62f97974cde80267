"""The preview: what it serves, when it rebuilds, what it says when a build fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import render_book

from bookkit import preview, render
from bookkit.book import Book, load
from bookkit.errors import BookError
from bookkit.preview import Versions, changes, make_server, report, snapshot


@contextmanager
def serving(folder: Path, versions: Versions) -> Iterator[str]:
    server = make_server(folder, 0, versions)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return render_book.write_book(tmp_path / "book")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "_book"
    (site / "chapters").mkdir(parents=True)
    (site / "index.html").write_text("<body>start</body>", encoding="utf-8")
    (site / "chapters/one.html").write_text("<body>one</body>", encoding="utf-8")
    (site / "book.css").write_text("body {}", encoding="utf-8")
    (tmp_path / "secret.html").write_text("<body>secret</body>", encoding="utf-8")
    return site


class TestServing:
    @pytest.mark.parametrize(
        ("path", "text"), [("/", "start"), ("/chapters/one.html", "one"), ("/index.html?x=1", "start")]
    )
    def test_a_page_comes_with_the_reloading_script(self, folder: Path, path: str, text: str) -> None:
        with serving(folder, Versions()) as address:
            answer = urlopen(address + path).read().decode()
        assert answer.startswith(f"<body>{text}<script>")
        assert answer.endswith("</script>\n</body>")
        assert "let version = 1;" in answer

    def test_the_built_file_does_not_hold_the_script(self, folder: Path) -> None:
        with serving(folder, Versions()) as address:
            urlopen(address + "/").read()
        assert (folder / "index.html").read_text(encoding="utf-8") == "<body>start</body>"

    def test_other_files_come_as_they_are_and_nothing_is_kept(self, folder: Path) -> None:
        with serving(folder, Versions()) as address:
            answer = urlopen(address + "/book.css")
        assert answer.read() == b"body {}"
        assert answer.headers["Cache-Control"] == "no-store"

    @pytest.mark.parametrize("path", ["/nothing.html", "/../secret.html", "/%2e%2e/secret.html"])
    def test_nothing_outside_the_folder_is_served(self, folder: Path, path: str) -> None:
        with serving(folder, Versions()) as address, pytest.raises(HTTPError) as caught:
            urlopen(address + path)
        assert caught.value.code == 404

    def test_a_waiting_page_hears_of_the_next_version(self, folder: Path) -> None:
        versions = Versions()
        with serving(folder, versions) as address:
            versions.publish("it broke")
            answer = json.load(urlopen(f"{address}{preview.ROUTE}?after=1"))
        assert answer == {"version": 2, "error": "it broke"}

    def test_a_port_that_is_taken_is_told_with_another(self, folder: Path) -> None:
        taken = make_server(folder, 0, Versions())
        port = taken.server_port
        with pytest.raises(
            BookError, match=f"port {port} is in use\nChoose another one: .*--port {port + 1}"
        ):
            make_server(folder, port, Versions())
        taken.server_close()

    def test_a_number_that_is_no_port_is_told(self, folder: Path) -> None:
        with pytest.raises(BookError, match="70000 is no port number"):
            make_server(folder, 70000, Versions())


class TestVersions:
    def test_who_waits_is_woken_by_the_next_build(self) -> None:
        versions = Versions()
        heard: list[tuple[int, str]] = []
        waiting = threading.Thread(target=lambda: heard.append(versions.after(1, 30)))
        waiting.start()
        versions.publish()
        waiting.join(30)
        assert heard == [(2, "")]

    def test_who_is_behind_is_answered_at_once_and_patience_ends(self) -> None:
        versions = Versions()
        assert versions.after(0, 30) == (1, "")
        assert versions.after(1, 0) == (1, "")


class TestRebuilding:
    def test_a_build_that_works_makes_a_new_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        versions = Versions()
        report(versions, lambda: None)
        assert versions.after(1, 0) == (2, "")
        assert "Pages are up to date" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (BookError("no good", path="a.md", line=3), "a.md:3: no good"),
            (RuntimeError("odd"), "RuntimeError: odd"),
        ],
    )
    def test_a_build_that_fails_says_why_and_the_preview_goes_on(
        self, error: Exception, told: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fail() -> None:
            raise error

        versions = Versions()
        report(versions, fail)
        assert versions.after(1, 0) == (2, told)
        assert told in capsys.readouterr().out

    def test_it_serves_and_rebuilds_on_save_until_it_is_interrupted(
        self, book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        built: list[str] = []

        def rebuild(now: Book) -> None:
            built.append(now.title)
            render.run(now, ["html"], "pandoc")

        steps = iter([lambda: _save(book / "index.md", "A Book of Shapes"), lambda: None, _interrupt])
        monkeypatch.setattr(preview, "changes", _with_steps(steps))
        preview.serve(load(book), 0, rebuild=rebuild)
        assert built == ["A Book of Shapes"] * 2
        assert "Serving http://127.0.0.1:" in capsys.readouterr().out
        assert "A Book of Shapes" in (book / "_book/index.html").read_text(encoding="utf-8")


class TestWatching:
    @pytest.mark.parametrize("name", ["index.md", "chapters/01-shapes.md", "references.bib", "_quarto.yml"])
    def test_a_saved_source_is_seen(self, book: Path, name: str) -> None:
        before = snapshot(book)
        _save(book / name, "more")
        assert snapshot(book) != before

    @pytest.mark.parametrize(
        "name",
        [
            "_book/index.html",
            "chapters/01-shapes.ipynb",
            "figures/new.svg",
            "shapes/made.py",
            ".bookkit/x.json",
        ],
    )
    def test_what_a_build_writes_is_not(self, book: Path, name: str) -> None:
        before = snapshot(book, "shapes")
        _save(book / name, "more")
        assert snapshot(book, "shapes") == before

    def test_a_change_is_told_once_it_has_settled(self) -> None:
        a, b, c = ({"x.md": (number, 1)} for number in (1, 2, 3))
        looks = iter([a, b, c, c, c, a, a])
        told = changes(lambda: next(looks), a, wait=lambda seconds: None)
        assert next(told) == c
        assert next(told) == a


def _save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")


def _interrupt() -> None:
    raise KeyboardInterrupt


def _with_steps(steps: Iterator[Callable[[], None]]) -> Callable[..., Iterator[object]]:
    """Instead of waiting, take the next step and look."""

    def stepping(look: Callable[[], object], seen: object) -> Iterator[object]:
        return preview_changes(look, seen, lambda seconds: next(steps)())

    return stepping


preview_changes = preview.changes
