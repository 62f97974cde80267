"""Reading a chapter: Jupytext Markdown as a header and cells, each with its line.

This reads the plain subset of Jupytext's Markdown format that the book is written in, and refuses the rest,
so that a build can look at every chapter in milliseconds (Jupytext itself takes seconds to import). Where
both accept a text they read the same cells; a test holds them against each other.
"""

from __future__ import annotations

import io
import json
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from bookkit.errors import BookError
from bookkit.files import read_text

PYTHON_FENCE = re.compile(r"^(`{3,})\s*python($|\s.*$)")
ANY_FENCE = re.compile(r"^(`{3,})(.*)$")
TILDE_FENCE = re.compile(r"^ {0,3}(~{3,})(.*)$")
REGION = re.compile(r"^<!--\s*#(region|markdown|md|raw)(.*)-->\s*$")
SAVE = re.compile(r"^#\s*@save\b\s*(.*?)\s*$")
MODULE_NAME = re.compile(r"[a-z_][a-z0-9_]*")
TAGS = re.compile(r"^tags=(\[.*\])$")


@dataclass(frozen=True)
class Cell:
    """One cell of a chapter.

    `index` is its 0-based place, `kind` is "markdown", "code" or "raw", `line` the 1-based line in the file
    of the first line of `source`. For code, `options` are its `#|` lines read as YAML, `code` is the source
    without them, `tags` are the notebook's cell tags, and `save` names the module the cell is saved to: ""
    for the chapter's own, None for a cell that is not saved.
    """

    index: int
    kind: str
    source: str
    line: int
    options: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    save: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The 1-based place of the cell, as messages give it."""
        return self.index + 1


@dataclass(frozen=True)
class Text:
    """A chapter's text: its YAML header, the header's own lines verbatim, and its cells."""

    path: Path
    header: dict[str, Any]
    header_text: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class _Piece:
    """A cell as the lines give it: half-open range of its source lines, and where the next cell starts."""

    kind: str
    start: int
    end: int
    next: int
    tags: tuple[str, ...] = ()


def read(path: Path) -> Text:
    """Read a chapter. Raises BookError with path, line and cell for anything the book's format does not
    allow.
    """
    return parse(read_text(path), path)


def parse(content: str, path: Path) -> Text:
    """Read a chapter's content; `path` is for error messages only."""
    lines = content.splitlines()
    header, body = _header(lines, path)
    cells: list[Cell] = []
    for piece in _pieces(lines, body, path):
        source = "\n".join(lines[piece.start : piece.end])
        if piece.kind != "markdown" or source.strip():
            cells.append(_cell(len(cells), piece, source, path))
    header_text = "".join(line + "\n" for line in lines[:body])
    return Text(path, header, header_text.rstrip("\n") + "\n" if header_text else "", tuple(cells))


def read_header(path: Path) -> dict[str, Any]:
    """The YAML header alone."""
    return _header(read_text(path).splitlines(), path)[0]


def heading(cell: Cell) -> str | None:
    """The text of the last heading in a Markdown cell, without `#` marks and attributes; None without one."""
    found = None
    for line in outside_fences(cell.source.splitlines()):
        if match := re.match(r"^#{1,6}\s+(.*)$", line):
            found = plain_heading(match.group(1))
    return found


def plain_heading(title: str) -> str:
    """A heading's text without `{#id .class}` and closing `#` marks."""
    return re.sub(r"\s+#+\s*$", "", re.sub(r"\s*\{[^{}]*\}\s*$", "", title)).strip()


def outside_fences(lines: Sequence[str]) -> Iterator[str]:
    """The lines of Markdown that stand outside of `~~~` blocks."""
    fence = ""
    for line in lines:
        match = TILDE_FENCE.match(line)
        if not fence and match:
            fence = match.group(1)
        elif fence and match and match.group(1).startswith(fence) and not match.group(2).strip():
            fence = ""
        elif not fence:
            yield line


def _header(lines: Sequence[str], path: Path) -> tuple[dict[str, Any], int]:
    """The header and the index of the first line after it (and after one blank line)."""
    if not lines or lines[0].rstrip() != "---":
        return {}, 0
    end = next((i for i in range(1, len(lines)) if lines[i].rstrip() == "---"), None)
    if end is None:
        raise BookError("the header is never closed", path=path, line=1, hint="End it with a line `---`.")
    header = yaml_mapping("\n".join(lines[1:end]), path, 2, "the header")
    start = end + 1
    if start < len(lines) and not lines[start].strip():
        start += 1
    return header, start


