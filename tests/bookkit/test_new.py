"""A new chapter is whole from the start: text, tests, a place in the book."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toy import replace, snapshot

from bookkit import book, build, check, new
from bookkit.errors import BookError


def test_a_new_chapter_is_written_listed_and_tested(toy_book: Path) -> None:
    assert new.run(book.load(toy_book), "squares", title="Squares and roots") == [
        "chapters/04-squares.md",
        "tests/test_squares.py",
        "_quarto.yml",
    ]
    squares = book.load(toy_book).find("squares")
    assert (squares.number, squares.module, squares.part) == ("04", "squares", "The parts")
    assert "# Squares and roots {#sec-squares}" in squares.path.read_text(encoding="utf-8")


def test_a_new_chapter_passes_check_and_its_tests_once_it_is_built(built_book: Path) -> None:
    new.run(book.load(built_book), "two_words")
    build.run(book.load(built_book), render=False)
    loaded = book.load(built_book)
    assert [str(problem) for problem in check.run(loaded) if "two_words" in str(problem)] == []
    assert build.run(loaded, render=False).is_empty
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_two_words.py"]
    env = os.environ | {"PYTHONPATH": str(built_book), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=built_book, env=env, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout


def test_the_plan_keeps_every_other_line(toy_book: Path) -> None:
    plan = toy_book / "_quarto.yml"
    replace(
        plan,
        "        - chapters/03-both.ipynb\n",
        "        - 'chapters/03-both.ipynb' # last\n        # here\n",
    )
    before = plan.read_text(encoding="utf-8").splitlines()
    new.run(book.load(toy_book), "squares")
    after = plan.read_text(encoding="utf-8").splitlines()
    added = [line for line in after if line not in before]
    assert added == ["        - chapters/04-squares.ipynb"]
    after.remove(added[0])
    assert after == before
    assert [chapter.name for chapter in book.load(toy_book).chapters][3] == "squares"


def test_a_chapter_joins_the_part_that_is_named(toy_book: Path) -> None:
    replace(
        toy_book / "_quarto.yml",
        "        - chapters/03-both.ipynb\n",
        '    - part: "More"\n      chapters:\n        - chapters/03-both.ipynb\n',
    )
    new.run(book.load(toy_book), "squares", part="The parts")
    loaded = book.load(toy_book)
    assert loaded.find("squares").part == "The parts"
    assert [chapter.name for chapter in loaded.chapters[:4]] == ["numbers", "words", "squares", "both"]


@pytest.mark.parametrize(
    "name",
    [
        *("Squares", "two words", "7up", "class", "json", "print", "../x", "", "é", "foo\n", "toy-kit"),
        *("words", "preface", "numbers_use", "sol_numbers"),
    ],
)
def test_a_name_that_no_module_can_have_or_that_is_taken_is_refused(toy_book: Path, name: str) -> None:
    before = snapshot(toy_book)
    with pytest.raises(BookError, match=r"cannot name a chapter|is taken") as caught:
        new.run(book.load(toy_book), name)
    assert caught.value.hint
    assert snapshot(toy_book) == before


@pytest.mark.parametrize("taken", ["tests/test_squares.py", "chapters/04-squares.md", "toykit/squares.py"])
def test_no_file_in_the_way_is_overwritten(toy_book: Path, taken: str) -> None:
    (toy_book / taken).parent.mkdir(exist_ok=True)
    (toy_book / taken).write_text("mine\n", encoding="utf-8")
    before = snapshot(toy_book)
    with pytest.raises(BookError, match="exist"):
        new.run(book.load(toy_book), "squares")
    assert snapshot(toy_book) == before


def test_when_one_file_cannot_be_written_none_is_left(toy_book: Path) -> None:
    (toy_book / "tests").write_text("no folder\n", encoding="utf-8")
    before = snapshot(toy_book)
    with pytest.raises(BookError, match="cannot be written"):
        new.run(book.load(toy_book), "squares")
    assert snapshot(toy_book) == before


def test_an_unknown_part_is_answered_with_the_parts(toy_book: Path) -> None:
    with pytest.raises(BookError, match=r"The parts are: The parts\."):
        new.run(book.load(toy_book), "squares", part="Nowhere")
