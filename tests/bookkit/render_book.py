"""A book to render, written as finished notebooks so that nothing has to run.

`write_book(root)` writes it and returns `root`. It holds every form that a page can take: `01-shapes` has
figures, tables, equations, listings, callouts, folds and every kind of output; `chapters/02-words` refers
to it from another page; there is a page of solutions and a preface.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="144pt" height="72pt" viewBox="0 0 144 72">'
    '<path d="M4 68 L140 4" stroke="#0072b2" fill="none"/></svg>'
)
HEADER = """\
---
jupyter:
  jupytext:
    text_representation: {extension: .md, format_name: markdown}
  kernelspec: {display_name: Python 3, language: python, name: python3}
---

"""
QUARTO = """\
project: {type: book, output-dir: _book}
lang: en
bibliography: references.bib
bookkit: {package: shapes}
execute: {enabled: false}
book:
  title: "A Book of Shapes"
  subtitle: "Every form a page can take"
  author: ["Ada Example", "Bo Example"]
  chapters:
    - index.md
    - part: "The parts"
      chapters: [chapters/01-shapes.ipynb, chapters/02-words.ipynb]
    - part: "Solutions"
      chapters: [chapters/solutions/01-shapes.ipynb]
"""
REFERENCES = """\
@article{euler1748,
  author = {Euler, Leonhard}, year = {1748}, journal = {Bousquet},
  title = {Introductio in analysin infinitorum}
}
"""
INDEX = """\
# Preface {#sec-preface .unnumbered}

A book that shows each form once. It begins with @sec-shapes.

