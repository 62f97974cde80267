"""Edits made in a notebook go back to its text, and only those."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import HEADER, edit_notebook, replace, snapshot

from bookkit import book, build, notebook, pull, text
from bookkit.errors import BookError
from bookkit.inputs import Sources
from bookkit.notebook import State

Cells = list[dict[str, Any]]


def edit(root: Path, change: Callable[[Cells], None]) -> None:
    edit_notebook(root / "chapters/01-numbers.ipynb", lambda content: change(content["cells"]))


def pulled(root: Path) -> list[str]:
    return pull.run(book.load(root).find("numbers"))


def chapter(root: Path) -> str:
    return (root / "chapters/01-numbers.md").read_text(encoding="utf-8")


def state(root: Path) -> State:
    loaded = book.load(root)
    return build.stand(loaded.find("numbers"), Sources(loaded)).state


def cell(kind: str, source: str) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "id": "x", "metadata": {}, "source": source}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def test_an_edited_cell_changes_only_its_lines_in_the_text(built_book: Path) -> None:
    before = chapter(built_book)
    edit(built_book, lambda cells: cells[3].update(source=["print(double(20))"]))
    assert pulled(built_book) == ["chapters/01-numbers.md: cell 4: print(double(20))"]
    assert chapter(built_book) == before.replace("print(double(21))", "print(double(20))")


def test_after_a_pull_code_is_to_be_executed_and_prose_is_not(built_book: Path) -> None:
    edit(built_book, lambda cells: cells[4].update(source=["The answer is here."]))
    pulled(built_book)
    assert state(built_book) is State.TEXT
    build.run(book.load(built_book), render=False)
    edit(built_book, lambda cells: cells[3].update(source=["print(double(20))"]))
    pulled(built_book)
    assert state(built_book) is State.STALE


def test_the_header_is_kept_to_the_letter(built_book: Path) -> None:
    path = built_book / "chapters/01-numbers.md"
    replace(path, "---\njupyter", "---\n# a comment\nbookkit:   {numbers: [7]}\njupyter")
    edit(built_book, lambda cells: cells[4].update(source=["The answer is 40."]))
    before = chapter(built_book)
    pulled(built_book)
    assert chapter(built_book) == before.replace("answer is 42.", "answer is 40.")


def test_line_ends_and_blank_lines_between_other_cells_are_kept(built_book: Path) -> None:
    path = built_book / "chapters/01-numbers.md"
    replace(path, "adding it to itself.\n\n", "adding it to itself.\n\n\n")
    replace(path, "Double a double.", "Double a double. \n\n")
    build.run(book.load(built_book), render=False)
    path.write_bytes(path.read_bytes().rstrip().replace(b"\n", b"\r\n"))
    before = path.read_bytes()
    edit(built_book, lambda cells: cells[4].update(source=["The answer\n", "is 40."]))
    pulled(built_book)
    assert path.read_bytes() == before.replace(b"The answer is 42.", b"The answer\r\nis 40.")


def test_new_moved_and_deleted_cells_arrive(built_book: Path) -> None:
    def change(cells: Cells) -> None:
        del cells[4]
        cells.insert(1, cell("markdown", "New prose."))
        cells.insert(2, cell("code", 'x = """\n```\n"""'))
        cells.append(cells.pop(0))

    edit(built_book, change)
    wanted = notebook.notebook_cells(notebook.load(built_book / "chapters/01-numbers.ipynb"))
    pulled(built_book)
    read = text.read(built_book / "chapters/01-numbers.md")
    assert [[c.kind, c.source, list(c.tags)] for c in read.cells] == wanted


def test_prose_with_two_blank_lines_is_kept_as_one_cell(built_book: Path) -> None:
    edit(built_book, lambda cells: cells[4].update(source=["one\n", "\n", "\n", "two"]))
    pulled(built_book)
    assert "<!-- #region -->\none\n\n\ntwo\n<!-- #endregion -->" in chapter(built_book)


def test_a_tag_set_in_the_notebook_arrives(built_book: Path) -> None:
    edit(built_book, lambda cells: cells[3]["metadata"].update(tags=["raises-exception"]))
    pulled(built_book)
    assert '```python tags=["raises-exception"]\nprint(double(21))' in chapter(built_book)


def test_a_picture_pasted_into_a_cell_is_refused_because_the_text_cannot_hold_it(built_book: Path) -> None:
    picture = {"image.png": {"image/png": "iVBORw0KGgo="}}
    edit(
        built_book,
        lambda cells: cells[4].update(source=["![](attachment:image.png)"], attachments=picture),
    )
    before = snapshot(built_book)
    with pytest.raises(BookError, match=r"cell 5: a file is pasted into this cell \(image\.png\)"):
        pulled(built_book)
    assert snapshot(built_book) == before


def test_nothing_to_pull_changes_nothing(built_book: Path) -> None:
    replace(built_book / "chapters/01-numbers.md", "The answer is 42.", "The answer is 41.")
    before = snapshot(built_book)
    assert pulled(built_book) == []
    assert snapshot(built_book) == before


def test_when_both_were_edited_neither_is_touched(built_book: Path) -> None:
    edit(built_book, lambda cells: cells[4].update(source=["The answer is 40."]))
    replace(built_book / "chapters/01-numbers.md", "The answer is 42.", "The answer is 41.")
    before = snapshot(built_book)
    with pytest.raises(BookError, match="were both edited"):
        pulled(built_book)
    assert snapshot(built_book) == before


def test_without_a_notebook_there_is_nothing_to_pull(toy_book: Path) -> None:
    with pytest.raises(BookError, match="does not exist"):
        pulled(toy_book)


def test_a_cell_that_the_text_cannot_hold_is_refused_and_nothing_changes(built_book: Path) -> None:
    edit(
        built_book,
        lambda cells: cells[4].update(source=["one\n", "\n", "\n", "<!-- #endregion -->\n", "two"]),
    )
    before = snapshot(built_book)
    with pytest.raises(BookError):
        pulled(built_book)
    assert snapshot(built_book) == before


PROSE = st.lists(
    st.sampled_from(["a", "", "", "    b", "# H", "~~~python", "~~~", "```python", "```", ":::", "- c"]),
    min_size=1,
    max_size=6,
).map("\n".join)
CODE = st.lists(
    st.sampled_from(["x = 1", "", "```", "````", "#| echo: false", "    y"]), min_size=1, max_size=4
).map("\n".join)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["markdown", "code", "raw"]), PROSE, CODE), max_size=5))
def test_whatever_is_pulled_is_read_back_as_the_same_cells_or_refused(
    drawn: list[tuple[str, str, str]],
) -> None:
    chapter_text = text.parse(f"{HEADER}\n# One\n\n```python\nx = 1\n```\n", Path("x.md"))
    content = f"{HEADER}\n# One\n\n```python\nx = 1\n```\n"
    cells = [cell(kind, code if kind == "code" else prose) for kind, prose, code in drawn]
    wanted = notebook.notebook_cells({"cells": cells})
    try:
        made = pull.rewritten(content, chapter_text, {"cells": cells}, Path("x.md"))
    except BookError:
        return
    read = text.parse(made, Path("x.md"))
    assert [[c.kind, c.source, list(c.tags)] for c in read.cells] == wanted
    assert made.startswith(HEADER)
