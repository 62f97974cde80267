"""Figures are SVG, the same bytes in every process, and their identifiers belong to one label."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from bookkit import figures, svg

Shown = list[dict[str, str]]

DRAW_ALL = """
from types import SimpleNamespace
from bookkit import figures, svg
svg.display = lambda data, raw: print(data["image/svg+xml"])
svg.running_cell.start(SimpleNamespace(raw_cell="#| label: fig-all"))
figures.style()
figures.bars({"a": 9999, "b": 0.5}, limit=5000, unit="cents")
figures.grouped_bars({"g": {"x": 1, "y": 2}, "h": {"x": 3}}, unit="calls")
figures.lines({"agent": [1, 4, 9], "fixed": ([1, 3], [2, 2])}, x="turn", y="tokens", limit=5)
figures.lines({"agent": [1, 40, 900]}, log_y=True)
figures.panels({"one": lambda axes: figures.draw_bars(axes, {"a": 1})})
"""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The outputs displayed so far, in a cell labelled fig-toy-bars."""
    outputs: Shown = []
    monkeypatch.setattr(svg, "display", lambda data, raw: outputs.append(data))
    monkeypatch.setattr(svg, "running_cell", svg.RunningCell())
    start_cell("#| label: fig-toy-bars\nfigures.bars({})")
    return outputs


def start_cell(source: str) -> None:
    svg.running_cell.start(SimpleNamespace(raw_cell=source))


def written_texts(picture: str) -> list[str]:
    """The texts of a plot; matplotlib leaves each as a comment beside its outlines."""
    builder = ET.TreeBuilder(insert_comments=True)
    root = ET.fromstring(picture, parser=ET.XMLParser(target=builder))
    return [(element.text or "").strip() for element in root.iter() if element.tag is ET.Comment]


def test_two_processes_with_different_hash_seeds_draw_the_same_bytes() -> None:
    def draw(seed: str) -> bytes:
        return subprocess.run(
            [sys.executable, "-c", DRAW_ALL],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=Path(figures.__file__).parents[1],
            capture_output=True,
            check=True,
        ).stdout

    first = draw("1")
    assert first.count(b"<svg") == 5
    assert first == draw("2")


def test_an_output_is_svg_beside_the_label_and_nothing_else(shown: Shown) -> None:
    figures.bars({"a": 1})
    assert [set(output) for output in shown] == [{"image/svg+xml", "text/plain"}]
    assert shown[0]["text/plain"] == "fig-toy-bars"
    assert shown[0]["image/svg+xml"].startswith("<svg ")
    assert ET.fromstring(shown[0]["image/svg+xml"]).tag == "{http://www.w3.org/2000/svg}svg"


def test_nothing_tells_when_or_with_what_a_figure_was_drawn(shown: Shown) -> None:
    figures.bars({"a": 1})
    picture = shown[0]["image/svg+xml"].lower()
    assert "metadata" not in picture and "matplotlib" not in picture and "<?xml" not in picture


def test_text_is_drawn_as_outlines_so_that_no_font_is_needed(shown: Shown) -> None:
    figures.bars({"no gate": 9999}, limit=5000, limit_label="the limit", unit="cents")
    picture = shown[0]["image/svg+xml"]
    assert "<text" not in picture
    assert {"no gate", "9\u202f999", "the limit", "cents"} <= set(written_texts(picture))


def test_every_identifier_starts_with_the_label_and_every_reference_resolves(shown: Shown) -> None:
    figures.lines({"agent": [1, 2], "fixed": [1, 1]})
    picture = shown[0]["image/svg+xml"]
    identifiers = set(svg.IDENTIFIER.findall(picture))
    assert identifiers and all(name.startswith("fig-toy-bars-") for name in identifiers)
    references = set(svg.REFERENCE.findall(picture))
    assert references and references <= identifiers


def test_two_figures_of_one_cell_share_no_identifier(shown: Shown) -> None:
    figures.bars({"a": 1})
    figures.bars({"a": 1})
    first, second = (set(svg.IDENTIFIER.findall(output["image/svg+xml"])) for output in shown)
    assert first.isdisjoint(second)
    assert [output["text/plain"] for output in shown] == ["fig-toy-bars", "fig-toy-bars-2"]


