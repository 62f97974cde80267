"""Built notebooks: plain nbformat 4.5 JSON, what is stale in them, and how they are put together.

The build writes three digests into a notebook's metadata (key `bookkit`): `text`, of the cells it was made
from; `outputs`, of what it holds; `inputs`, of everything that those depend on, whose parts stand beside it
so that `status` can say which one changed. A notebook is stale exactly when one of them differs; time plays
no part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from bookkit import files, text
from bookkit.book import Chapter
from bookkit.errors import BookError

Notebook = dict[str, Any]
Output = dict[str, Any]

KEY = "bookkit"
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}


class State(StrEnum):
    """How a notebook stands to its chapter."""

    FRESH = "fresh"
    MISSING = "not built"
    TEXT = "new text"  # cells' prose or options changed: to be rewritten, nothing to execute
    STALE = "stale"  # to be executed
    EDITED = "edited"  # somebody changed the notebook's cells
    CONFLICT = "both edited"  # and somebody the chapter's

    @property
    def needs_execution(self) -> bool:
        """Whether the build has to run the cells."""
        return self in (State.MISSING, State.STALE)

    @property
    def is_refused(self) -> bool:
        """Whether the build must not touch it."""
        return self in (State.EDITED, State.CONFLICT)


@dataclass(frozen=True)
class Standing:
    """A chapter's text, what its outputs depend on, its notebook (None without one), and how they agree."""

    chapter: Chapter
    text: text.Text
    parts: Mapping[str, str]
    notebook: Notebook | None
    state: State
    reasons: tuple[str, ...]


def load(path: Path) -> Notebook:
    """A notebook's JSON with every multi-line string joined. Raises BookError when it is no notebook."""
    try:
        notebook = json.loads(files.read_text(path))
        return _with_joined_lines(notebook)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BookError(
            f"is not a notebook: {error}",
            path=path,
            hint="Delete it and run `bookkit build`, or restore it from version control.",
        ) from error