def yaml_mapping(source: str, path: Path, line: int, what: str, cell: int | None = None) -> dict[str, Any]:
    """A YAML mapping that starts at `line` of the file."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(source, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise BookError(
            f"{what} is not valid YAML: {problem}",
            path=path,
            line=line + (mark.line if mark else 0),
            cell=cell,
            hint="Quote a value that holds a colon, a # or a bracket.",
        ) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BookError(f"{what} must be `key: value` lines", path=path, line=line, cell=cell)
    return value


def is_module_name(name: object) -> TypeGuard[str]:
    """Whether a module may be called so: a lower-case word that is no keyword."""
    return isinstance(name, str) and MODULE_NAME.fullmatch(name) is not None and not keyword.iskeyword(name)


def _pieces(lines: Sequence[str], start: int, path: Path) -> Iterator[_Piece]:
    position = start
    while position < len(lines):
        piece = _piece(lines, position, path)
        yield piece
        position = piece.next


def _piece(lines: Sequence[str], start: int, path: Path) -> _Piece:
    if match := REGION.match(lines[start]):
        return _region(lines, start, match, path)
    if match := PYTHON_FENCE.match(lines[start]):
        return _code(lines, start, match, path)
    return _markdown(lines, start, path)


def _region(lines: Sequence[str], start: int, match: re.Match[str], path: Path) -> _Piece:
    name, rest = match.groups()
    if rest.strip():
        raise BookError(
            f"a #{name} with a title or metadata",
            path=path,
            line=start + 1,
            hint=f"Write `<!-- #{name} -->`.",
        )
    closing = re.compile(rf"^<!--\s*#end{name}\s*-->\s*$")
    end = next((i for i in range(start + 1, len(lines)) if closing.match(lines[i])), None)
    if end is None:
        raise BookError(
            f"this #{name} is never closed",
            path=path,
            line=start + 1,
            hint=f"End it with `<!-- #end{name} -->`.",
        )
    kind = "raw" if name == "raw" else "markdown"
    return _Piece(kind, start + 1, end, _skip_blank(lines, end + 1))


def _code(lines: Sequence[str], start: int, match: re.Match[str], path: Path) -> _Piece:
    fence, rest = match.groups()
    tags = _tags(rest.strip(), path, start + 1)
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith(fence)), None)
    if end is None:
        raise BookError(
            "this code cell is never closed", path=path, line=start + 1, hint=f"End it with a line `{fence}`."
        )
    if lines[end][len(fence) :].strip():
        raise BookError(
            f"a line inside this code cell begins with {fence}",
            path=path,
            line=end + 1,
            hint=f"Open and close the cell with one backtick more: {fence}`python.",
        )
    return _Piece("code", start + 1, end, _skip_blank(lines, end + 1), tags)


def _tags(rest: str, path: Path, line: int) -> tuple[str, ...]:
    """The tags in what follows ```python on its line."""
    if not rest:
        return ()
    match = TAGS.match(rest)
    try:
        tags = json.loads(match.group(1)) if match else None
    except ValueError:
        tags = None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BookError(
            f"`{rest}` after ```python is not understood",
            path=path,
            line=line,
            hint='Only tags may stand there, as in: ```python tags=["raises-exception"]',
        )
    return tuple(tags)


def _markdown(lines: Sequence[str], start: int, path: Path) -> _Piece:
    """Jupytext's rule: a Markdown cell ends at two blank lines, a region or a code cell; indented code
    protects.
    """
    blank, indented = 0, False
    for i in range(start, len(lines)):
        line = lines[i]
        empty = not line.strip()
        if blank and line.startswith("    ") and not empty:
            indented, blank = True, 0
            continue
        if indented and not empty and not line.startswith("    "):
            indented = False
        if indented:
            continue
        if REGION.match(line) or PYTHON_FENCE.match(line):
            return _closed(lines, _Piece("markdown", start, i - 1 if blank else i, i), path)
        _refuse_fence(line, i + 1, path)
        if not empty and blank >= 2:
            return _closed(lines, _Piece("markdown", start, i - 2, i), path)
        blank = blank + 1 if empty else 0
    return _closed(lines, _Piece("markdown", start, len(lines), len(lines)), path)


def _refuse_fence(line: str, number: int, path: Path) -> None:
    if match := ANY_FENCE.match(line):
        language = match.group(2).strip()
        raise BookError(
            f"a fence `{match.group(0)}` in prose: notebook tools turn backtick fences into cells",
            path=path,
            line=number,
            hint=f"Open and close it with tildes: ~~~{language}",
        )


