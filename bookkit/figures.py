"""The plotted figures of a chapter: one style, SVG only, the same bytes on every run.

    from bookkit import figures
    figures.style()
    figures.bars({"no gate": 9999, "gate": 4999}, limit=5000, unit="cents refunded")

A labelled cell (`#| label: fig-gate-two-runs`) names its figure, and the name is the salt of every identifier
in the SVG. Each function shows one figure and returns None, so a cell may end with it.
"""

from __future__ import annotations

import io
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import TypeAlias

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from bookkit import svg

Panel: TypeAlias = Callable[[Axes], None]
Series: TypeAlias = Sequence[float] | tuple[Sequence[float], Sequence[float]]

STYLE = Path(__file__).parent / "theme" / "book.mplstyle"
WIDTH = 6.0  # inches; on a phone the page shrinks it to about two thirds, where 12 points can still be read
BAR_HEIGHT = 0.42  # inches a bar
LINES_HEIGHT = 3.6  # inches
NAME_WIDTH = 24  # characters before the name of a bar is wrapped
LABEL_HEIGHT = 20  # points that a name beside a line takes, with what the layout takes from the axes
MARKERS = "osD^vPX"
DASHES = ("-", "--", "-.", ":")
MOST_MARKED_POINTS = 25
STYLE_ELEMENT = re.compile(r"\s*<defs>\s*<style[^>]*>\*\{[^<]*</style>\s*</defs>")
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def style() -> None:
    """Use the book's style for every figure of this kernel, drawn by this module or not."""
    matplotlib.rc_file(STYLE)


def show(figure: Figure) -> None:
    """Show any matplotlib figure as deterministic SVG and forget it.

    The output's plain text is the label of the running cell.
    """
    name = svg.running_cell.next_name()
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    if pyplot := sys.modules.get("matplotlib.pyplot"):  # else the inline backend would show it a second time
        pyplot.close(figure)
    svg.show_svg(svg.prefix_ids(_contained(buffer.getvalue()), name), name)


def bars(
    values: Mapping[str, float], *, unit: str = "", limit: float | None = None, limit_label: str | None = None
) -> None:
    """One horizontal bar a name with its value printed on it, and a dashed line at `limit`.

    `limit_label` defaults to "limit" and the number. Raises ValueError without a value, or for one that
    is not finite.
    """
    height = BAR_HEIGHT * len(values) + 0.9
    _show_panels(
        [lambda axes: draw_bars(axes, values, unit=unit, limit=limit, limit_label=limit_label)], [height]
    )


def grouped_bars(groups: Mapping[str, Mapping[str, float]], *, unit: str = "") -> None:
    """Bars of several series in each group: `{group: {series: value}}`; a missing value has no bar."""
    height = BAR_HEIGHT * sum(0.8 * len(group) + 0.5 for group in groups.values()) + 1.2
    _show_panels([lambda axes: draw_grouped_bars(axes, groups, unit=unit)], [height])


def lines(
    series: Mapping[str, Series],
    *,
    x: str = "",
    y: str = "",
    limit: float | None = None,
    limit_label: str | None = None,
    log_y: bool = False,
) -> None:
    """One line a series, its name at its end (in a legend when ends differ), and a dashed line at `limit`.

    A series is a sequence of values for 1, 2, 3 …, or a pair `(xs, ys)`. `x` and `y` name the axes with their
    units.
    """

    def panel(axes: Axes) -> None:
        draw_lines(axes, series, x=x, y=y, limit=limit, limit_label=limit_label, log_y=log_y)

    _show_panels([panel], [LINES_HEIGHT])


def panels(titled: Mapping[str, Panel], *, columns: int = 1, height: float = 1.9) -> None:
    """Several drawings in one figure, each with its title: `{"calls": lambda axes: draw_bars(axes, {…})}`.

    One column by default, which a phone can show; `height` is that of one row, in inches.
    """
    if not titled:
        raise ValueError("panels: nothing to draw; pass at least one titled panel")
    rows = math.ceil(len(titled) / columns)
    _show_panels([_titled(title, panel) for title, panel in titled.items()], [height] * rows, columns)