def dumps(notebook: Notebook) -> str:
    """The notebook as its file holds it, laid out as Jupyter does, so that saving there changes little."""
    return json.dumps(_with_split_lines(notebook), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _with_joined_lines(notebook: Notebook) -> Notebook:
    cells = [_with_joined_source(cell) for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = [_map_output(output, _joined) for output in cell.get("outputs", [])]
    return notebook | {"cells": cells, "metadata": dict(notebook.get("metadata", {}))}


def _with_joined_source(cell: dict[str, Any]) -> dict[str, Any]:
    source, metadata = _joined(cell["source"]), cell.get("metadata", {})
    if not isinstance(source, str):
        raise ValueError("a cell's `source` is no text")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("tags", []), list):
        raise ValueError("a cell's `metadata` is no mapping with a list of `tags`")
    return cell | {"source": source, "metadata": metadata}


def _with_split_lines(notebook: Notebook) -> Notebook:
    cells = [cell | {"source": _split(cell["source"])} for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = [_map_output(output, _split) for output in cell["outputs"]]
    return notebook | {"cells": cells}


def _map_output(output: Output, change: Any) -> Output:
    """The output with its text, and each text among its data, changed; JSON data stays as it is."""
    if "text" in output:
        return output | {"text": change(output["text"])}
    if "data" in output:
        data = {kind: value if _is_json(kind) else change(value) for kind, value in output["data"].items()}
        return output | {"data": data}
    return output


def _is_json(kind: str) -> bool:
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _joined(value: Any) -> Any:
    return "".join(value) if isinstance(value, list) else value


def _split(value: Any) -> Any:
    return value.splitlines(keepends=True) if isinstance(value, str) else value


# Digests


def text_digest(chapter_text: text.Text) -> str:
    """Of the chapter's cells, as a notebook would hold them."""
    return files.digest([_identity(cell.kind, cell.source, cell.tags) for cell in chapter_text.cells])


def cells_digest(notebook: Notebook) -> str:
    """Of the notebook's cells; equal to its text's `text_digest` when the two agree."""
    return files.digest(notebook_cells(notebook))


def notebook_cells(notebook: Notebook) -> list[list[Any]]:
    """The cells as [kind, source, tags], and after that the files pasted into a cell, where there are some.

    Empty cells, which Jupyter adds by itself, do not count.
    """
    cells = [cell for cell in notebook["cells"] if cell["source"].strip()]
    return [
        _identity(cell["cell_type"], cell["source"], cell.get("metadata", {}).get("tags", []))
        + ([cell["attachments"]] if cell.get("attachments") else [])
        for cell in cells
    ]


def _identity(kind: str, source: str, tags: Iterable[str]) -> list[Any]:
    return [kind, source, list(tags) if kind == "code" else []]


def outputs_digest(outputs: Sequence[tuple[int | None, Sequence[Output]]]) -> str:
    """Of every code cell's execution count and outputs."""
    return files.digest([[count, list(each)] for count, each in outputs])


def outputs_of(notebook: Notebook) -> list[tuple[int | None, list[Output]]]:
    """The execution count and the outputs of every code cell that is not empty."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell["source"].strip()]
    return [(cell.get("execution_count"), cell["outputs"]) for cell in cells]


def recorded(notebook: Notebook) -> dict[str, Any]:
    """What the build wrote into the notebook's metadata; empty for one it did not write."""
    value = notebook["metadata"].get(KEY, {})
    return value if isinstance(value, dict) else {}


# Standing


def examine(chapter: Chapter, chapter_text: text.Text, parts: Mapping[str, str]) -> Standing:
    """Compare a chapter with its notebook by content alone."""
    if not chapter.notebook.exists():
        return Standing(chapter, chapter_text, parts, None, State.MISSING, ("it has no notebook yet",))
    notebook = load(chapter.notebook)
    state, reasons = _judge(chapter_text, parts, notebook)
    return Standing(chapter, chapter_text, parts, notebook, state, tuple(reasons))


def _judge(
    chapter_text: text.Text, parts: Mapping[str, str], notebook: Notebook
) -> tuple[State, Sequence[str]]:
    known = recorded(notebook)
    in_text, in_notebook = text_digest(chapter_text), cells_digest(notebook)
    if in_text != in_notebook and in_notebook != known.get("text"):
        if known.get("text") == in_text:
            return State.EDITED, changed_cells(chapter_text, notebook)
        return State.CONFLICT, changed_cells(chapter_text, notebook)
    stale = _stale_inputs(parts, known)
    if not stale and outputs_digest(outputs_of(notebook)) != known.get("outputs"):
        stale = ["its outputs are not those of the build"]
    if stale:
        return State.STALE, stale
    if in_text != known.get("text"):
        return State.TEXT, ["its prose or options changed"]
    return State.FRESH, []


def _stale_inputs(parts: Mapping[str, str], known: Mapping[str, Any]) -> list[str]:
    """Which inputs differ from the recorded ones, in words."""
    if known.get("inputs") == inputs_digest(parts):
        return []
    before = known.get("parts")
    if not isinstance(before, dict):
        return ["it was not made by the build"]
    changed = ["its code" if name == "code" else name for name in parts if parts[name] != before.get(name)]
    added = [name for name in parts if name not in before]
    removed = [name for name in before if name not in parts]
    told = {
        "{} changed": [name for name in changed if name not in added],
        "it now depends on {}": added,
        "it no longer depends on {}": removed,
    }
    reasons = [form.format(", ".join(names)) for form, names in told.items() if names]
    return reasons or ["its recorded inputs were altered"]


def inputs_digest(parts: Mapping[str, str]) -> str:
    """Of everything that a chapter's outputs depend on."""
    return files.digest(dict(parts))


def changed_cells(chapter_text: text.Text, notebook: Notebook) -> list[str]:
    """The cells in which notebook and text differ, each with its place and first words."""
    import difflib

    mine = [json.dumps(_identity(cell.kind, cell.source, cell.tags)) for cell in chapter_text.cells]
    theirs = [json.dumps(cell) for cell in notebook_cells(notebook)]
    told = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if kind == "delete":
            told += [f"cell {i + 1} (line {chapter_text.cells[i].line}) is gone" for i in range(a, b)]
        elif kind != "equal":
            told += [f"cell {i + 1}: {_first_words(json.loads(theirs[i])[1])}" for i in range(c, d)]
    return told


def _first_words(source: str) -> str:
    line = next(line.strip() for line in source.splitlines() if line.strip())
    return line if len(line) <= 60 else line[:59] + "…"


# Making


def assemble(
    chapter: Chapter,
    chapter_text: text.Text,
    outputs: Sequence[tuple[int | None, Sequence[Output]]],
    record: Mapping[str, Any],
) -> Notebook:
    """The chapter's notebook with these outputs, one entry a code cell, and this record of how they came to
    be.
    """
    remaining = iter(outputs)
    cells = []
    for cell in chapter_text.cells:
        made: dict[str, Any] = {
            "cell_type": cell.kind,
            "id": cell_id(chapter, cell),
            "metadata": {"tags": list(cell.tags)} if cell.tags else {},
            "source": cell.source,
        }
        if cell.kind == "code":
            count, its_outputs = next(remaining)
            made |= {"execution_count": count, "outputs": list(its_outputs)}
        cells.append(made)
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, KEY: dict(record)}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def cell_id(chapter: Chapter, cell: text.Cell) -> str:
    """An id from the chapter and the cell's place, at most 64 of the characters that ids allow."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", chapter.title)[-58:]
    return f"{name}-{cell.number:03d}"


def record_of(
    standing: Standing,
    outputs: Sequence[tuple[int | None, Sequence[Output]]],
    installed: Mapping[str, Any],
) -> dict[str, Any]:
    """The metadata that says what the notebook was made from; `installed` is shown, never compared."""
    return {
        "text": text_digest(standing.text),
        "outputs": outputs_digest(outputs),
        "inputs": inputs_digest(standing.parts),
        "parts": dict(standing.parts),
        **installed,
    }


def rewrite(standing: Standing) -> bool:
    """Give the notebook its chapter's new prose and options and keep its outputs; False without a change."""
    assert standing.notebook is not None
    known = recorded(standing.notebook)
    outputs = outputs_of(standing.notebook)
    installed: dict[str, Any] = {key: known[key] for key in ("python", "packages") if key in known}
    return write(standing, outputs, installed)


def write(
    standing: Standing,
    outputs: Sequence[tuple[int | None, Sequence[Output]]],
    installed: Mapping[str, Any],
) -> bool:
    """Write the chapter's notebook in one step; False when it was that already.

    Raises BookError, writing nothing, when somebody edited the notebook after it was compared with its text.
    """
    _refuse_edited_since(standing)
    record = record_of(standing, outputs, installed)
    notebook = assemble(standing.chapter, standing.text, outputs, record)
    return files.write_text(standing.chapter.notebook, dumps(notebook))


def _refuse_edited_since(standing: Standing) -> None:
    """Execution takes a while: what was saved in the notebook meanwhile is not overwritten."""
    path = standing.chapter.notebook
    if not path.exists():
        return
    now = load(path)
    unedited = [text_digest(standing.text), recorded(now).get("text")]
    if standing.notebook is not None:
        unedited.append(cells_digest(standing.notebook))
    if cells_digest(now) not in unedited:
        raise BookError(
            "was edited while its chapter was executed; nothing was written",
            path=path.relative_to(standing.chapter.root),
            hint="Run `bookkit build` again: it says how to keep the edit, or to drop it.",
        )


def normalised(outputs: Sequence[Output], count: int) -> list[Output]:
    """A code cell's outputs as they are stored: the same whenever, wherever and in whatever order they
    arrived.

    Streams that follow each other are merged by name, standard output first; colour codes go; a traceback
    keeps its last line only, since the rest names files of one machine; a result carries the cell's count.
    """
    merged: list[Output] = []
    streams: dict[str, str] = {}

    def flush() -> None:
        for name in sorted(streams, reverse=True):  # stdout, then stderr
            merged.append({"output_type": "stream", "name": name, "text": streams[name]})
        streams.clear()

    for output in outputs:
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + _clean(output["text"])
        else:
            flush()
            merged.append(_stored(output, count))
    flush()
    return merged


def _stored(output: Output, count: int) -> Output:
    if output["output_type"] == "error":
        name, value = _clean(output["ename"]), _clean(output["evalue"])
        return {
            "output_type": "error",
            "ename": name,
            "evalue": value,
            "traceback": [f"{name}: {value}" if value else name],
        }
    kept = {
        "output_type": output["output_type"],
        "data": {kind: _clean(value) for kind, value in output["data"].items()},
        "metadata": dict(output.get("metadata", {})),
    }
    return kept | ({"execution_count": count} if output["output_type"] == "execute_result" else {})


def _clean(value: Any) -> Any:
    """A text without colour codes, with LF line ends; anything else as it is."""
    return ANSI.sub("", value).replace("\r\n", "\n") if isinstance(value, str) else value
