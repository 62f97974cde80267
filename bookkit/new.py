"""A new chapter: text, tests, and its line in the book's plan."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bookkit import book as books
from bookkit import files
from bookkit.book import CONFIG, Book, Chapter
from bookkit.errors import BookError
from bookkit.text import yaml_mapping

NAME = re.compile(r"[a-z][a-z0-9_]*")
LABEL = re.compile(r"#(sec-[\w-]+)")
ENTRY = re.compile(r"^(?P<indent>\s*)-\s+(?P<quote>[\"']?)(?P<path>[^\"'\s#]+)(?P=quote)\s*(#.*)?$")

CHAPTER = """\
---
jupyter:
  jupytext:
    text_representation: {{extension: .md, format_name: markdown}}
  kernelspec: {{display_name: Python 3, language: python, name: python3}}
bookkit:
  module: {name}
---

# {title} {{#sec-{label}}}

A concrete problem, in two or three sentences.

After this chapter you can

- say what this chapter is for.

```python
# @save
def {name}() -> str:
    \"\"\"What this chapter's first function gives.\"\"\"
    return "{name}"
```

## One idea {{#sec-{label}-idea}}

Why the next cell matters.

```python
print({name}())
```

What the result means.

## What this chapter claimed {{#sec-{label}-claims}}

```python
assert {name}() == "{name}"
```

## Summary {{#sec-{label}-summary}}

What to remember.
"""

TEST = """\
from __future__ import annotations

from {package} import {name}


def test_the_first_function_gives_its_name() -> None:
    assert {name}.{name}() == "{name}"
"""


def run(book: Book, name: str, *, title: str | None = None, part: str | None = None) -> list[str]:
    """Write `chapters/NN-name.md` and `tests/test_name.py`, list the chapter, and return the paths written.

    `part` is the part of the book it joins, at its end; by default the part of the last numbered chapter.
    Raises BookError, before anything is written, for a name that cannot be a module's or that is taken.
    """
    _refuse_name(book, name)
    stem = f"{_next_number(book):02d}-{name}"
    config = _with_entry(book, f"chapters/{stem}.ipynb", part)
    label = name.replace("_", "-")
    heading = title or name.replace("_", " ").capitalize()
    written = {
        f"chapters/{stem}.md": CHAPTER.format(name=name, title=heading, label=label),
        f"tests/test_{name}.py": TEST.format(package=book.package, name=name),
        CONFIG: config,
    }
    for path in list(written)[:2]:
        if (book.root / path).exists():
            raise BookError("exists already", path=path, hint="Choose another name, or move the file away.")
    _refuse_taken_labels(book, name, written[f"chapters/{stem}.md"])
    _write_all(book.root, written)
    return list(written)


def _write_all(root: Path, written: Mapping[str, str]) -> None:
    """Write new files and, last, the plan that lists them; leave none of them when one cannot be written."""
    done: list[Path] = []
    try:
        for path, content in written.items():
            files.write_text(root / path, content)
            done.append(root / path)
    except BookError:
        for made in done:
            made.unlink()
        raise


def _refuse_taken_labels(book: Book, name: str, chapter: str) -> None:
    labels = set(LABEL.findall(chapter))
    for page in book.pages:
        if taken := labels & set(LABEL.findall(files.read_text(page.path))):
            raise BookError(
                f"{name!r} is taken: {', '.join(sorted(taken))} is a label there",
                path=page.source,
                hint="Choose another name.",
            )


def _refuse_name(book: Book, name: str) -> None:
    reserved = keyword.iskeyword(name) or name in sys.stdlib_module_names or hasattr(builtins, name)
    if reserved or not NAME.fullmatch(name):
        raise BookError(
            f"{name!r} cannot name a chapter",
            hint="Use one word in lower case that Python and its standard library do not use.",
        )
    for chapter in book.chapters:
        if name in (chapter.name, chapter.module) and not chapter.is_solution:
            raise BookError(f"{name!r} is taken", path=chapter.source, hint="Choose another name.")
    if (book.root / book.package / f"{name}.py").exists():
        raise BookError(
            f"module {name} exists", path=f"{book.package}/{name}.py", hint="Choose another name."
        )


def _next_number(book: Book) -> int:
    names = [Path(name).stem for name in book.missing] + [chapter.path.stem for chapter in book.chapters]
    numbers = [int(match.group()) for match in (re.match(r"\d+(?=-)", name) for name in names) if match]
    return max(numbers, default=0) + 1


def _with_entry(book: Book, entry: str, part: str | None) -> str:
    """`_quarto.yml` with the entry below the last one of its part; every other line as it is."""
    path = book.root / CONFIG
    lines = files.read_text(path).splitlines()
    anchor = _last_of(book, part)
    row = next((i for i, line in enumerate(lines) if _lists(line, anchor)), None)
    if row is None:
        raise BookError(
            f"does not list {anchor.source} on a line of its own", path=path, hint="List it by hand."
        )
    indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
    lines.insert(row + 1, f"{indent}- {entry}")
    content = "\n".join(lines) + "\n"
    listed = books.listed_documents(yaml_mapping(content, path, 1, CONFIG)["book"]["chapters"], "", path)
    if entry not in [name for name, _ in listed]:
        raise BookError(f"could not be extended with {entry}", path=path, hint="List it by hand.")
    return content


def _last_of(book: Book, part: str | None) -> Chapter:
    """The chapter that the new one follows."""
    chapters = [chapter for chapter in book.chapters if not chapter.is_solution]
    chosen: Sequence[Chapter] = [each for each in chapters if each.part == part] if part else chapters
    if not chosen:
        parts = ", ".join(dict.fromkeys(chapter.part for chapter in chapters if chapter.part))
        raise BookError(
            f"no chapter stands in a part {part!r}" if part else "the book has no chapter yet",
            path=CONFIG,
            hint=f"The parts are: {parts}." if parts else "List the first chapter by hand.",
        )
    return chosen[-1]


def _lists(line: str, chapter: Chapter) -> bool:
    match = ENTRY.match(line)
    return match is not None and match["path"] == chapter.notebook.relative_to(chapter.root).as_posix()
