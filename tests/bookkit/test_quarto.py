"""The Quarto engine, with a stand-in program that prints what the real one prints (1.7 to 1.9)."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
import render_book
import yaml

from bookkit import render
from bookkit.book import load
from bookkit.errors import BookError
from bookkit.render import sources

REPOSITORY = Path(__file__).parents[2]
STAND_IN = """\
#!{python}
import os, pathlib, sys
pathlib.Path("quarto-was-called.txt").write_text(" ".join(sys.argv[1:]))
print({log!r}, file=sys.stderr)
folder = pathlib.Path("_book")
for name, content in {files!r}.items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)
sys.exit({status})
"""
FILES = {
    "index.html": "<p>start</p>",
    "chapters/01-shapes.html": "<p>shapes</p>",
    "chapters/02-words.html": "<p>words</p>",
    "chapters/solutions/01-shapes.html": "<p>solutions</p>",
    "A-Book-of-Shapes.epub": "epub",
    "A-Book-of-Shapes.pdf": "pdf",
}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return render_book.write_book(tmp_path / "book")


@pytest.fixture
def quarto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A function that puts a program `quarto` on the PATH: what it prints, writes, and how it ends."""

    def install(log: str = "", files: dict[str, str] | None = None, status: int = 0) -> None:
        program = tmp_path / "bin/quarto"
        program.parent.mkdir(exist_ok=True)
        made = FILES if files is None else files
        program.write_text(STAND_IN.format(python=sys.executable, log=log, files=made, status=status))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return install


def test_all_formats_are_rendered_in_one_run_that_executes_nothing(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto()
    paths = render.run(load(book), ["html"], "quarto")
    called = (book / "quarto-was-called.txt").read_text()
    assert called == f"render {book} --no-execute"
    assert [path.relative_to(book / "_book").as_posix() for path in paths][:4] == list(FILES)[:4]
    assert {path.suffix for path in paths} == {".html", ".epub", ".pdf"}


def test_it_is_the_default_where_it_is_installed(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto()
    render.run(load(book))
    assert (book / "quarto-was-called.txt").exists()


def test_what_it_rendered_is_fresh_until_something_changes(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto()
    render.run(load(book), ["html"], "quarto")
    assert render.is_fresh(load(book))
    render_book.edit(book, "chapters/02-words", "The end.", "The very end.")
    assert not render.is_fresh(load(book))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("WARNING (main.lua:14000) Unable to resolve crossref @fig-shapes-line", "chapters/01-shapes.md:"),
        (
            "\x1b[33mWARNING: chapters/02-words.html: Unable to resolve crossref @sec-words-two\x1b[39m",
            "02-words.md:",
        ),
        ("[WARNING] Citeproc: citation euler1748 not found", "chapters/02-words.md:"),
        ("[WARNING] Duplicate identifier 'sec-words-two' at chunk line 9", "chapters/02-words.md:"),
        ("WARNING: Unable to resolve link target: chapters/09-none.ipynb", "Unable to resolve link target"),
        ("[WARNING] Div at line 12 column 1 unclosed at line 40 column 1, closing implicitly.", "unclosed"),
    ],
)
def test_a_warning_is_a_failure_though_quarto_exits_with_0(book: Path, quarto, line: str, place: str) -> None:  # type: ignore[no-untyped-def]
    quarto(log=f"[1/4] index.md\n{line}\nOutput created: _book/index.html")
    with pytest.raises(BookError) as caught:
        render.run(load(book), ["html"], "quarto")
    assert place in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert not render.is_fresh(load(book))


def test_a_page_that_shows_a_dead_reference_is_a_failure(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto(files=FILES | {"chapters/02-words.html": "<p>see <strong>?@fig-shapes-line</strong></p>"})
    with pytest.raises(
        BookError, match=r"`\?@fig-shapes-line` stands unresolved in _book/chapters/02-words\.html"
    ):
        render.run(load(book), ["html"], "quarto")


def test_code_that_speaks_of_dead_references_is_none(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto(files=FILES | {"chapters/02-words.html": "<p><code class='x'>?@fig-x</code></p>"})
    assert render.run(load(book), ["html"], "quarto")


def test_a_duplicate_label_which_quarto_resolves_in_silence_is_refused_before_it_runs(
    book: Path, quarto
) -> None:  # type: ignore[no-untyped-def]
    quarto()
    render_book.edit(book, "chapters/02-words", "{#sec-words-two}", "{#sec-shapes-line}")
    with pytest.raises(BookError, match="`sec-shapes-line` is used twice"):
        render.run(load(book), ["html"], "quarto")
    assert not (book / "quarto-was-called.txt").exists()


def test_settings_that_would_execute_are_refused(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto()
    config = book / "_quarto.yml"
    config.write_text(config.read_text().replace("enabled: false", "enabled: true"))
    with pytest.raises(BookError, match="would let Quarto execute the notebooks"):
        render.run(load(book), ["html"], "quarto")


def test_a_failure_shows_the_end_of_what_it_said(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto(log="line\n" * 40 + "ERROR: typst is too old", status=3)
    with pytest.raises(BookError, match=r"(?s)exit status 3.*typst is too old"):
        render.run(load(book), ["html"], "quarto")


def test_a_run_that_writes_nothing_is_a_failure(book: Path, quarto) -> None:  # type: ignore[no-untyped-def]
    quarto(files={})
    with pytest.raises(BookError, match="wrote nothing"):
        render.run(load(book), ["html"], "quarto")


def test_without_the_program_the_way_out_is_told(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BookError, match=r"not on the PATH\n.*--engine pandoc"):
        render.run(load(book), ["html"], "quarto")


class TestTheBooksOwnSettings:
    """What QUARTO.md asks of `_quarto.yml` and of the texts."""

    config = yaml.safe_load((REPOSITORY / "_quarto.yml").read_text(encoding="utf-8"))

    def test_nothing_is_executed_and_the_language_is_said(self) -> None:
        assert self.config["execute"] == {"enabled": False}
        assert self.config["lang"] == "en"
        assert self.config["project"] == {"type": "book", "output-dir": "_book"}

    def test_there_are_three_formats_with_mathml_and_copy_buttons(self) -> None:
        formats = self.config["format"]
        assert set(formats) == {"html", "epub", "typst"}
        assert formats["html"]["html-math-method"] == formats["epub"]["html-math-method"] == "mathml"
        assert formats["html"]["code-copy"] is True
        assert set(formats["html"]["theme"]) == {"light", "dark"}

    def test_every_file_that_the_settings_name_exists(self) -> None:
        assert (REPOSITORY / self.config["format"]["epub"]["css"]).is_file()
        assert (REPOSITORY / self.config["bibliography"]).is_file()

    def test_a_list_of_sources_is_for_html_only(self) -> None:
        for page in load(REPOSITORY).pages:
            text = page.path.read_text(encoding="utf-8")
            assert "{#refs}" not in text or 'when-format="html"' in text, page.source

    def test_chapters_are_numbered_as_quarto_numbers_them(self, book: Path) -> None:
        assert [page.number for page in sources.load(load(book))] == [None, "1", "2", None]
