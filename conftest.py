"""What every test run of this repository needs, the notebooks under nbval among them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

try:
    from bookkit import execute, text
except ModuleNotFoundError:  # the book's tools are not installed: there are no notebooks to validate
    pass
else:
    # Reaches the kernels that nbval starts, also below pytest-xdist: they run as `bookkit execute` ran them.
    os.environ.update(execute.environment(ROOT))


@cache
def missing_packages(notebook: Path) -> tuple[str, ...]:
    """The packages that the notebook's chapter requires and that are not installed here."""
    source = notebook.with_suffix(".md")
    if not source.is_file():
        return ()
    header = text.read_header(source).get("bookkit") or {}
    return tuple(name for name in header.get("requires", []) if not execute.is_installed(name))


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Skip the cells of a notebook whose chapter requires a package that is not installed, and say which."""
    for item in items:
        if item.path.suffix == ".ipynb" and (missing := missing_packages(item.path)):
            item.add_marker(pytest.mark.skip(reason=f"requires {', '.join(missing)}, not installed"))