def _closed(lines: Sequence[str], piece: _Piece, path: Path) -> _Piece:
    """The piece, refused when a `~~~` block opens in it and does not close."""
    fence, opened = "", 0
    for i in range(piece.start, piece.end):
        match = TILDE_FENCE.match(lines[i])
        if match and not fence:
            fence, opened = match.group(1), i
        elif match and match.group(1).startswith(fence) and not match.group(2).strip():
            fence = ""
    if fence:
        raise BookError(
            f"the block opened by {fence} does not end in its Markdown cell",
            path=path,
            line=opened + 1,
            hint=f"Close it with {fence}; two blank lines or ```python inside it would start a new cell.",
        )
    return piece


def _skip_blank(lines: Sequence[str], position: int) -> int:
    """Where the next cell starts: one or two blank lines are a separator, more begin a cell."""
    for start in (position + 1, position + 2):
        if start < len(lines) and lines[start].strip() and not "".join(lines[position:start]).strip():
            return start
    return position


def _cell(index: int, piece: _Piece, source: str, path: Path) -> Cell:
    line = piece.start + 1
    if piece.kind != "code":
        return Cell(index, piece.kind, source, line)
    options, code = split_options(source)
    if not code.strip():
        raise BookError("this code cell holds no code", path=path, line=line, cell=index + 1)
    parsed = yaml_mapping(options, path, line, "the `#|` options", index + 1) if options else {}
    if not isinstance(parsed.get("label", ""), str):
        raise BookError("the label is no word", path=path, line=line, cell=index + 1, hint="Quote it.")
    return Cell(index, "code", source, line, parsed, code, _save(source, path, line, index + 1), piece.tags)


def split_options(source: str) -> tuple[str, str]:
    """A code cell's leading `#|` lines as YAML source, and the code without them."""
    lines = source.split("\n")
    count = next((i for i, line in enumerate(lines) if not line.startswith("#|")), len(lines))
    options = "\n".join(line[2:].removeprefix(" ") for line in lines[:count])
    return options, "\n".join(lines[count:])


def _save(source: str, path: Path, line: int, cell: int) -> str | None:
    """The module named by the cell's `# @save` comment, found among tokens: the marker in a string is a
    string.
    """
    if "@save" not in source:
        return None
    lines = source.split("\n")
    first_code = next((text for text in lines if text.strip() and not text.startswith("#|")), "")
    if first_code == "# @save" and source.count("@save") == 1 and "\n#|" not in source.partition("@save")[2]:
        return ""  # the plain case, which needs no tokens
    comments = [token for token in _tokens(source) if token.type == tokenize.COMMENT]
    markers = [token for token in comments if SAVE.match(token.string)]
    if not markers:
        return None
    first = markers[0]
    options = [token.start[0] - 1 for token in comments if token.string.startswith("#|")]
    _refuse_misplaced(markers, options, source, path, line, cell)
    match = SAVE.match(first.string)
    name = match.group(1) if match else ""
    if name and not is_module_name(name):
        raise BookError(
            f"`{first.string}` does not name a module",
            path=path,
            line=line + first.start[0] - 1,
            cell=cell,
            hint="Write `# @save` or `# @save name`, the name in lower case.",
        )
    return name


def _refuse_misplaced(
    markers: Sequence[tokenize.TokenInfo],
    options: Sequence[int],
    source: str,
    path: Path,
    line: int,
    cell: int,
) -> None:
    """A marker must stand alone on the first line that is no option, and no option (rows given) may follow
    it.
    """
    lines = source.split("\n")
    first = next(row for row, text in enumerate(lines) if text.strip() and not text.startswith("#|"))
    for marker in markers:
        row = marker.start[0] - 1
        if row != first or lines[row].strip() != marker.string:
            raise BookError(
                "`# @save` saves nothing here",
                path=path,
                line=line + row,
                cell=cell,
                hint="It belongs alone on the first line of the cell, below the `#|` options, once.",
            )
    if late := [row for row in options if row > first]:
        raise BookError(
            "`# @save` stands above a `#|` option, which then is printed as code and not obeyed",
            path=path,
            line=line + late[0],
            cell=cell,
            hint="Order: the `#|` options, then `# @save`, then code.",
        )


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a cell as far as they can be read: a magic or an open string ends them early."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(source).readline)
    except (tokenize.TokenError, SyntaxError):
        return
