"""Running the cells of chapters: one kernel a notebook, as many at once as there are cores, the same bytes
each time.

A chapter's notebook is replaced only when every cell ran; one that fails keeps its last good notebook.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bookkit import notebook, text
from bookkit.book import Chapter
from bookkit.errors import BookError
from bookkit.inputs import CONSTRAINTS
from bookkit.notebook import Output, Standing

if TYPE_CHECKING:
    from nbclient import NotebookClient

CELL_LINE = re.compile(r"^\s*Cell In\[\d+\], line (\d+)", re.MULTILINE)
CHAINED = re.compile(r"^(?:The above exception was|During handling of the above) .*:$", re.MULTILINE)
Outputs = list[tuple[int | None, list[Output]]]


@dataclass(frozen=True)
class Outcome:
    """What became of one chapter: whether its notebook changed, the error that stopped it, the seconds."""

    standing: Standing
    changed: bool
    error: BookError | None
    seconds: float


class Progress(Protocol):
    """Who is told how the execution goes."""

    def started(self, chapter: Chapter, cells: int) -> None:
        """A chapter of that many code cells starts."""

    def advanced(self, chapter: Chapter) -> None:
        """One more of its cells ran."""

    def finished(self, outcome: Outcome) -> None:
        """It ended, well or not."""


def environment(root: Path) -> dict[str, str]:
    """What a kernel's environment must say for its outputs to be the same every time.

    Sets hash randomisation off and puts the repository first among the places that modules come from.
    """
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONHASHSEED": "0", "PYTHONPATH": path, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def lacking(chapter: Chapter) -> tuple[str, ...]:
    """The packages that the chapter's header requires and that are not installed."""
    return tuple(name for name in chapter.requires if not is_installed(name))


def is_installed(name: str) -> bool:
    """Whether a package is there, by its distribution's name or the name it is imported by."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        with suppress(ModuleNotFoundError, ValueError):
            return importlib.util.find_spec(name) is not None
        return False
    return True


def run(standings: Sequence[Standing], progress: Progress, *, jobs: int | None = None) -> list[Outcome]:
    """Execute chapters, `jobs` at once (default: the number of cores), and write each notebook as it is done.

    A chapter that fails has its error in its outcome; the others go on.
    """
    return asyncio.run(_run_all(standings, progress, jobs or os.cpu_count() or 1))


async def _run_all(standings: Sequence[Standing], progress: Progress, jobs: int) -> list[Outcome]:
    turn = asyncio.Semaphore(jobs)

    async def one(standing: Standing) -> Outcome:
        async with turn:
            outcome = await _run_one(standing, progress)
        progress.finished(outcome)
        return outcome

    return await asyncio.gather(*(one(standing) for standing in standings))


async def _run_one(standing: Standing, progress: Progress) -> Outcome:
    chapter = standing.chapter
    start = time.perf_counter()
    progress.started(chapter, sum(cell.kind == "code" for cell in standing.text.cells))
    try:
        outputs = await _outputs(standing, lambda: progress.advanced(chapter))
        changed = notebook.write(standing, outputs, versions(standing.parts))
    except BookError as error:
        return Outcome(standing, False, error, time.perf_counter() - start)
    except ModuleNotFoundError:
        raise  # a package that the tool itself needs: no chapter can be executed
    except Exception as error:  # whatever it is, the other chapters go on
        wrapped = BookError(f"could not be executed: {error!r}", path=chapter.source)
        wrapped.__cause__ = error
        return Outcome(standing, False, wrapped, time.perf_counter() - start)
    return Outcome(standing, changed, None, time.perf_counter() - start)


def versions(parts: Mapping[str, str]) -> dict[str, Any]:
    """Python's and the pinned packages' versions in this environment, recorded beside the outputs."""
    pinned = [name.removeprefix(f"{CONSTRAINTS}: ") for name in parts if name.startswith(CONSTRAINTS)]
    installed = {}
    for name in pinned:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "packages": installed}


async def _outputs(standing: Standing, advanced: Callable[[], None]) -> Outputs:
    """Run every code cell in a fresh kernel. Raises BookError for the first one that fails."""
    from jupyter_client.kernelspec import NoSuchKernel

    client = _client(standing)
    outputs: Outputs = []
    env = os.environ | environment(standing.chapter.root)
    try:
        await _start_kernel(client, env)
        async with client.async_setup_kernel():
            _leave_signals_to_python()
            code = [cell for cell in standing.text.cells if cell.kind == "code"]
            for count, cell in enumerate(code, start=1):
                outputs.append((count, await _execute_cell(client, standing.chapter, cell, count)))
                advanced()
    except NoSuchKernel as error:
        raise BookError(
            "no kernel named 'python3' is installed",
            path=standing.chapter.source,
            hint="Install it: python -m pip install ipykernel",
        ) from error
    except RuntimeError as error:
        raise BookError(
            f"the kernel did not start: {error}",
            path=standing.chapter.source,
            hint="Try it: python -m ipykernel --version",
        ) from error
    return outputs


def _client(standing: Standing) -> NotebookClient:
    import nbformat
    from nbclient import NotebookClient

    cells = sum(cell.kind == "code" for cell in standing.text.cells)
    plain = notebook.assemble(standing.chapter, standing.text, [(None, [])] * cells, {})
    return NotebookClient(
        nbformat.from_dict(plain),  # type: ignore[no-untyped-call]
        timeout=standing.chapter.timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(standing.chapter.path.parent)}},
        record_timing=False,
        store_widget_state=False,
        shutdown_kernel="immediate",
        log=_quiet_log(),
    )


async def _start_kernel(client: NotebookClient, env: Mapping[str, str]) -> None:
    """Start it ahead of `async_setup_kernel`, whose signal handlers would run while the kernel starts and end
    the kernel instead of the build.
    """
    client.km = client.create_kernel_manager()
    await client.async_start_new_kernel(env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await client.async_start_new_kernel_client()


def _quiet_log() -> Any:
    """A log that says nothing: what a client would log is told in the BookError."""
    import logging

    log = logging.getLogger("bookkit.execute")
    log.setLevel(logging.CRITICAL)
    return log


def _leave_signals_to_python() -> None:
    """Undo the client's handlers, of which only the last of several would work, so that Ctrl-C ends the
    build.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(number)