def test_a_cell_without_a_label_still_shows_its_figure(shown: Shown) -> None:
    start_cell("figures.bars({'a': 1})")
    figures.bars({"a": 1})
    assert shown[0]["text/plain"] == "figure"


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("#| label: fig-a\nx", "fig-a"),
        ("#| echo: false\n#|label: 'fig-b'\nx", "fig-b"),
        ('#| label: "fig-c"', "fig-c"),
        ("x = 1\n#| label: fig-late", "figure"),
        ("# a comment\n#| label: fig-late", "figure"),
        ("", "figure"),
    ],
)
def test_the_label_is_read_from_the_options_that_open_the_cell(source: str, label: str) -> None:
    assert svg.cell_label(source) == label


def test_a_figure_of_the_readers_own_is_shown_the_same_way(shown: Shown) -> None:
    figure = Figure()
    figure.add_subplot().plot([1, 2, 3])
    figures.show(figure)
    assert shown[0]["text/plain"] == "fig-toy-bars"


def test_showing_a_pyplot_figure_closes_it(shown: Shown) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot([1, 2])
    figures.show(figure)
    assert not pyplot.fignum_exists(figure.number)
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (9999, "9\u202f999"),
        (110800, "110\u202f800"),
        (4999.0, "4\u202f999"),
        (-12, "\u221212"),
        (4.75, "4.75"),
        (2.9, "2.9"),
        (0.0042, "0.0042"),
        (-0.5, "\u22120.5"),
        (0, "0"),
    ],
)
def test_numbers_are_printed_as_the_prose_writes_them(value: float, printed: str) -> None:
    assert figures.number(value) == printed


def test_lines_are_named_at_their_ends_and_in_a_legend_when_they_end_apart(shown: Shown) -> None:
    figures.lines({"agent": [1, 2, 3], "fixed": [1, 1, 1]})
    figures.lines({"agent": [1, 2, 3], "fixed": [1, 1]})
    together, apart = (output["image/svg+xml"] for output in shown)
    assert "legend" not in together and "legend" in apart
    assert all({"agent", "fixed"} <= set(written_texts(picture)) for picture in (together, apart))


def test_a_lone_line_is_named_by_its_axis(shown: Shown) -> None:
    figures.lines({"agent": [1, 2, 3]}, y="prompt tokens")
    texts = written_texts(shown[0]["image/svg+xml"])
    assert "prompt tokens" in texts and "agent" not in texts


def test_a_dollar_sign_is_text_and_not_a_formula(shown: Shown) -> None:
    figures.bars({"$5 and $6_a": 1}, unit="$")
    assert {"$5 and $6_a", "$"} <= set(written_texts(shown[0]["image/svg+xml"]))


def refuse(call: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call()


def test_what_cannot_be_drawn_is_refused_by_name(shown: Shown) -> None:
    refuse(lambda: figures.bars({}), "bars: nothing to draw")
    refuse(lambda: figures.bars({"a": float("nan")}), "bars: 'a' is nan")
    refuse(lambda: figures.bars({"a": "9"}), "bars: 'a' is '9', which is no number")
    refuse(lambda: figures.bars({"a": None}), "bars: 'a' is None, which is no number")
    refuse(lambda: figures.grouped_bars({}), "grouped_bars: nothing to draw")
    refuse(lambda: figures.grouped_bars({"g": {"a": float("inf")}}), "grouped_bars: g: 'a' is inf")
    refuse(lambda: figures.lines({}), "lines: nothing to draw")
    refuse(lambda: figures.lines({"a": []}), "lines: 'a' has 0 x values and 0 y values")
    refuse(lambda: figures.lines({"a": ([1, 2], [1])}), "lines: 'a' has 2 x values and 1 y values")
    refuse(lambda: figures.panels({}), "panels: nothing to draw")
    assert shown == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).map(sorted))
def test_names_at_the_ends_of_lines_keep_their_order_and_their_distance(heights: list[float]) -> None:
    moved = figures._apart(heights, gap=0.09)
    assert all(high - low >= 0.09 - 1e-9 for low, high in pairwise(moved))
    assert max(moved) <= 1.0 + 1e-9


names = st.text(st.characters(max_codepoint=0x17F, categories=("L", "N", "P", "Sc")), min_size=1, max_size=12)


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(names, st.floats(-1e6, 1e6), min_size=1, max_size=4))
def test_any_names_and_values_give_a_well_formed_picture(values: dict[str, float]) -> None:
    outputs: Shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svg, "display", lambda data, raw: outputs.append(data))
        figures.bars(values)
    ET.fromstring(outputs[0]["image/svg+xml"])
