"""A small book to build and to break.

`toy_book` is the folder of a fresh copy, nothing built; `built_book` the same after `bookkit build` without pages
(modules, notebooks and figures are there, `_book` is not). Tests may do with either what they like.

The book has a preface (`index.md`), two parts, three chapters and one solution; its package is `toykit`:

    chapters/01-numbers.md             module numbers: DOUBLE, double(); a labelled SVG figure and a callout
    chapters/02-words.md               module words: shout(); a Markdown table with a label
    chapters/03-both.md                module both: imports numbers and words; cross references, a citation
    chapters/solutions/01-numbers.md   imports numbers, saves nothing

No cell needs more than the standard library and IPython, so that the book executes in a few seconds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

HEADER = """\
---
jupyter:
  jupytext:
    text_representation: {extension: .md, format_name: markdown}
  kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""

FILES = {
    "_quarto.yml": """\
project:
  type: book
  output-dir: _book

lang: en
bibliography: references.bib

bookkit:
  package: toykit

execute:
  enabled: false

book:
  title: "A Toy Book"
  subtitle: "Small, whole, and quick"
  chapters:
    - index.md
    - part: "The parts"
      chapters:
        - chapters/01-numbers.ipynb
        - chapters/02-words.ipynb
        - chapters/03-both.ipynb
    - part: "Solutions"
      chapters:
        - chapters/solutions/01-numbers.ipynb
""",
    "references.bib": """\
@article{euler1748,
  author = {Euler, Leonhard},
  title = {Introductio in analysin infinitorum},
  journal = {Bousquet},
  year = {1748}
}
""",
    "constraints.txt": "ipython==9.0.0\nmatplotlib==3.10.0\n",
    ".gitignore": "_book/\n.bookkit/\n.bookkit-*\n__pycache__/\n",
    "pyproject.toml": '[tool.ruff]\nline-length = 110\ntarget-version = "py311"\n',
    "toykit/__init__.py": '"""The toy book\'s library."""\n',
    "index.md": """\
# Preface {.unnumbered #sec-preface}

A book about two small things. It starts in @sec-numbers.
""",
    "chapters/01-numbers.md": HEADER
    + """
# Numbers {#sec-numbers}

A number is doubled by adding it to itself.

```python
# @save
DOUBLE = 2


def double(number: int) -> int:
    \"\"\"Twice the number.\"\"\"
    return DOUBLE * number
```

## In use {#sec-numbers-use}

```python
print(double(21))
```

The answer is 42.

```python
#| label: fig-numbers-line
#| fig-cap: "How does the double grow?"
#| fig-alt: "A straight line from the lower left to the upper right."
from IPython.display import display

ends = [double(n) for n in (1, 5)]
svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><path d="M1 {ends[0]}L5 {ends[1]}"/></svg>'
display({"image/svg+xml": svg, "text/plain": "fig-numbers-line"}, raw=True)
```

::: {.callout-warning}
## Pitfall
A double is not a square.
:::

## Exercises {#sec-numbers-exercises}

1. Double a double. [Solution](solutions/01-numbers.ipynb#sec-sol-numbers-twice)
""",
    "chapters/02-words.md": HEADER
    + """
# Words {#sec-words}

A word is shouted in capitals.

```python
# @save
def shout(word: str) -> str:
    \"\"\"The word in capitals, with a mark.\"\"\"
    return word.upper() + "!"
```

## In use {#sec-words-use}

```python
# any word will do
shout("toy")
```

| word | shouted |
|------|---------|
| toy  | TOY!    |

: A word before and after {#tbl-words-shouted}

The table @tbl-words-shouted holds one word.
""",
    "chapters/03-both.md": HEADER
    + """
# Both {#sec-both}

What @sec-numbers and @sec-words made, in one sentence; see @fig-numbers-line and [@euler1748].

```python
# @save
from toykit.numbers import double
from toykit.words import shout


def double_shout(word: str, number: int) -> str:
    \"\"\"The word, shouted as often as twice the number.\"\"\"
    return shout(word) * double(number)
```

## In use {#sec-both-use}

```python
print(double_shout("toy", 1))
```
""",
    "chapters/solutions/01-numbers.md": HEADER
    + """
# Solutions: numbers {#sec-sol-numbers}

## Double a double {#sec-sol-numbers-twice}

```python
from toykit.numbers import double

double(double(3))
```
""",
}


def write_toy_book(root: Path) -> Path:
    """Write the toy book's sources below `root` and return it."""
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
    return root


@pytest.fixture
def toy_book(tmp_path: Path) -> Path:
    """The folder of a fresh toy book, nothing built."""
    return write_toy_book(tmp_path / "book")


@pytest.fixture(scope="session")
def _built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from bookkit import book, build

    root = write_toy_book(tmp_path_factory.mktemp("toy") / "book")
    build.run(book.load(root), render=False)
    return root


@pytest.fixture
def built_book(_built_once: Path, tmp_path: Path) -> Path:
    """The folder of a toy book whose modules, notebooks and figures are built and up to date."""
    return Path(shutil.copytree(_built_once, tmp_path / "book"))
