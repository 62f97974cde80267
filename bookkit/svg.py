"""Show an SVG as the one output of a notebook cell, the same bytes on every run.

What `figures` and `diagram` share: which cell is running (its `#| label:` names the figure), identifiers that
cannot collide with those of another figure on the same page, and the display itself.
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display

UNLABELLED = "figure"
LABEL_OPTION = re.compile(r"#\|\s*label:\s*(?P<label>\S+)\s*$")
PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
IDENTIFIER = re.compile(r'(?<=\sid=")[^"]+')
REFERENCE = re.compile(
    r'(?<=href="#)[^"]+|(?<=url\(#)[^)]+|(?<=aria-labelledby=")[^"]+|(?<=aria-describedby=")[^"]+'
)


def cell_label(source: str) -> str:
    """The `#| label:` among the option lines that open a cell, else `UNLABELLED`."""
    for line in source.splitlines():
        if not line.startswith("#|"):
            break
        if found := LABEL_OPTION.match(line):
            return found["label"].strip("'\"")
    return UNLABELLED


class RunningCell:
    """The label of the cell that runs now, and how many figures it has shown."""

    def __init__(self) -> None:
        self.label = UNLABELLED
        self.shown = 0

    def start(self, info: Any) -> None:
        """A cell starts (IPython's `pre_run_cell` event)."""
        self.label = cell_label(info.raw_cell)
        self.shown = 0

    def watch(self) -> None:
        """Follow the cells of this kernel; without one every figure is called `UNLABELLED`."""
        if shell := get_ipython():
            shell.events.register("pre_run_cell", self.start)

    def next_name(self) -> str:
        """The name of the figure about to be shown: the cell's label, then label-2, label-3 …"""
        self.shown += 1
        return self.label if self.shown == 1 else f"{self.label}-{self.shown}"


# One a kernel, watching from the import on: the cell that imports a drawing module precedes those that draw.
running_cell = RunningCell()
running_cell.watch()


def prefix_ids(svg: str, prefix: str) -> str:
    """The same picture with every `id`, and every reference to one, starting with `prefix`."""
    bare = {name for name in IDENTIFIER.findall(svg) if not name.startswith(prefix)}

    def renamed(found: re.Match[str]) -> str:
        return f"{prefix}-{found[0]}" if found[0] in bare else found[0]

    return REFERENCE.sub(renamed, IDENTIFIER.sub(renamed, svg))


def show_svg(svg: str, name: str) -> None:
    """Display `svg` as this cell's output; its plain text is the figure's name, which no release changes."""
    picture = PROLOGUE.sub("", svg).strip() + "\n"
    display({"image/svg+xml": picture, "text/plain": name}, raw=True)  # type: ignore[no-untyped-call]
