"""A chapter's text is read as the cells that notebook tools see, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import HEADER

from bookkit import text
from bookkit.errors import BookError

PATH = Path("chapters/01-x.md")


def cells(content: str) -> list[tuple[str, str]]:
    return [(cell.kind, cell.source) for cell in text.parse(content, PATH).cells]


def one_code_cell(source: str) -> text.Cell:
    return text.parse(f"```python\n{source}\n```\n", PATH).cells[0]


def error_of(content: str) -> BookError:
    with pytest.raises(BookError) as caught:
        text.parse(content, PATH)
    return caught.value


def test_prose_and_fences_become_cells_with_their_lines() -> None:
    read = text.parse(f"{HEADER}\n# One\n\nprose\n\n```python\nx = 1\ny\n```\n\nmore\n", PATH)
    assert [(c.index, c.kind, c.source, c.line) for c in read.cells] == [
        (0, "markdown", "# One\n\nprose", 8),
        (1, "code", "x = 1\ny", 13),
        (2, "markdown", "more", 17),
    ]
    assert read.header["jupyter"]["kernelspec"]["name"] == "python3"
    assert read.header_text == HEADER


def test_two_blank_lines_split_a_markdown_cell() -> None:
    assert cells("a\n\nb\n\n\nc\n") == [("markdown", "a\n\nb"), ("markdown", "c")]


def test_a_region_keeps_blank_lines_in_one_cell() -> None:
    assert cells("<!-- #region -->\na\n\n\nb\n<!-- #endregion -->\n") == [("markdown", "a\n\n\nb")]


def test_options_are_yaml_and_are_not_code() -> None:
    cell = one_code_cell('#| label: fig-x\n#| fig-cap: "Is it: so?"\nplot()')
    assert cell.options == {"label": "fig-x", "fig-cap": "Is it: so?"}
    assert cell.code == "plot()"
    assert cell.source.startswith("#| label")


def test_an_unquoted_colon_in_an_option_is_refused_at_its_line() -> None:
    error = error_of("prose\n\n```python\n#| label: fig-x\n#| fig-cap: Is it: so?\nplot()\n```\n")
    assert (error.line, error.cell) == (5, 2)
    assert "Quote" in str(error)


@pytest.mark.parametrize("label", ["2024-01-01", "5", "[fig-x]", "{fig: x}"])
def test_a_label_that_yaml_reads_as_no_word_is_refused(label: str) -> None:
    error = error_of(f"```python\n#| label: {label}\nplot()\n```\n")
    assert (error.cell, "the label is no word" in str(error)) == (1, True)


def test_tags_follow_the_language() -> None:
    read = text.parse('```python tags=["raises-exception"]\n1 / 0\n```\n', PATH)
    assert read.cells[0].tags == ("raises-exception",)


@pytest.mark.parametrize("info", ['active="ipynb"', "tags=[raises]", "tags=7", ".noeval"])
def test_any_other_cell_metadata_is_refused(info: str) -> None:
    error = error_of(f"```python {info}\n1\n```\n")
    assert error.line == 1
    assert info in str(error)


@pytest.mark.parametrize("language", ["bash", "sh", "sql", "html", "markdown", "json", ""])
def test_a_backtick_fence_in_prose_is_refused_because_it_would_become_a_cell(language: str) -> None:
    error = error_of(f"one\n\n```{language}\nls\n```\n")
    assert error.line == 3
    assert f"~~~{language}" in str(error)


def test_a_tilde_fence_stays_prose() -> None:
    source = "See:\n\n~~~python\nx = 1\n~~~"
    assert cells(source + "\n") == [("markdown", source)]


def test_a_tilde_fence_that_two_blank_lines_would_split_is_refused() -> None:
    error = error_of("See:\n\n~~~python\nx = 1\n\n\ny = 2\n~~~\n")
    assert error.line == 3
    assert "does not end in its Markdown cell" in str(error)


def test_a_fence_inside_a_code_cell_needs_a_longer_fence_around_it() -> None:
    error = error_of('```python\nx = """\n```json\n"""\n```\n')
    assert (error.line, "````python" in str(error)) == (3, True)
    assert cells('````python\nx = """\n```json\n"""\n````\n') == [("code", 'x = """\n```json\n"""')]


@pytest.mark.parametrize(
    "content, line",
    [("a\n\n```python\nx\n", 3), ("<!-- #region -->\nx\n", 1), ("---\na: 1\n", 1)],
)
def test_what_is_never_closed_is_refused_where_it_opens(content: str, line: int) -> None:
    assert error_of(content).line == line


def test_an_empty_code_cell_is_refused() -> None:
    assert error_of("a\n\n```python\n\n```\n").line == 4