def draw_bars(
    axes: Axes,
    values: Mapping[str, float],
    *,
    unit: str = "",
    limit: float | None = None,
    limit_label: str | None = None,
) -> None:
    """What `bars` shows, on axes of your own."""
    _require_finite("bars", values)
    drawn = axes.barh(_wrapped(values), list(values.values()), height=0.64, color="C0")
    _print_values(axes, drawn, values.values())
    _bare_value_axis(axes, unit)
    if limit is not None:
        _limit_above(axes, limit, limit_label or f"limit {number(limit)}")


def draw_grouped_bars(axes: Axes, groups: Mapping[str, Mapping[str, float]], *, unit: str = "") -> None:
    """What `grouped_bars` shows, on axes of your own."""
    for group, values in groups.items():
        _require_finite(f"grouped_bars: {group}", values)
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    _require_some("grouped_bars", names)
    tall = 0.8 / len(names)
    for index, name in enumerate(names):
        there = [(row, values[name]) for row, values in enumerate(groups.values()) if name in values]
        places = [row + (index - (len(names) - 1) / 2) * tall for row, _ in there]
        drawn = axes.barh(
            places, [value for _, value in there], height=tall * 0.92, color=f"C{index}", label=name
        )
        _print_values(axes, drawn, [value for _, value in there])
    axes.set_yticks(range(len(groups)), _wrapped(groups))
    _bare_value_axis(axes, unit)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(names), 3), borderaxespad=0.2)


def draw_lines(
    axes: Axes,
    series: Mapping[str, Series],
    *,
    x: str = "",
    y: str = "",
    limit: float | None = None,
    limit_label: str | None = None,
    log_y: bool = False,
) -> None:
    """What `lines` shows, on axes of your own."""
    _require_some("lines", series)
    ends: list[tuple[str, float, float]] = []
    is_whole = True
    for index, (name, values) in enumerate(series.items()):
        xs, ys = _points(name, values)
        marker = MARKERS[index % len(MARKERS)] if len(xs) <= MOST_MARKED_POINTS else ""
        dashes = DASHES[index % len(DASHES)]
        axes.plot(xs, ys, marker=marker, linestyle=dashes, color=f"C{index}", label=textwrap.fill(name, 18))
        ends.append((name, xs[-1], ys[-1]))
        is_whole = is_whole and all(float(value).is_integer() for value in ys)
    _plain_axes(axes, x, y, log_y)
    if is_whole and not log_y:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if limit is not None:
        _limit_across(axes, limit, limit_label or f"limit {number(limit)}")
    if len(series) > 1:
        _name_ends(axes, ends)


def number(value: float) -> str:
    """A value as the figures print it: `9 999` with a narrow space, else three significant digits."""
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f").replace("-", "\u2212")
    return f"{value:.3g}".replace("-", "\u2212")


def _contained(picture: str) -> str:
    """The picture without a rule for every element of the page (`*`), and without the program's name."""
    picture = STYLE_ELEMENT.sub("", picture, count=1).replace('id="matplotlib.', 'id="')
    return picture.replace("<svg ", '<svg style="stroke-linejoin: round; stroke-linecap: butt" ', 1)


def _show_panels(drawn: Sequence[Panel], heights: Sequence[float], columns: int = 1) -> None:
    """One figure of the book's width, `heights` inches a row, with every panel drawn on axes of its own."""
    with matplotlib.rc_context(fname=STYLE):
        figure = Figure(figsize=(WIDTH, sum(heights)))
        for place, panel in enumerate(drawn, start=1):
            panel(figure.add_subplot(len(heights), columns, place))
        show(figure)


def _titled(title: str, panel: Panel) -> Panel:
    def draw(axes: Axes) -> None:
        panel(axes)
        axes.set_title(title, pad=10)

    return draw


def _require_some(what: str, values: Iterable[object]) -> None:
    if not list(values):
        raise ValueError(f"{what}: nothing to draw; pass at least one value")


def _require_finite(what: str, values: Mapping[str, float]) -> None:
    _require_some(what, values)
    for name, value in values.items():
        if not isinstance(value, Real):
            raise ValueError(f"{what}: {name!r} is {value!r}, which is no number")
        if not math.isfinite(value):
            raise ValueError(f"{what}: {name!r} is {value}, which has no place on an axis")


