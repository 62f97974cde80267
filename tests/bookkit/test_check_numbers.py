# ruff: noqa: RUF001 (the multiplication sign is what is tested)
"""What counts as a number that the prose quotes, and what backs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import NUMBERS, answer, in_notebook, printed
from toy import replace

from bookkit import book, check
from bookkit.check import manuscript
from bookkit.check.numbers import canonical, code_numbers, numbers_in, quoted
from bookkit.text import parse

SEPARATORS = ("", " ", "\u00a0", "\u2009", "\u202f", ",", "_")


def values(prose: str) -> list[str]:
    return [quote.value for quote in quoted(prose)]


def grouped(whole: int, separator: str) -> str:
    return f"{whole:,}".replace(",", separator)


def code_values(source: str) -> set[str]:
    cell = parse(f"```python\n{source}\n```\n", Path("x.md")).cells[0]
    return code_numbers(cell)


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("It paid 9 999 cents, not 4,999 or 4_999.", ["9999", "4999", "4999"]),
        ("99.99 for an order of 49.99.", ["99.99", "49.99"]),
        ("Between 54, 142, 229 and 1104 tokens", ["142", "229", "1104"]),
        ("It costs 5× or 2.9x as much, at 58 % or 12%", ["5", "2.9", "58", "12"]),
        ("from 5 to 20× more, a 3× table", ["20", "3"]),
        ("17 × 23 = 391, never 17 x 23", ["391"]),
        ("a limit of `max_prompt_tokens=4000` and [4 001](x.md)", ["4000", "4001"]),
        ("$19 \\times 9\\,999 = 189{,}981$", ["9999", "189981"]),
        ("scored 430/437 within 300ms (**774** in all)", ["430", "437", "300", "774"]),
        ("a 5000-cent limit; $250; -300", ["5000", "250", "300"]),
        ("| agent | 4 | 3 | 774 |", ["774"]),
        ("of 2023 tokens, 1999 calls", ["2023", "1999"]),
        ("a line ends in 774", ["774"]),
        ("a factor of 7.0, or 0.10", ["7", "0.1"]),
        ("2048 tokens (2048), in 2048 tokens, until 2000 tokens, (1999)", ["2048"] * 3 + ["2000", "1999"]),
        ("250K of 300B, a 7B model, 10Gb and 4KiB", ["250", "300", "7", "10", "4"]),
        ("1e6 or 1E-3, 2.5e+3", ["1000000", "0.001", "2500"]),
        ("$10^6$ and $10^{-2}$, 3 × 10⁴, 2⁻¹", ["1000000", "0.01", "10000", "0.5"]),
        ("a 5-fold and a 3 fold rise, the 432nd call", ["5", "3", "432"]),
    ],
)
def test_numbers_that_need_backing(prose: str, expected: list[str]) -> None:
    assert values(prose) == expected


@pytest.mark.parametrize(
    "prose",
    [
        "three turns, 2 calls, one receipt, 17 and 99",
        "order A-17 or A-117, call_123, sha256, UTF-16, gpt-4.1, v1.2.3, 1.7.34",
        "in 2023, since 1999, Wei (2024), Yao et al., 2023, 2019\u20132024, March 2026",
        "in 2023 the first, *ReAct* (2023) and since 2022 Wei showed it",
        "section 4.2, § 16.1, chapter 12, exercise 100, figure 4.12, Python 3.11, RFC 8259, PEP 695",
        "[more](https://x.org/300/4.5) <https://x.org/300> https://x.org/300",
        "[the limit](05-gate.ipynb#sec-gate-300)",
        "[@yao2023react, pp. 300-310] @wei2022chain",
        "## Title {#sec-gate-300 .c-400}",
        '<span data-x="300">three</span>',
        "the draft 2020-12 of 2026-03-01",
        "#300 and #123456",
        "0x7f3a, 12ab",
    ],
)
def test_numbers_that_need_none(prose: str) -> None:
    assert values(prose) == []


def test_comments_and_blocks_that_are_shown_are_not_prose() -> None:
    source = "before\n<!-- 300\n400 -->\n~~~json\n500\n~~~\nafter 600\n"
    assert values(manuscript.prose(source)) == ["600"]


def test_blanking_keeps_every_place() -> None:
    source = "one\n<!-- 300\n400 -->\n~~~json\n500\n~~~\nafter 600\n"
    assert [len(line) for line in manuscript.prose(source).split("\n")] == [
        len(line) for line in source.split("\n")
    ]


@settings(deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(SEPARATORS))
def test_a_number_backs_itself_however_it_is_separated(whole: int, separator: str) -> None:
    written = grouped(whole, separator)
    assert set(values(f"It is {written} in all.")) <= numbers_in(f"x={whole}\n")
    assert canonical(written) in numbers_in(f"[{written}]")


@settings(deadline=None)
@given(st.integers(100, 10**9), st.sampled_from(SEPARATORS))
def test_a_quoted_number_is_found_with_its_value(whole: int, separator: str) -> None:
    assert values(f"It is {grouped(whole, separator)} in all.") == [str(whole)]


@settings(deadline=None)
@given(st.integers(100, 10**6), st.integers(100, 10**6))
def test_a_longer_number_never_backs_a_shorter_one(short: int, long: int) -> None:
    if str(short) != str(long):
        assert str(short) not in numbers_in(f"printed {long} today")


@settings(deadline=None)
@given(st.decimals(0, 10**6, places=2, allow_nan=False))
def test_trailing_zeros_make_no_difference(value: object) -> None:
    assert canonical(f"{value}0") == canonical(str(value))
    assert canonical(str(value)) in numbers_in(f"took {value} dollars")


@settings(deadline=None)
@given(st.lists(st.integers(0, 999), min_size=1, max_size=6))
def test_each_number_of_a_list_stays_readable(listed: list[int]) -> None:
    for text in (" ".join(map(str, listed)), str(listed), ",".join(map(str, listed))):
        assert {canonical(str(number)) for number in listed} <= numbers_in(text)


@settings(deadline=None)
@given(st.text("0123456789 ,._%x×$`()[]{}#@-\n", max_size=60))
def test_any_text_can_be_read(source: str) -> None:
    for quote in quoted(source):
        assert re.fullmatch(r"\d+(\.\d+)?", quote.value)
        assert source[quote.start :].startswith(quote.written)
    numbers_in(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("limit = 5_000", {"5000"}),
        ("assert paid == [9999, 4999]", {"9999", "4999"}),
        ('print(f"at most {n} of 250 cents")', {"250"}),
        ("rate = 0.25; small = 1e-4", {"0.25", "0.0001"}),
        ('f(b"300")', {"300"}),
        ('def f():\n    """Costs 700."""\n    return 3', {"3"}),
        ("x = 1  # 800 in a comment", {"1"}),
        ("%time 900", set()),
        ("rows = 10**6", {"10", "6", "1000000"}),
        ("print('about 1e3 and 10^4')", {"1", "3", "10", "4", "1000", "10000"}),
        ("#| echo: false\nhidden = 600", set()),
        ("#| echo: false\nassert hidden == 600", {"600"}),
        ("#| include: false\nassert 1_000 < x, 'over 2000'", {"1000", "2000"}),
    ],
)
def test_literals_of_shown_cells_and_asserts_of_any_count(source: str, expected: set[str]) -> None:
    assert code_values(source) == expected


def number_problems(root: Path) -> list[str]:
    return [problem.message for problem in check.run(book.load(root)) if problem.rule == "number"]


def test_an_output_backs_a_number(built_book: Path) -> None:
    answer("4 242")(built_book)
    assert number_problems(built_book)
    printed("4242")(built_book)
    assert number_problems(built_book) == []


def test_a_plots_printed_values_back_a_number_and_its_coordinates_do_not(built_book: Path) -> None:
    answer("4 242")(built_book)

    def redraw(comment: str) -> None:
        svg = f'<svg><style>.a{{x:4242}}</style><path d="M4242 0"/>{comment}</svg>'
        show = in_notebook(lambda code: code[2]["outputs"][0]["data"].update({"image/svg+xml": svg}))
        show(built_book)

    redraw("")
    assert number_problems(built_book)
    redraw("<!-- 4\u202f242 -->")
    assert number_problems(built_book) == []
    redraw("<text>4<tspan> 242</tspan></text>")
    assert number_problems(built_book) == []


def test_a_number_of_another_chapter_backs_nothing(built_book: Path) -> None:
    answer("4 242")(built_book)
    replace(built_book / "chapters/02-words.md", "# any word will do", "assert 4242 == 4242")
    assert number_problems(built_book)


def test_the_header_lists_what_is_told(built_book: Path) -> None:
    answer("4 242, or 58 % of $10^6$ for a 7B model")(built_book)
    header = 'name: python3}\nbookkit:\n  numbers: ["4 242", "58 %", "1e6", "7B"]\n'
    replace(built_book / NUMBERS, "name: python3}\n", header)
    assert number_problems(built_book) == []


def test_without_a_notebook_that_is_the_only_complaint(built_book: Path) -> None:
    answer("4 242")(built_book)
    (built_book / "chapters/01-numbers.ipynb").unlink()
    assert number_problems(built_book) == []