@pytest.mark.parametrize("header, line", [("a: [1", 2), ("- a\n- b", 2), ("x: y: z", 2)])
def test_an_invalid_header_is_refused(header: str, line: int) -> None:
    error = error_of(f"---\n{header}\n---\n\n# One\n")
    assert error.line is not None and error.line >= line
    assert "header" in str(error)


def test_a_text_that_is_not_utf8_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes("# One\n\nna\u00efve\n".encode("latin-1"))
    with pytest.raises(BookError, match="not UTF-8") as caught:
        text.read(path)
    assert caught.value.line == 3


def test_line_ends_of_another_system_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(b"# One\r\n\r\n```python\r\nx = 1\r\n```\r\n")
    assert [cell.source for cell in text.read(path).cells] == ["# One", "x = 1"]


@pytest.mark.parametrize("marker", ["# @save", "#@save", "#  @save"])
def test_a_cell_is_saved_by_its_first_line(marker: str) -> None:
    assert one_code_cell(f"{marker}\nx = 1").save == ""


def test_a_cell_is_saved_below_its_options() -> None:
    assert one_code_cell("#| echo: false\n# @save\nx = 1").save == ""


def test_a_cell_is_saved_to_a_named_module() -> None:
    assert one_code_cell("# @save extras\nx = 1").save == "extras"


@pytest.mark.parametrize(
    "source",
    ['x = "# @save"', 'x = """\n# @save\n"""', "# @saved", "# @ save", "# see @save", "%magic '# @save'"],
)
def test_a_marker_in_a_string_or_a_word_like_it_saves_nothing(source: str) -> None:
    assert one_code_cell(source).save is None


@pytest.mark.parametrize(
    "source, line",
    [
        ("x = 1\n# @save", 3),
        ("# a comment\n# @save\nx = 1", 3),
        ("x = 1  # @save", 2),
        ("# @save\nx = 1\n# @save", 4),
        ("# @save\n#| echo: false\nx = 1", 3),
        ("# @save My-Module\nx = 1", 2),
        ("# @save class\nx = 1", 2),
    ],
)
def test_a_marker_that_would_save_nothing_is_refused_at_its_line(source: str, line: int) -> None:
    error = error_of(f"```python\n{source}\n```\n")
    assert (error.line, error.cell) == (line, 1)
    assert "# @save" in str(error) and "\n" in str(error)


@pytest.mark.parametrize(
    "source, found",
    [
        ("# The gate {#sec-gate}", "The gate"),
        ("## A {.x} b {#s .unnumbered}\n\ntext", "A {.x} b"),
        ("# One\n\n## Two ##", "Two"),
        ("~~~python\n# no heading\n~~~", None),
        ("#hash", None),
    ],
)
def test_the_heading_of_a_cell(source: str, found: str | None) -> None:
    assert text.heading(text.Cell(0, "markdown", source, 1)) == found


# Jupytext, which readers open chapters with, is the oracle.

LINE = st.sampled_from(
    ["", "", "", " ", "prose", "# Heading", "    indented", "- item", "::: {.a}", ":::", "---"]
)
CODE = st.lists(
    st.sampled_from(["x = 1", "", "    y = 2", "# comment", "#| echo: false"]), min_size=1, max_size=4
)
PIECE = st.one_of(
    st.lists(LINE, min_size=1, max_size=5),
    CODE.map(lambda code: ["```python", *code, "```"]),
    CODE.map(lambda code: ['````python tags=["a", "b"]', *code, "```json", "````"]),
    st.lists(LINE, max_size=3).map(lambda lines: ["<!-- #region -->", *lines, "<!-- #endregion -->"]),
    st.just(["<!-- #raw -->", "raw", "<!-- #endraw -->"]),
    st.just(["~~~python", "x = 1", "~~~"]),
    st.sampled_from(["```", "```python", "~~~", "<!-- #region -->"]).map(lambda line: [line]),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECE, max_size=6))
def test_every_text_that_is_accepted_has_the_cells_that_jupytext_reads(pieces: list[list[str]]) -> None:
    jupytext = pytest.importorskip("jupytext")
    content = f"{HEADER}\n" + "".join(line + "\n" for lines in pieces for line in lines)
    try:
        mine = [
            (cell.kind, cell.source, list(cell.tags))
            for cell in text.parse(content, PATH).cells
            if cell.source
        ]
    except BookError:
        return
    theirs = [
        (cell.cell_type, cell.source, cell.metadata.get("tags", []))
        for cell in jupytext.reads(content, fmt="md").cells
        if cell.source.strip() or cell.cell_type == "raw"
    ]
    assert mine == [cell for cell in theirs if cell[1]]
