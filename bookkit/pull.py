"""Edits made in a notebook, taken back into its chapter's text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from bookkit import files, notebook, text
from bookkit.book import Chapter
from bookkit.build import refusal
from bookkit.errors import BookError
from bookkit.notebook import Standing, State

Plain = tuple[str, str, tuple[str, ...]]  # kind, source, tags


@dataclass(frozen=True)
class _Block:
    """A cell of the new text: its new lines, or its place among the `old` cells, whose lines it keeps."""

    kind: str
    text: str = ""
    old: int | None = None


def run(chapter: Chapter) -> list[str]:
    """Write the notebook's cells into the text and return what changed, in words; empty when they agree
    already.

    Cells that are the same in both keep the lines they have in the text.
    Raises BookError, changing nothing, when the text was edited as well, when there is no notebook, and for a
    cell that the text's format cannot hold.
    """
    chapter_text = text.read(chapter.path)
    name = chapter.notebook.relative_to(chapter.root).as_posix()
    if not chapter.notebook.exists():
        raise BookError("does not exist, so there is nothing to pull", path=name, hint="Run `bookkit build`.")
    built = notebook.load(chapter.notebook)
    in_text, in_notebook = notebook.text_digest(chapter_text), notebook.cells_digest(built)
    known = notebook.recorded(built).get("text")
    if in_text == in_notebook or in_notebook == known:
        return []
    changed = notebook.changed_cells(chapter_text, built)
    if in_text != known:
        raise refusal(Standing(chapter, chapter_text, {}, built, State.CONFLICT, tuple(changed)))
    _refuse_pasted_files(built, name)
    before = chapter.path.read_bytes().decode("utf-8-sig")  # with the line ends it has
    content = rewritten(before, chapter_text, built, chapter.path)
    files.write_text(chapter.path, content)
    return [f"{chapter.source}: {line}" for line in changed]


def _refuse_pasted_files(built: notebook.Notebook, name: str) -> None:
    """A picture pasted into a cell lives in the notebook alone: taking the cell would lose it."""
    for number, cell in enumerate(built["cells"], start=1):
        if cell.get("attachments"):
            raise BookError(
                f"a file is pasted into this cell ({', '.join(cell['attachments'])}); a text cannot hold it",
                path=name,
                cell=number,
                hint="Nothing was changed. Save it in the repository and link it; take it out of the cell.",
            )


def rewritten(content: str, chapter_text: text.Text, built: notebook.Notebook, path: Path) -> str:
    """The text with the notebook's cells. Raises BookError when reading it back would give other cells.

    Cells that are the same in both, and what stands between two of them, are kept to the letter.
    """
    wanted: list[Plain] = [
        (kind, source, tuple(tags)) for kind, source, tags in notebook.notebook_cells(built)
    ]
    present = [_plain(cell) for cell in chapter_text.cells]
    blocks: list[_Block] = []
    for _, a, b, c, d in _opcodes(present, wanted):
        if present[a:b] == wanted[c:d]:
            blocks += [_Block(present[i][0], old=i) for i in range(a, b)]
        else:
            blocks += [_Block(kind, _block(kind, source, tags)) for kind, source, tags in wanted[c:d]]
    made = _joined(content, chapter_text, blocks)
    _verify(made.replace("\r\n", "\n"), wanted, path)
    return made


def _opcodes(present: Sequence[Plain], wanted: Sequence[Plain]) -> Sequence[tuple[str, int, int, int, int]]:
    return difflib.SequenceMatcher(None, present, wanted, autojunk=False).get_opcodes()


def _plain(cell: text.Cell) -> Plain:
    return cell.kind, cell.source, cell.tags if cell.kind == "code" else ()


def _joined(content: str, chapter_text: text.Text, blocks: Sequence[_Block]) -> str:
    """The old text with these blocks for its cells, in the line ends it has."""
    end = "\r\n" if "\r\n" in content else "\n"
    spans = _spans(content.splitlines(keepends=True), chapter_text.cells)
    header = chapter_text.header_text + "\n" * bool(chapter_text.header_text)
    keeps_start = bool(blocks) and blocks[0].old == 0
    made = content[: spans[0][0]] if keeps_start else header.replace("\n", end)
    for i, block in enumerate(blocks):
        if i and block.old is not None and blocks[i - 1].old == block.old - 1:
            made += content[spans[block.old - 1][1] : spans[block.old][0]]
        elif i:
            made += _between(blocks[i - 1], block).replace("\n", end)
        made += block.text.replace("\n", end) if block.old is None else content[slice(*spans[block.old])]
    keeps_end = bool(blocks) and blocks[-1].old == len(spans) - 1
    return made + (content[spans[-1][1] :] if keeps_end else end)


def _spans(lines: Sequence[str], cells: Sequence[text.Cell]) -> list[tuple[int, int]]:
    """Where in the text each cell begins and ends, its fence or region marks included, its last line end
    not.
    """
    starts = list(accumulate((len(line) for line in lines), initial=0))
    spans = []
    for cell in cells:
        first, last = cell.line - 1, cell.line - 1 + cell.source.count("\n")
        if cell.kind == "code" or (first > 0 and text.REGION.match(lines[first - 1])):
            first, last = first - 1, last + 1
        spans.append((starts[first], starts[last] + len(lines[last].rstrip("\r\n"))))
    return spans


def _block(kind: str, source: str, tags: Sequence[str]) -> str:
    """A new or changed cell as lines of the text."""
    if kind == "code":
        longest = max((len(run) for run in re.findall(r"^`{3,}", source, re.MULTILINE)), default=2)
        fence = "`" * (longest + 1)
        quoted = ", ".join(f'"{tag}"' for tag in tags)
        return f"{fence}python{f' tags=[{quoted}]' if tags else ''}\n{source}\n{fence}"
    if kind == "raw":
        return f"<!-- #raw -->\n{source}\n<!-- #endraw -->"
    return source if _stands_alone(source) else f"<!-- #region -->\n{source}\n<!-- #endregion -->"


def _stands_alone(source: str) -> bool:
    """Whether the text's reader would take this Markdown for one cell."""
    try:
        cells = text.parse(source, Path("cell")).cells
    except BookError:
        return False
    return [cell.source for cell in cells] == [source]


def _between(before: _Block, after: _Block) -> str:
    """One blank line, and two between two Markdown cells."""
    bare = before.kind == after.kind == "markdown" and not text.REGION.match(after.text)
    return "\n\n\n" if bare else "\n\n"


def _verify(made: str, wanted: Sequence[Plain], path: Path) -> None:
    read_back = [_plain(cell) for cell in text.parse(made, path).cells]
    if read_back != list(wanted):
        first = next(
            (i for i, pair in enumerate(zip(read_back, wanted, strict=False)) if pair[0] != pair[1]), 0
        )
        raise BookError(
            f"cell {first + 1} of its notebook cannot be told in the text's format",
            path=path,
            hint="Nothing was changed. Make the edit in the text by hand.",
        )
