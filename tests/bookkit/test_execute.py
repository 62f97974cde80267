"""Chapters run in kernels of their own, side by side, and give the same bytes every time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy import HEADER, edit_notebook, replace, snapshot

from bookkit import book, build, execute, notebook
from bookkit.errors import BookError
from bookkit.progress import Lines


class Recorder(Lines):
    """A display that remembers who started, advanced and finished, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def started(self, chapter: book.Chapter, cells: int) -> None:
        self.events.append(("started", chapter.name))

    def advanced(self, chapter: book.Chapter) -> None:
        self.events.append(("advanced", chapter.name))

    def finished(self, outcome: execute.Outcome) -> None:
        self.events.append(("finished", outcome.standing.chapter.name))
        super().finished(outcome)


def words(root: Path, *cells: str, header: str = "") -> None:
    """Give the toy book's second chapter these cells; a cell may bring its own fence."""
    fenced = [cell if cell.startswith("```") else f"```python\n{cell}\n```" for cell in cells]
    head = HEADER.replace("---\njupyter", f"---\n{header}\njupyter") if header else HEADER
    content = f"{head}\n# Words {{#sec-words}}\n\n" + "\n\n".join(fenced) + "\n"
    (root / "chapters/02-words.md").write_text(content, encoding="utf-8")


def run_words(root: Path, *, force: bool = False) -> list[dict[str, object]]:
    """Execute that chapter alone and return its code cells."""
    loaded = book.load(root)
    build.notebooks(loaded, [loaded.find("words")], Recorder(), force=force)
    return [c for c in notebook.load(loaded.find("words").notebook)["cells"] if c["cell_type"] == "code"]


def failure(root: Path) -> BookError:
    """The error of executing that chapter; its notebook must be as it was."""
    before = snapshot(root)
    with pytest.raises(BookError) as caught:
        run_words(root)
    assert snapshot(root) == before
    return caught.value


def text_of(cell: dict[str, object]) -> object:
    return cell["outputs"][0]["text"]  # type: ignore[index]


def test_outputs_are_the_same_in_every_kernel(built_book: Path) -> None:
    words(
        built_book,
        "import os, sys\nprint([*{'a', 'b', 'c', 'd'}], hash('a'))\nprint('e', file=sys.stderr)",
        "print(os.path.basename(os.getcwd()))",
        "7",
        "'hidden';",
        "_ if '_' in globals() and _ == 7 else 'no history'",
    )
    first = run_words(built_book)
    before = snapshot(built_book)
    assert run_words(built_book, force=True) == first
    assert snapshot(built_book) == before
    assert [output["name"] for output in first[0]["outputs"]] == ["stdout", "stderr"]  # type: ignore[index]
    assert text_of(first[1]) == "chapters\n"
    shown = [cell["outputs"][0]["data"]["text/plain"] for cell in first[2:]]  # type: ignore[index]
    assert shown == ["7", "'hidden'", "'no history'"]  # as nbval runs it: without history
    assert first[2]["outputs"][0]["execution_count"] == first[2]["execution_count"] == 3  # type: ignore[index]


def test_a_kernel_imports_the_modules_of_its_own_repository(built_book: Path) -> None:
    words(built_book, "import toykit, pathlib\nprint(pathlib.Path(toykit.__file__).parents[1].name)")
    assert text_of(run_words(built_book)[0]) == "book\n"


def test_a_failing_cell_is_told_with_line_cell_and_exception(built_book: Path) -> None:
    words(built_book, "def half(n):\n    return n / 0", "x = 1\n\nhalf(x)", "print('never')")
    error = failure(built_book)
    lines = (built_book / "chapters/02-words.md").read_text(encoding="utf-8").splitlines()
    assert error.message == "ZeroDivisionError: division by zero"
    assert (error.path, error.cell) == ("chapters/02-words.md", 3)
    assert error.line == lines.index("half(x)") + 1
    assert "raised by: half(x)" in str(error)


def test_a_syntax_error_in_an_unsaved_cell_is_told_at_its_line(built_book: Path) -> None:
    words(built_book, "x = 1", "y = 2\nx = = 1")
    error = failure(built_book)
    assert error.message.startswith("SyntaxError")
    lines = (built_book / "chapters/02-words.md").read_text(encoding="utf-8").splitlines()
    assert error.line == lines.index("x = = 1") + 1