![A line drawn by hand](figures/hand.svg)
"""

Cell = str | tuple[str, list[dict[str, Any]]]


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    """What a cell printed."""
    return {"output_type": "stream", "name": name, "text": text}


def display(**data: str) -> dict[str, Any]:
    """What a cell displayed, by format: svg, html, markdown, plain."""
    kinds = {"svg": "image/svg+xml", "html": "text/html", "markdown": "text/markdown", "plain": "text/plain"}
    return {"output_type": "display_data", "data": {kinds[key]: data[key] for key in data}, "metadata": {}}


SHAPES: list[Cell] = [
    "# Shapes {#sec-shapes}\n\nA shape has corners, except when it has none. "
    "See @sec-shapes-line and @tbl-shapes-corners.",
    ("#| include: false\nsecret_setup = 1", [stream("never shown\n")]),
    ('# @save\ndef corners(sides: int) -> int:\n    """As many as sides."""\n    return sides', []),
    (
        "print(corners(3), '<tag>', '```')  # a line that is wider than a telephone, and goes on for a while",
        [stream("3 <tag> ```\n"), stream("\x1b[31mcareful\x1b[0m\n", "stderr")],
    ),
    "## Lines {#sec-shapes-line}\n\n"
    "A line, and its [solution](solutions/01-shapes.ipynb#sec-sol-shapes-line).",
    (
        '#| label: fig-shapes-line\n#| fig-cap: "Where does it *end*?"\n'
        '#| fig-alt: "A \\"line\\", rising."\ndraw()',
        [display(svg=SVG, plain="fig-shapes-line")],
    ),
    (
        '#| label: fig-shapes-pair\n#| fig-cap: "Which is longer?"\n#| fig-subcap: ["one", "two"]\n'
        '#| fig-alt: ["A line", "Another line"]\n#| layout-ncol: 2\n#| echo: false\npair()',
        [display(svg=SVG), display(svg=SVG)],
    ),
    "|  | corners | wide | wider | widest |\n|---|--:|---|---|---|\n"
    "| circle | 0 | `a_long_name_in_code` | words and more words | and the last of them |\n\n"
    ": How many corners? {#tbl-shapes-corners}\n\n"
    "$$\nc = \\sum_{i=1}^{n} s_i\n$$ {#eq-shapes-sum}\n\n"
    "By @eq-shapes-sum, and [-@fig-shapes-line], and "
    "[@fig-shapes-line; @fig-shapes-pair], and [Fig. @fig-shapes-line], and @lst-shapes-pseudo.",
    '~~~{#lst-shapes-pseudo .python lst-cap="A loop"}\nwhile True:\n    pass\n~~~\n\n'
    "~~~bash\npip install shapes  # once\n~~~",
    ("#| code-fold: true\nfolded = 'unfold me'", []),
    ("#| echo: false\nprint('only output')", [stream("only output\n")]),
    (
        '#| label: tbl-shapes-made\n#| tbl-cap: "What was computed?"\nMarkdown(rows)',
        [display(markdown="| a | b |\n|---|---|\n| 1 | 2 |\n\nas in @fig-shapes-line", plain="<Markdown>")],
    ),
    (
        "@cached  # every colour that code has\nclass Shape(Base):\n    name = f'x' if None else 0x1f",
        [{"output_type": "error", "ename": "NameError", "evalue": "no", "traceback": ["NameError: no"]}],
    ),
    '~~~json\n{"sides": 3, "name": "circle", "round": true}\n~~~',
    (
        "transcript",
        [display(html='<div class="rich"><b>rich</b> <i>page</i></div>', plain="plain fallback")],
    ),
    ("frame", [display(html="<table><tr><th>k</th></tr><tr><td>v1</td></tr></table>", plain="k\nv1")]),
    "::: {.callout-note}\n## In the interview\nWhat is a *shape*?\n:::\n\n"
    "::: {.callout-warning}\n## Pitfall\nA circle.\n:::\n\n"
    "::: {.callout-tip}\n## Try this\nDraw one.\n:::\n\n"
    '::: {.content-visible when-format="html"}\nonly on a page\n:::\n\n'
    "### Deeper {#sec-shapes-deeper}\n\nText[^1].\n\n[^1]: A note.",
]
WORDS: list[Cell] = [
    "# Words {#sec-words}\n\nAs @sec-shapes, @sec-shapes-line, @fig-shapes-line, @tbl-shapes-made and "
    "@eq-shapes-sum show, and as Euler wrote [@euler1748, p. 3]; see @sec-preface, @sec-sol-shapes and the "
    "[chapter before](01-shapes.md).",
    "## One {#sec-words-one}\n\nSearch finds the word xylophone here.",
    "## Two {#sec-words-two}\n\nThe end.",
]
SOLUTIONS: list[Cell] = [
    "# Solutions: shapes {#sec-sol-shapes .unnumbered}\n\nFirst try, then look.",
    "## A line {#sec-sol-shapes-line}\n\n> Where does a line end?",
    ("print('nowhere')", [stream("nowhere\n")]),
    "It does not.",
    "## A circle {#sec-sol-shapes-circle}\n\nRound.",
]
CHAPTERS = {
    "chapters/01-shapes": SHAPES,
    "chapters/02-words": WORDS,
    "chapters/solutions/01-shapes": SOLUTIONS,
}


def write_book(root: Path) -> Path:
    """Write the whole book below `root`, texts and finished notebooks, and return `root`."""
    files = {"_quarto.yml": QUARTO, "references.bib": REFERENCES, "index.md": INDEX, "figures/hand.svg": SVG}
    for name, content in files.items():
        _write(root / name, content)
    for name, cells in CHAPTERS.items():
        write_chapter(root, name, cells)
    return root


def write_chapter(root: Path, name: str, cells: list[Cell]) -> None:
    """Write one chapter as its text and its notebook."""
    _write(root / f"{name}.md", HEADER + "\n\n".join(_text(cell) for cell in cells) + "\n")
    notebook = {
        "cells": [_cell(cell, number) for number, cell in enumerate(cells, start=1)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    _write(root / f"{name}.ipynb", json.dumps(notebook, indent=1))


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"````python\n{cell[0]}\n````"


def _cell(cell: Cell, number: int) -> dict[str, Any]:
    if isinstance(cell, str):
        return {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": cell}
    source, outputs = cell
    code = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "execution_count": number}
    return code | {"source": source, "outputs": outputs}


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="\n")


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a chapter's Markdown and in its notebook alike."""
    for suffix in (".md", ".ipynb"):
        path = root / f"{name}{suffix}"
        content = path.read_text(encoding="utf-8")
        spelled = (old, new) if suffix == ".md" else (json.dumps(old)[1:-1], json.dumps(new)[1:-1])
        assert spelled[0] in content, f"{path} does not hold {old!r}"
        path.write_text(content.replace(*spelled), encoding="utf-8", newline="\n")