async def _execute_cell(
    client: NotebookClient, chapter: Chapter, cell: text.Cell, count: int
) -> list[Output]:
    """Run one cell and return its outputs as they are to be stored."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    node = client.nb.cells[cell.index]
    try:
        await client.async_execute_cell(node, cell.index, execution_count=count, store_history=False)
    except CellTimeoutError as error:
        raise _cell_error(
            chapter,
            cell,
            f"did not end within {chapter.timeout} seconds",
            hint="Make it end, or give the chapter more time in its header: bookkit: {timeout: 600}",
        ) from error
    except CellExecutionError as error:
        raise _raised(chapter, cell, error) from error
    except DeadKernelError as error:
        raise _cell_error(chapter, cell, "the kernel died while this cell ran") from error
    return notebook.normalised([dict(output) for output in node.outputs], count)


def _raised(chapter: Chapter, cell: text.Cell, error: Any) -> BookError:
    """The exception that a cell raised, at the chapter's line that raised it."""
    lines = cell.source.split("\n")
    line = _raising_line(notebook.ANSI.sub("", error.traceback), len(lines))
    message = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    source = lines[line - 1].strip()
    hint = (
        f"It was raised by: {source}\nThe last good notebook is kept. A cell that is to fail is opened by "
        '```python tags=["raises-exception"]'
    )
    return _cell_error(chapter, cell, notebook.ANSI.sub("", message), line, hint)


def _raising_line(trace: str, lines: int) -> int:
    """The cell's line that raised the last exception of a traceback; 1 when it cannot be told.

    Exceptions that caused the last one stand before it, and may come from other cells.
    """
    match = CELL_LINE.search(CHAINED.split(trace)[-1])
    line = int(match.group(1)) if match else 1
    return line if line <= lines else 1


def _cell_error(
    chapter: Chapter, cell: text.Cell, message: str, line: int = 1, hint: str | None = None
) -> BookError:
    return BookError(message, path=chapter.source, line=cell.line + line - 1, cell=cell.number, hint=hint)