@pytest.mark.parametrize(
    "cell, raising",
    [
        ('x = 1\nraise RuntimeError("Cell In[1], line 99")', 'raise RuntimeError("Cell In[1], line 99")'),
        ('x = 1\nraise ValueError("y") from kept', 'raise ValueError("y") from kept'),
        ("try:\n    early()\nexcept ZeroDivisionError:\n    int('no')", "    int('no')"),
        (
            'raise ValueError("""\nThe above exception was the direct cause of:\nCell In[1], line 99""")',
            'raise ValueError("""',
        ),
    ],
)
def test_whatever_a_traceback_says_the_line_of_the_last_exception_is_told(
    built_book: Path, cell: str, raising: str
) -> None:
    early = "\n" * 20 + "def early():\n    return 1 / 0\n\n\ntry:\n    early()\n"
    words(built_book, early + "except ZeroDivisionError as error:\n    kept = error", cell)
    error = failure(built_book)
    lines = (built_book / "chapters/02-words.md").read_text(encoding="utf-8").splitlines()
    assert (error.cell, error.line) == (3, lines.index(raising) + 1)
    assert error.message.startswith(("RuntimeError: Cell In", "ValueError: "))


def test_an_error_nobody_foresaw_is_told_with_its_chapter_and_stops_no_other(
    built_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = notebook.write

    def broken(standing: notebook.Standing, *arguments: Any) -> bool:
        if standing.chapter.name == "words":
            raise IndexError("list index out of range")
        return write(standing, *arguments)

    monkeypatch.setattr(notebook, "write", broken)
    loaded, display = book.load(built_book), Recorder()
    with pytest.raises(BookError, match=r"02-words\.md: could not be executed: IndexError") as caught:
        build.notebooks(loaded, loaded.select(["words", "both"]), display, force=True)
    assert isinstance(caught.value.__cause__, IndexError)
    assert any(line.startswith("03-both: executed in") for line in display.lines)


def test_what_a_process_started_by_a_cell_prints_stays_out_of_the_builds_own_output(
    built_book: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words(built_book, "import os\nos.system('echo leaked; echo leaked >&2');")
    run_words(built_book)
    assert "leaked" not in "".join(capfd.readouterr())


def test_a_cell_that_does_not_end_is_stopped_after_the_chapters_limit(built_book: Path) -> None:
    endless = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end:\n    pass"
    words(built_book, "x = 1", endless, header="bookkit: {timeout: 1}")
    error = failure(built_book)
    assert error.message == "did not end within 1 seconds"
    assert error.cell == 3
    assert error.hint and "timeout:" in error.hint


def test_a_cell_that_kills_its_kernel_is_named(built_book: Path) -> None:
    words(built_book, "import os", "os._exit(3)")
    error = failure(built_book)
    assert (error.message, error.cell) == ("the kernel died while this cell ran", 3)


def test_a_cell_tagged_to_raise_keeps_its_exception_and_goes_on(built_book: Path) -> None:
    words(built_book, '```python tags=["raises-exception"]\n1 / 0\n```', "print('after')")
    cells = run_words(built_book)
    assert cells[0]["outputs"] == [
        {
            "output_type": "error",
            "ename": "ZeroDivisionError",
            "evalue": "division by zero",
            "traceback": ["ZeroDivisionError: division by zero"],
        }
    ]
    assert text_of(cells[1]) == "after\n"


def test_without_a_kernel_the_way_to_one_is_told(built_book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client import kernelspec

    def missing(self: object, kernel_name: str) -> None:
        raise kernelspec.NoSuchKernel(kernel_name)

    monkeypatch.setattr(kernelspec.KernelSpecManager, "get_kernel_spec", missing)
    words(built_book, "1")
    assert "pip install ipykernel" in str(failure(built_book))


TERMINATED = """
import os, signal
from nbclient import NotebookClient
from bookkit.cli import cli

start = NotebookClient.async_start_new_kernel

async def terminated(self, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    await start(self, **options)

NotebookClient.async_start_new_kernel = terminated
cli(["execute", "--force", "words"], standalone_mode=False)
"""


def test_a_build_that_is_terminated_while_a_kernel_starts_ends_at_once_and_quietly(built_book: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED], cwd=built_book, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")


def test_chapters_run_side_by_side_and_failures_do_not_stop_the_others(built_book: Path) -> None:
    words(built_book, "import time\ntime.sleep(0.1)", "raise RuntimeError('first')")
    replace(built_book / "chapters/03-both.md", "print(double_shout", "print(1, double_shout")
    loaded, display = book.load(built_book), Recorder()
    with pytest.raises(BookError, match="RuntimeError: first"):
        build.notebooks(loaded, loaded.select(["words", "both"]), display, jobs=2)
    assert [event for event, _ in display.events[:2]] == ["started", "started"]
    assert ("finished", "both") in display.events
    assert display.events.count(("advanced", "both")) == 2
    assert build.notebooks(loaded, loaded.select(["both"]), display) == []
    assert any(line.startswith("02-words: failed after") for line in display.lines)
    assert any(
        line.startswith("03-both: executed in") and "its code changed" in line for line in display.lines
    )


def test_one_job_runs_one_chapter_at_a_time(built_book: Path) -> None:
    loaded, display = book.load(built_book), Recorder()
    build.notebooks(loaded, loaded.select(["words", "both"]), display, jobs=1, force=True)
    order = [(event, name) for event, name in display.events if event != "advanced"]
    assert order == [("started", "words"), ("finished", "words"), ("started", "both"), ("finished", "both")]


def test_a_chapter_that_requires_a_missing_package_keeps_its_outputs(built_book: Path) -> None:
    path = built_book / "chapters/02-words.md"
    replace(path, "---\njupyter", "---\nbookkit: {requires: [no-such-package]}\njupyter")
    replace(path, "# any word will do", "import no_such_package")
    before = snapshot(built_book)
    loaded, display = book.load(built_book), Recorder()
    assert build.notebooks(loaded, [loaded.find("words")], display, force=True) == []
    assert snapshot(built_book) == before
    assert display.lines == [
        "02-words: outputs kept, not executed: it requires no-such-package, not installed",
    ]


def test_required_packages_are_known_by_either_name() -> None:
    assert execute.is_installed("PyYAML") and execute.is_installed("yaml")
    assert not execute.is_installed("no-such-package")


# nbval, which re-executes every notebook in the test run.


def nbval(root: Path, *notebooks: str) -> subprocess.CompletedProcess[str]:
    conftest = Path(__file__).parents[2] / "conftest.py"
    (root / "conftest.py").write_text(conftest.read_text(encoding="utf-8"), encoding="utf-8")
    plugins = ["-p", "nbval.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "--nbval", "-rs", *notebooks]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    settings = {"PYTHONHASHSEED": "7", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=root, env=env | settings, capture_output=True, text=True)


def test_nbval_accepts_a_built_notebook_and_refuses_a_changed_one(built_book: Path) -> None:
    pytest.importorskip("nbval")
    words(
        built_book, "print([*{'a', 'b', 'c', 'd'}])", "3", '```python tags=["raises-exception"]\n1 / 0\n```'
    )
    run_words(built_book)
    done = nbval(built_book, "chapters/02-words.ipynb")
    assert "3 passed" in done.stdout, done.stdout

    def corrupt(content: dict[str, object]) -> None:
        content["cells"][2]["outputs"][0]["data"]["text/plain"] = ["4"]  # type: ignore[index]

    edit_notebook(built_book / "chapters/02-words.ipynb", corrupt)
    done = nbval(built_book, "chapters/02-words.ipynb")
    assert "1 failed, 2 passed" in done.stdout, done.stdout


def test_nbval_skips_a_chapter_whose_package_is_missing_and_says_which(built_book: Path) -> None:
    pytest.importorskip("nbval")
    replace(
        built_book / "chapters/02-words.md",
        "---\njupyter",
        "---\nbookkit: {requires: [no-such-package]}\njupyter",
    )
    done = nbval(built_book, "chapters/02-words.ipynb")
    assert "2 skipped" in done.stdout and "requires no-such-package, not installed" in done.stdout
