"""The toy book's sources, and how tests edit them; `conftest.py` says what is in the book."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
path = f'<path d="M1 {ends[0]}L5 {ends[1]}"/>'
svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">{path}</svg>'
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


def replace(path: Path, old: str, new: str) -> None:
    """Replace one passage of a file; the test is wrong when it is not there."""
    content = path.read_text(encoding="utf-8")
    assert content.count(old) == 1, f"{path} holds {old!r} {content.count(old)} times"
    path.write_text(content.replace(old, new), encoding="utf-8", newline="\n")


def edit_notebook(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a notebook's JSON in place, as another program would."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file of the book, caches aside, by its path."""
    skipped = {"__pycache__", ".bookkit", ".git", ".ruff_cache", ".pytest_cache"}
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not skipped & set(path.relative_to(root).parts)
    }
