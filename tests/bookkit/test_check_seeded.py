"""Every fault is planted, one at a time, in a copy of the built toy book, and found; the copy is clean."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from planted import BOTH, NUMBERS, PLANTED, WORDS, added, code, failing, in_notebook, printed, tagged
from toy import replace, snapshot

from bookkit import book, check
from bookkit.check import Problem
from bookkit.errors import BookError


def checked(root: Path) -> list[Problem]:
    return check.run(book.load(root))


def rules_of(root: Path) -> set[str]:
    return {problem.rule for problem in checked(root)}


def test_the_built_toy_book_is_clean(built_book: Path) -> None:
    assert checked(built_book) == []


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(built_book: Path, name: str) -> None:
    planted = PLANTED[name]
    planted.seed(built_book)
    problems = checked(built_book)
    found = [each for each in problems if each.rule == planted.rule and planted.words in each.message]
    assert [problem.path for problem in found] == [planted.path], "\n".join(map(str, problems))
    assert {problem.rule for problem in problems} <= {planted.rule, "fresh", *planted.also}


def test_every_rule_has_a_planted_fault() -> None:
    assert {planted.rule for planted in PLANTED.values()} == set(check.RULES)


def test_this_machines_name_in_an_output_is_found(built_book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed("on desk-of-ann")(built_book)
    before = rules_of(built_book)
    monkeypatch.setattr(platform, "node", lambda: "desk-of-ann")
    assert rules_of(built_book) - before == {"portable"}


@pytest.mark.parametrize("name", ["no notebook", "a null execution count", "a module edited by hand"])
def test_checking_writes_nothing(built_book: Path, name: str) -> None:
    PLANTED[name].seed(built_book)
    before = snapshot(built_book)
    checked(built_book)
    assert snapshot(built_book) == before


def test_checking_executes_nothing(built_book: Path) -> None:
    added(WORDS, "\n```python\nfrom pathlib import Path\nPath('executed').touch()\n```\n")(built_book)
    checked(built_book)
    assert not list(built_book.rglob("executed"))


def test_a_problem_names_the_line_and_the_way_out(built_book: Path) -> None:
    added(WORDS, "\nSee @tbl-words-shoutet.\n")(built_book)
    problem = next(problem for problem in checked(built_book) if problem.rule == "reference")
    line = (built_book / WORDS).read_text().splitlines().index("See @tbl-words-shoutet.") + 1
    assert str(problem) == (
        f"{WORDS}:{line}: reference: @tbl-words-shoutet refers to no label of the book\n"
        "Did you mean @tbl-words-shouted?"
    )


def test_problems_come_in_the_order_of_the_book(built_book: Path) -> None:
    for path in (BOTH, "index.md", NUMBERS):
        added(path, "\nSee @fig-nowhere.\n")(built_book)
    found = [problem.path for problem in checked(built_book) if problem.rule == "reference"]
    assert found == ["index.md", NUMBERS, BOTH]


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        ("'2026-03-01'", "2026-03-01"),
        ("datetime(2026, 3, 1, 9, 31)", "2026-03-01 09:31"),
        ("datetime(2026, 3, 1, 9, 31)", "1 March 2026, 09:31:00"),
        ("date(2026, 3, 1)", "March 1, 2026"),
        ("time(9, 31)", "09:31"),
        ("'/home/ann/x'", "/home/ann/x"),
        ("0x7f3a5c0d1e80", "0x7f3a5c0d1e80"),
        ("'127.0.0.1:80'", "127.0.0.1:80"),
        ("datetime(2026, 3, 1, 9, 31, 5)", "2026-03-01T09:31:05.250000"),
        ("datetime(2026, 3, 1, 9, 31)", "01.03.2026 and 2026/03/01, 09:31"),
        ("datetime(2026, 3, 1, 9, 31)", "1772357460.0"),
        ("1_700_000_000", "1700000030.5"),
        ("'http://localhost'", "localhost"),
        ("'/srv/agent/x.py'", "/srv/agent/x.py"),
    ],
)
def test_an_output_may_repeat_what_a_cell_spells(built_book: Path, spelled: str, shown: str) -> None:
    printed(shown)(built_book)
    assert "portable" in rules_of(built_book)
    replace(built_book / NUMBERS, "print(double(21))", f"print(double(21), {spelled})")
    assert "portable" not in rules_of(built_book)


@pytest.mark.parametrize(
    "text",
    [
        "scores 3:2 and 10:75",
        "a/b/c, /v1/messages, https://example.org/home/x",
        "0x1F, 1.2.3, 17 x 23, +00:00",
        "chapter.md:10:20",
        '{"order_id": "A-17", "amount_cents": 4999}',
        "x[10:200], 2026-13, 12-31",
        "#/properties/cents, and/or/nor, ../data/x, ~/books/x, <b>x</b>/<i>y</i>",
        "x[1::2], x[::1], Registry::find,",
        "1234567890, 16000000001, 3.1617000000, 0.17000000001",
        "1.12.2, 10/20/30, 4.5.20261",
    ],
)
def test_ordinary_outputs_are_not_taken_for_private_ones(built_book: Path, text: str) -> None:
    printed(text)(built_book)
    assert rules_of(built_book) == {"fresh"}


@pytest.mark.parametrize(
    "source",
    [
        'done = subprocess.run(["ls"], capture_output=True, text=True)',
        "subprocess.Popen(command, **pipes)",
        'subprocess.check_output(["ls"])',
        'display("x")\nregistry.run(call)\nos.getpid()',
        "%time subprocess.run(x)",
    ],
)
def test_cells_whose_output_arrives_once_are_left_alone(built_book: Path, source: str) -> None:
    code(source)(built_book)
    assert rules_of(built_book) <= {"fresh"}


def test_a_tagged_cell_may_raise(built_book: Path) -> None:
    tagged("raises-exception")(built_book)
    in_notebook(failing)(built_book)
    assert rules_of(built_book) == {"fresh"}


@pytest.mark.parametrize("content", [b"\xff\xfe# no UTF-8", b"---\nnever closed\n", b"---\nx: [\n---\n"])
def test_an_unreadable_header_is_refused_with_the_file(built_book: Path, content: bytes) -> None:
    (built_book / WORDS).write_bytes(content)
    with pytest.raises(BookError, match=r"02-words\.md"):
        checked(built_book)


@pytest.mark.parametrize("content", ["", "\n\n", "# Words", "no heading", "```python\nprint(1)\n```\n"])
def test_a_chapter_reduced_to_almost_nothing_is_reported(built_book: Path, content: str) -> None:
    (built_book / WORDS).write_text(content)
    assert WORDS in {problem.path for problem in checked(built_book)}


@pytest.mark.parametrize(
    "output",
    [
        {"output_type": "stream"},
        {"output_type": "error"},
        {"output_type": "display_data"},
        {"output_type": "display_data", "data": {"image/svg+xml": 7, "text/plain": None}},
        {"output_type": "execute_result", "data": {"application/json": {"x": [1]}}},
        {"output_type": "unheard-of", "data": {"text/html": ""}},
    ],
)
def test_an_odd_output_is_no_reason_to_fail(built_book: Path, output: dict[str, Any]) -> None:
    in_notebook(lambda code: code[1]["outputs"].append(output))(built_book)
    assert NUMBERS in {problem.path for problem in checked(built_book)}


@pytest.mark.parametrize("damage", ["cells", "metadata"])
def test_a_damaged_notebook_is_reported(built_book: Path, damage: str) -> None:
    path = built_book / "chapters/02-words.ipynb"
    notebook = json.loads(path.read_text())
    notebook[damage] = None
    path.write_text(json.dumps(notebook))
    assert "chapters/02-words.ipynb" in {problem.path for problem in checked(built_book)}
