"""Diagrams from Mermaid source as SVG outputs, without a browser, the same bytes on every run.

    from bookkit import diagram
    diagram.mermaid("flowchart TB\\n  propose --> gate --> execute")

The same picture shows in Jupyter, HTML, EPUB and PDF: labels are plain SVG text, never HTML.
"""

from __future__ import annotations

import re
from typing import Any

import mermaidx  # type: ignore[import-untyped]

from bookkit import svg

FONT = '"DejaVu Sans",Verdana,sans-serif'  # what the layout is measured with, then a face of the same widths
TEXT = "#1f2328"
LINE = "#57606a"
THEME = {
    "fontFamily": FONT,
    "fontSize": "16px",
    "primaryColor": "#e8f1f8",
    "primaryBorderColor": "#0072B2",
    "primaryTextColor": TEXT,
    "secondaryColor": "#fdf0e6",
    "tertiaryColor": "#f4f6f8",
    "tertiaryBorderColor": "#8a9099",
    "lineColor": LINE,
    "textColor": TEXT,
    "clusterBkg": "#f7f8fa",
    "clusterBorder": "#8a9099",
    "edgeLabelBackground": "#ffffff",
    "noteBkgColor": "#fff8e1",
    "noteBorderColor": "#b8860b",
    "noteTextColor": TEXT,
    "actorBkg": "#e8f1f8",
    "actorBorder": "#0072B2",
    "actorTextColor": TEXT,
    "actorLineColor": "#8a9099",
    "signalColor": LINE,
    "signalTextColor": TEXT,
    "labelBoxBkgColor": "#f4f6f8",
    "labelBoxBorderColor": "#8a9099",
    "labelTextColor": TEXT,
    "loopTextColor": TEXT,
    "sequenceNumberColor": "#ffffff",
}
OPAQUE_LABELS = (
    ".edgeLabel .label rect, .edgeLabel rect, .edgeLabel .background { opacity: 1; fill: #ffffff; }"
)
SEQUENCE = {  # messages wrap, so that four participants fit a phone
    "wrap": True,
    "width": 150,
    "height": 44,
    "actorMargin": 44,
    "messageMargin": 38,
    "diagramMarginX": 10,
    "mirrorActors": False,
}
OWN_ID = "my-svg"  # mermaidx calls every picture so
COORDINATES = re.compile(
    r'(?<=\s)(d|points|transform|x|y|x1|x2|y1|y2|cx|cy|r|rx|ry|dx|dy|width|height|viewBox)="([^"]*)"'
)
VIEW = re.compile(r'(?P<start>viewBox="\S+ \S+ )(?P<width>\S+) (?P<height>[\d.]+)')
ROOM_BELOW = 8  # pixels
LONG_DECIMAL = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")


def mermaid(source: str) -> None:
    """Show a Mermaid diagram as the running cell's figure.

    Raises ValueError with Mermaid's own reason when the source cannot be drawn.
    """
    name = svg.running_cell.next_name()
    svg.show_svg(draw(source, name), name)


def draw(source: str, name: str) -> str:
    """The diagram as SVG whose identifiers start with `name`. Raises ValueError as `mermaid` does."""
    try:
        drawn = mermaidx.render(source, theme="base", config=_config()).svg()
    except RuntimeError as error:
        raise ValueError(f"{name}: Mermaid cannot draw this: {error}") from None
    return svg.prefix_ids(_tidy(drawn).replace(OWN_ID, name), name)


def _config() -> dict[str, Any]:
    """Mermaid's settings: text as SVG, and nothing that differs from run to run."""
    return {
        "htmlLabels": False,
        "handDrawnSeed": 1,
        "deterministicIds": True,
        "themeVariables": THEME,
        "themeCSS": OPAQUE_LABELS,
        "fontFamily": FONT,
        "flowchart": {"htmlLabels": False, "nodeSpacing": 28, "rankSpacing": 38, "wrappingWidth": 150},
        "class": {"htmlLabels": False},
        "state": {"htmlLabels": False, "nodeSpacing": 28, "rankSpacing": 38},
        "sequence": SEQUENCE,
        "journey": {"textPlacement": "tspan"},
        "timeline": {"textPlacement": "tspan"},
    }


def _tidy(drawn: str) -> str:
    """A picture of fixed size, coordinates to a hundredth of a pixel, without the renderer's leftovers."""
    drawn = re.sub(r'\sdata-points="[^"]*"', "", drawn)
    drawn = COORDINATES.sub(lambda found: f'{found[1]}="{LONG_DECIMAL.sub(_hundredth, found[2])}"', drawn)
    drawn = VIEW.sub(_with_room_below, drawn, count=1)
    width, height = VIEW.search(drawn).group("width", "height")  # type: ignore[union-attr]  # all have one
    head, rest = drawn.split(">", 1)
    head = re.sub(r'\s(?:width|height|style|role|aria-roledescription)="[^"]*"', "", head)
    return f'{head} width="{width}" height="{height}" style="background-color: #ffffff">{rest}'


def _with_room_below(found: re.Match[str]) -> str:
    """The view a little taller: the last number of a sequence would be cut in half."""
    height = LONG_DECIMAL.sub(_hundredth, str(float(found["height"]) + ROOM_BELOW))
    return f"{found['start']}{found['width']} {height.removesuffix('.0')}"


def _hundredth(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