def _points(name: str, values: Series) -> tuple[list[float], list[float]]:
    """The x and y values of one series; a bare sequence is numbered from 1."""
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], Sequence):
        xs, ys = list(values[0]), list(values[1])
    else:
        xs, ys = [float(place) for place in range(1, len(values) + 1)], list(values)
    if len(xs) != len(ys) or not xs:
        raise ValueError(
            f"lines: {name!r} has {len(xs)} x values and {len(ys)} y values; give it one of each a point"
        )
    _require_finite(f"lines: {name}", {f"point {place}": value for place, value in enumerate(ys, start=1)})
    return xs, ys


def _wrapped(names: Iterable[str]) -> list[str]:
    return [textwrap.fill(name, NAME_WIDTH) for name in names]


def _print_values(axes: Axes, drawn: BarContainer, values: Iterable[float]) -> None:
    """The value of each bar beside its end, readable over a limit line."""
    backing = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    labels = axes.bar_label(drawn, [number(value) for value in values], padding=5)
    for label in labels:
        label.set_bbox(backing)


def _bare_value_axis(axes: Axes, unit: str) -> None:
    """Every bar carries its value, so the value axis has a name and nothing else; the first bar is on top."""
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(NullLocator())
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.axvline(0, color="#8a9099", linewidth=1.0)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.16)
    axes.set_xlabel(unit, loc="left")


def _limit_above(axes: Axes, limit: float, label: str) -> None:
    """A dashed line across horizontal bars, named above them."""
    axes.axvline(limit, color="#1f2328", linestyle=(0, (4, 3)), linewidth=1.4)
    left, right = axes.get_xlim()
    share = (limit - left) / (right - left)
    side = "right" if share > 0.6 else "left" if share < 0.3 else "center"
    axes.annotate(label, (limit, 1), xycoords=("data", "axes fraction"), xytext=(0, 4),
                  textcoords="offset points", ha=side, va="bottom")  # fmt: skip


def _limit_across(axes: Axes, limit: float, label: str) -> None:
    """A dashed line across a plot, named above its left end."""
    axes.axhline(limit, color="#1f2328", linestyle=(0, (4, 3)), linewidth=1.4)
    axes.annotate(label, (0, limit), xycoords=("axes fraction", "data"), xytext=(4, 4),
                  textcoords="offset points", ha="left", va="bottom")  # fmt: skip


def _plain_axes(axes: Axes, x: str, y: str, log_y: bool) -> None:
    """Named axes with readable numbers, whole ones below, from zero unless the scale is logarithmic."""
    axes.grid(axis="y")
    axes.tick_params(length=0)
    axes.set_xlabel(x)
    axes.set_title(
        y, fontsize=12, fontweight="normal", pad=10
    )  # read from left to right, not turned by 90 degrees
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def _name_ends(axes: Axes, ends: Sequence[tuple[str, float, float]]) -> None:
    """Each line's name right of the plot, at the height of its end, moved apart where two would touch.

    Lines that end elsewhere than at the right edge are named in a legend, there too.
    """
    if len({x for _, x, _ in ends}) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
        return
    lift = axes.transData.transform
    low, high = (axes.transAxes.transform((0, share))[1] for share in (0, 1))
    wanted = sorted(
        (float((lift((x, y))[1] - low) / (high - low)), place) for place, (_, x, y) in enumerate(ends)
    )
    gap = LABEL_HEIGHT * axes.get_figure(root=True).dpi / 72 / (high - low)  # type: ignore[union-attr]
    heights = _apart([height for height, _ in wanted], gap)
    for height, (_, place) in zip(heights, wanted, strict=True):
        name = textwrap.fill(ends[place][0], 18)
        axes.annotate(name, (1, height), xycoords="axes fraction", xytext=(6, 0), textcoords="offset points",
                      va="center", color=_darker(f"C{place}"))  # fmt: skip


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Rising heights with at least `gap` between neighbours, moved up as little as that needs."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else height)
    excess = max(0.0, moved[-1] - 1.0) if moved else 0.0
    return [height - excess for height in moved]


def _darker(colour: str) -> tuple[float, float, float]:
    """A colour that stands out enough from white to be read as text."""
    red, green, blue = to_rgb(colour)
    return 0.7 * red, 0.7 * green, 0.7 * blue
