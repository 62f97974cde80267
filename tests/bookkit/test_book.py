"""The book's plan is read from `_quarto.yml` and the chapters' headers, and faults in them are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy import replace

from bookkit import book
from bookkit.errors import BookError, BookErrors, raise_all


def error_of(root: Path) -> BookError:
    with pytest.raises(BookError) as caught:
        book.load(root)
    return caught.value


def test_chapters_have_one_name_in_every_room(toy_book: Path) -> None:
    both = book.load(toy_book).find("both")
    assert (both.number, both.name, both.module, both.part) == ("03", "both", "both", "The parts")
    assert both.source == "chapters/03-both.md"
    assert both.notebook == toy_book / "chapters/03-both.ipynb"
    assert both.module_path == toy_book / "toykit/both.py"


def test_pages_are_in_reading_order_and_only_notebooks_are_executed(toy_book: Path) -> None:
    loaded = book.load(toy_book)
    assert [page.source for page in loaded.pages] == [
        "index.md",
        "chapters/01-numbers.md",
        "chapters/02-words.md",
        "chapters/03-both.md",
        "chapters/solutions/01-numbers.md",
    ]
    assert [chapter.title for chapter in loaded.chapters] == [
        "01-numbers",
        "02-words",
        "03-both",
        "solutions/01-numbers",
    ]
    assert loaded.chapters[3].is_solution and loaded.chapters[3].module is None
    assert (loaded.title, loaded.package) == ("A Toy Book", "toykit")


@pytest.mark.parametrize(
    "name",
    [
        "words",
        "2",
        "02",
        "02-words",
        "chapters/02-words.md",
        "./chapters/02-words.ipynb",
        "/x/chapters/02-words.md",
    ],
)
def test_a_chapter_answers_to_its_name_number_and_path(toy_book: Path, name: str) -> None:
    assert book.load(toy_book).find(name).source == "chapters/02-words.md"


def test_a_path_is_read_from_where_one_stands(toy_book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = book.load(toy_book)
    monkeypatch.chdir(toy_book / "chapters/solutions")
    assert loaded.find("01-numbers.md").is_solution
    assert loaded.find("./01-numbers.ipynb").is_solution
    assert not loaded.find("../01-numbers.md").is_solution
    assert not loaded.find("01-numbers").is_solution


@pytest.mark.parametrize("name", ["solutions/numbers", "chapters/solutions/01-numbers.md"])
def test_a_solution_answers_with_its_folder(toy_book: Path, name: str) -> None:
    assert book.load(toy_book).find(name).is_solution


def test_chapters_that_share_a_number_are_asked_for_by_name(toy_book: Path) -> None:
    (toy_book / "chapters/03-both.md").rename(toy_book / "chapters/02-both.md")
    replace(toy_book / "_quarto.yml", "chapters/03-both.ipynb", "chapters/02-both.ipynb")
    loaded = book.load(toy_book)
    assert loaded.find("both").title == "02-both"
    with pytest.raises(BookError, match="several chapters are called '2'") as caught:
        loaded.find("2")
    assert caught.value.hint == "Say which: 02-words or 02-both."


def test_an_unknown_chapter_is_answered_with_the_close_ones(toy_book: Path) -> None:
    with pytest.raises(BookError, match="no chapter is called 'wrods'") as caught:
        book.load(toy_book).select(["numbers", "wrods"])
    assert caught.value.hint == "Did you mean words or 02-words?"


def test_an_unknown_chapter_like_no_other_is_answered_with_all(toy_book: Path) -> None:
    with pytest.raises(BookError) as caught:
        book.load(toy_book).find("zzzz")
    assert "01-numbers, 02-words, 03-both" in str(caught.value)


def test_selected_chapters_are_in_reading_order_and_none_means_all(toy_book: Path) -> None:
    loaded = book.load(toy_book)
    assert [chapter.name for chapter in loaded.select(["both", "1"])] == ["numbers", "both"]
    assert loaded.select([]) == loaded.chapters


def test_a_listed_chapter_without_text_is_refused_when_all_are_asked_for(toy_book: Path) -> None:
    (toy_book / "chapters/02-words.md").unlink()
    loaded = book.load(toy_book)
    assert loaded.missing == ("chapters/02-words.md",)
    assert [chapter.name for chapter in loaded.select(["both"])] == ["both"]
    with pytest.raises(BookError, match=r"chapters/02-words\.md, which does not exist"):
        loaded.select([])


def test_the_root_is_found_from_below(toy_book: Path) -> None:
    assert book.find_root(toy_book / "chapters/solutions") == toy_book


def test_outside_of_a_book_the_way_in_is_told(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="--root"):
        book.find_root(tmp_path)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("  chapters:\n    - index.md", "  chapters: [index.md", "not valid YAML"),
        ("  chapters:\n    - index.md", "  pages:\n    - index.md", "has no list `book: chapters:`"),
        ("    - index.md", "    - {file: index.md}", "holds {'file': 'index.md'}"),
        ("  package: toykit", "  kit: toykit", "does not say which package"),
        ('title: "A Toy Book"', "title: A: Toy", "not valid YAML"),
        ("lang: en", "date: 2024-02-30", "not valid YAML: day is out of range"),
        ("    - index.md", "    - /etc/x.ipynb", "holds '/etc/x.ipynb'"),
        ("    - index.md", "    - ../x.ipynb", "holds '../x.ipynb'"),
        ("    - index.md", '    - ""', "holds ''"),
        ("    - index.md", "    - index.qmd", "holds 'index.qmd'"),
        ("    - index.md", '    - {part: "One", chapters: 5}', "lists the documents 5"),
        ("    - index.md", '    - {part: "One", chapters: abc}', "lists the documents 'abc'"),
        ("  chapters:\n    - index.md", "  appendices: 5\n  chapters:\n    - index.md", "documents 5"),
        ("  chapters:\n    - index.md", "  appendices: x.md\n  chapters:\n    - index.md", "'x.md'"),
        ("    - index.md", "    - index.md\n    - ./index.ipynb", "lists index.md twice"),
        ("        - chapters/02-words.ipynb", "        - chapters/01-numbers.md", "01-numbers.md twice"),
        ("  package: toykit", "  package: class", "does not say which package"),
        ("bibliography: references.bib", "bibliography: [a.bib, b.bib]", "`bibliography:` holds ['a.bib'"),
    ],
)
def test_a_malformed_plan_is_refused_by_name(toy_book: Path, old: str, new: str, message: str) -> None:
    replace(toy_book / "_quarto.yml", old, new)
    error = error_of(toy_book)
    assert message in str(error)
    assert str(error).startswith(f"{toy_book.as_posix()}/_quarto.yml")


@pytest.mark.parametrize(
    "header, message",
    [
        ("bookkit: {modul: x}", "knows no key 'modul'"),
        ("bookkit: 7", "must hold `key: value` lines"),
        ("bookkit: {module: My-Module}", "'My-Module' is no module name"),
        ("bookkit: {requires: httpx}", "`requires:` must be a list"),
        ("bookkit: {timeout: soon}", "whole number of seconds"),
        ("bookkit: {timeout: 0}", "whole number of seconds"),
        ("bookkit: {timeout: true}", "whole number of seconds"),
        ("bookkit: {requires: [a}", "not valid YAML"),
        ("date: 2024-02-30", "not valid YAML: day is out of range"),
        ("bookkit: {module: class}", "'class' is no module name"),
        ('bookkit: {module: "x\\n"}', "is no module name"),
    ],
)
def test_an_invalid_chapter_header_is_refused_by_name(toy_book: Path, header: str, message: str) -> None:
    path = toy_book / "chapters/02-words.md"
    path.write_text(f"---\n{header}\n---\n\n# Words\n", encoding="utf-8")
    error = error_of(toy_book)
    assert message in str(error)
    assert error.path == path


def test_the_header_sets_module_packages_data_and_time(toy_book: Path) -> None:
    path = toy_book / "chapters/02-words.md"
    header = "bookkit: {module: text, requires: [httpx], data: [a.json], numbers: [99.9], timeout: 300}"
    path.write_text(f"---\n{header}\n---\n\n# Words\n", encoding="utf-8")
    words = book.load(toy_book).find("words")
    assert (words.module, words.requires, words.data) == ("text", ("httpx",), ("a.json",))
    assert (words.numbers, words.timeout) == (("99.9",), 300)


def test_an_error_gives_place_message_and_way_out() -> None:
    error = BookError("broke", path=Path("chapters/01-a.md"), line=7, cell=3, hint="Mend it.")
    assert str(error) == "chapters/01-a.md:7: cell 3: broke\nMend it."
    assert str(BookError("broke")) == "broke"
    assert str(BookError("broke", path="a.md")) == "a.md: broke"


def test_several_errors_are_told_together() -> None:
    raise_all([])
    with pytest.raises(BookErrors) as caught:
        raise_all([BookError("one"), BookError("two")])
    assert str(caught.value) == "one\n\ntwo"
