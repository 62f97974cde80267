"""A small book to build and to break.

`toy_book` is the folder of a fresh copy, nothing built; `built_book` the same after `bookkit build` without
pages (modules, notebooks and figures are there, `_book` is not). Tests may do with either what they like.

The book has a preface (`index.md`), two parts, three chapters and one solution; its package is `toykit`:

    chapters/01-numbers.md             module numbers: DOUBLE, double(); a labelled SVG figure and a callout
    chapters/02-words.md               module words: shout(); a Markdown table with a label
    chapters/03-both.md                module both: imports numbers and words; cross references, a citation
    chapters/solutions/01-numbers.md   imports numbers, saves nothing

`toy.py` has its sources and helpers that edit them. No cell needs more than the standard library and IPython,
so that the book executes in a few seconds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from toy import write_toy_book


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
