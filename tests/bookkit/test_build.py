"""A build does what content makes necessary, says what and why, and loses nothing that anyone typed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from toy import edit_notebook, replace, snapshot, write_toy_book

from bookkit import book, build, execute, files, notebook, status
from bookkit.errors import BookError
from bookkit.notebook import Standing
from bookkit.progress import Lines


class Quiet(Lines):
    """A display that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def run(root: Path, *names: str, **options: Any) -> build.Report:
    loaded = book.load(root)
    chosen = loaded.select(names) if names else ()
    return build.run(loaded, chosen, render=False, display=Quiet(), **options)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Chapters that a build would execute; no kernel is started and no notebook written."""
    titles: list[str] = []

    def pretend(standings: Sequence[Standing], *_: object, **__: object) -> list[execute.Outcome]:
        titles.extend(standing.chapter.title for standing in standings)
        return [execute.Outcome(standing, True, None, 0.0) for standing in standings]

    monkeypatch.setattr(execute, "run", pretend)
    return titles


def reasons(root: Path) -> dict[str, str]:
    rows, errors = status.rows(book.load(root))
    assert not errors
    return {row.chapter.title: row.why for row in rows if row.why}


# Second build is free


def test_the_whole_book_is_built_and_a_second_build_does_nothing(toy_book: Path) -> None:
    report = build.run(book.load(toy_book), display=Quiet())
    assert report.modules == ("toykit/numbers.py", "toykit/words.py", "toykit/both.py")
    assert sorted(report.executed) == ["01-numbers", "02-words", "03-both", "solutions/01-numbers"]
    assert "figures/numbers-line.svg" in report.figures
    assert any(page.endswith("index.html") for page in report.pages)
    before = snapshot(toy_book)
    assert build.run(book.load(toy_book), display=Quiet()).is_empty
    assert snapshot(toy_book) == before


def test_a_fresh_clone_is_clean_after_a_build(built_book: Path, tmp_path: Path) -> None:
    def git(*arguments: str, cwd: Path) -> str:
        settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=cwd, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "-q", cwd=built_book)
    git("add", ".", cwd=built_book)
    git("commit", "-qm", "all", cwd=built_book)
    clone = tmp_path / "clone"
    git("clone", "-q", str(built_book), str(clone), cwd=tmp_path)
    assert build.run(book.load(clone), display=Quiet()).executed == ()
    assert git("status", "--porcelain", cwd=clone) == ""


def test_force_executes_everything_and_changes_no_byte(built_book: Path) -> None:
    before = snapshot(built_book)
    assert len(run(built_book, force=True).executed) == 4
    assert snapshot(built_book) == before


HEAVY = ["IPython", "jupyter_client", "jupytext", "matplotlib", "mermaidx", "nbclient", "nbformat", "rich"]


def test_a_build_with_nothing_to_do_says_so_and_imports_nothing_heavy(built_book: Path) -> None:
    run_cli = "import sys; from bookkit.cli import cli; cli(['build'], standalone_mode=False); "
    report = f"print([name for name in {HEAVY} if name in sys.modules])"
    build.run(book.load(built_book), display=Quiet())
    done = subprocess.run(
        [sys.executable, "-c", run_cli + report], cwd=built_book, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["Nothing to do: 4 chapters, everything is up to date.", "[]"], (
        done.stderr
    )


# Exactly what is stale


def test_a_changed_sentence_reaches_the_notebook_and_executes_nothing(
    built_book: Path, executed: list[str]
) -> None:
    before = notebook.outputs_of(notebook.load(built_book / "chapters/02-words.ipynb"))
    replace(built_book / "chapters/02-words.md", "shouted in capitals", "shouted in capital letters")
    assert reasons(built_book) == {"02-words": "its prose or options changed"}
    report = run(built_book)
    assert (report.rewritten, executed) == (("02-words",), [])
    after = notebook.load(built_book / "chapters/02-words.ipynb")
    assert "shouted in capital letters" in after["cells"][0]["source"]
    assert notebook.outputs_of(after) == before
    assert run(built_book).is_empty


def test_a_comment_in_an_unsaved_cell_executes_only_its_chapter(
    built_book: Path, executed: list[str]
) -> None:
    replace(built_book / "chapters/02-words.md", "# any word will do", "# a word")
    assert reasons(built_book) == {"02-words": "its code changed"}
    assert run(built_book).modules == ()
    assert executed == ["02-words"]


def test_a_saved_cell_executes_its_chapter_and_those_that_import_it(
    built_book: Path, executed: list[str]
) -> None:
    replace(built_book / "chapters/01-numbers.md", "DOUBLE = 2", "DOUBLE = 1 + 1")
    assert reasons(built_book) == {
        "01-numbers": "its code changed",
        "03-both": "toykit/numbers.py changed",
        "solutions/01-numbers": "toykit/numbers.py changed",
    }
    assert run(built_book).modules == ("toykit/numbers.py",)
    assert executed == ["01-numbers", "03-both", "solutions/01-numbers"]


def test_after_an_edit_only_what_it_reaches_is_built_again(built_book: Path) -> None:
    replace(built_book / "chapters/02-words.md", 'word.upper() + "!"', 'word.upper() + "?"')
    report = run(built_book)
    assert report.modules == ("toykit/words.py",)
    assert sorted(report.executed) == ["02-words", "03-both"]
    assert "TOY?TOY?" in (built_book / "chapters/03-both.ipynb").read_text(encoding="utf-8")
    assert run(built_book).is_empty


def test_only_the_chapters_asked_for_are_built(built_book: Path, executed: list[str]) -> None:
    replace(built_book / "chapters/01-numbers.md", "DOUBLE = 2", "DOUBLE = 1 + 1")
    run(built_book, "solutions/numbers")
    assert executed == []
    run(built_book, "numbers")
    assert executed == ["01-numbers"]


def test_outputs_that_a_reader_changed_are_made_anew(built_book: Path) -> None:
    path = built_book / "chapters/02-words.ipynb"
    before = path.read_bytes()

    def ran(content: dict[str, Any]) -> None:
        content["cells"][3]["outputs"][0]["data"]["text/plain"] = ["'TOYS!'"]
        content["cells"][3]["execution_count"] = 12

    edit_notebook(path, ran)
    assert run(built_book).executed == ("02-words",)
    assert path.read_bytes() == before


# Nothing typed is lost


def edit_code(content: dict[str, Any]) -> None:
    content["cells"][3]["source"] = ["print(double(20))"]


def test_a_notebook_edited_by_hand_stops_the_build_and_is_kept(built_book: Path) -> None:
    edit_notebook(built_book / "chapters/01-numbers.ipynb", edit_code)
    replace(built_book / "chapters/02-words.md", 'word.upper() + "!"', 'word.upper() + "?"')
    before = snapshot(built_book)
    with pytest.raises(BookError) as caught:
        run(built_book)
    assert snapshot(built_book) == before
    told = str(caught.value)
    assert told.startswith("chapters/01-numbers.ipynb: was edited")
    assert "cell 4: print(double(20))" in told and "bookkit pull 01-numbers" in told


@pytest.mark.parametrize("force", [False, True])
def test_when_both_were_edited_neither_is_touched(built_book: Path, force: bool) -> None:
    edit_notebook(built_book / "chapters/01-numbers.ipynb", edit_code)
    replace(built_book / "chapters/01-numbers.md", "The answer is 42.", "The answer is not 40.")
    before = snapshot(built_book)
    with pytest.raises(BookError, match="were both edited"):
        run(built_book, force=force)
    assert snapshot(built_book) == before


def edited_meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let somebody change a file after a chapter's cells ran and before its notebook is written."""

    async def ran(*_: object) -> list[tuple[int, list[Any]]]:
        change()
        return [(1, []), (2, [])]

    monkeypatch.setattr(execute, "_outputs", ran)


def test_an_edit_saved_in_the_notebook_while_its_chapter_runs_is_kept(
    built_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built_book / "chapters/02-words.ipynb"
    replace(built_book / "chapters/02-words.md", "# any word will do", "# a word")
    edited_meanwhile(monkeypatch, lambda: edit_notebook(path, edit_code))
    with pytest.raises(BookError, match="was edited while its chapter was executed; nothing was written"):
        run(built_book)
    assert "print(double(20))" in path.read_text(encoding="utf-8")


def test_a_notebook_that_appears_while_its_chapter_runs_is_kept(
    built_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built_book / "chapters/02-words.ipynb"
    built = path.read_bytes()
    path.unlink()

    def appear() -> None:
        path.write_bytes(built)
        edit_notebook(path, edit_code)

    edited_meanwhile(monkeypatch, appear)
    with pytest.raises(BookError, match="was edited while its chapter was executed"):
        run(built_book)
    assert "print(double(20))" in path.read_text(encoding="utf-8")


def test_a_notebook_that_another_build_wrote_meanwhile_is_no_edit(
    built_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built_book / "chapters/02-words.ipynb"
    built = path.read_bytes()
    path.unlink()
    edited_meanwhile(monkeypatch, lambda: path.write_bytes(built))
    assert run(built_book).executed == ("02-words",)


def test_a_module_edited_by_hand_stops_the_build_before_anything_is_written(built_book: Path) -> None:
    replace(built_book / "toykit/words.py", '"!"', '"?"')
    replace(built_book / "chapters/01-numbers.md", "DOUBLE = 2", "DOUBLE = 1 + 1")
    before = snapshot(built_book)
    with pytest.raises(BookError, match="was edited by hand"):
        run(built_book)
    assert snapshot(built_book) == before


KILLED = """
import os, sys
from pathlib import Path
from bookkit import book, build

left, replace = int(sys.argv[1]), os.replace

def dying(*arguments):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    replace(*arguments)

os.replace = dying
build.run(book.load(Path.cwd()), render=False)
"""


def test_killed_before_any_replacement_every_file_is_whole_and_the_next_build_finishes(
    built_book: Path, tmp_path: Path
) -> None:
    replace(built_book / "chapters/02-words.md", 'word.upper() + "!"', 'word.upper() + "?"')
    finished = Path(shutil.copytree(built_book, tmp_path / "finished"))
    old = snapshot(built_book)
    run(finished)
    new = snapshot(finished)
    for step in range(1, 4):
        root = Path(shutil.copytree(built_book, tmp_path / f"killed-{step}"))
        done = subprocess.run([sys.executable, "-c", KILLED, str(step - 1)], cwd=root, capture_output=True)
        assert done.returncode == 9
        whole = {name: data for name, data in snapshot(root).items() if files.TEMPORARY not in name}
        assert whole.keys() == old.keys()
        assert all(data in (old[name], new[name]) for name, data in whole.items())
    run(root)
    assert {name: data for name, data in snapshot(root).items() if files.TEMPORARY not in name} == new


# Bad surroundings


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_only(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize(
    "where, name, fault, message",
    [
        (files.os, "fdopen", full_disk, "No space left on device"),
        (files.os, "replace", full_disk, "No space left on device"),
        (files.tempfile, "mkstemp", read_only, "Read-only file system"),
    ],
)
def test_a_full_disk_or_read_only_folder_is_told_and_nothing_is_lost(
    built_book: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str, fault: object, message: str
) -> None:
    replace(built_book / "chapters/02-words.md", "shouted in capitals", "shouted in capital letters")
    before = snapshot(built_book)
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(BookError, match=message) as caught:
        run(built_book)
    monkeypatch.undo()
    assert snapshot(built_book) == before
    assert caught.value.path == built_book / "chapters/02-words.ipynb"
    assert run(built_book).rewritten == ("02-words",)


def test_a_file_keeps_its_mode_and_is_not_touched_without_a_change(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    assert files.write_text(path, "one")
    path.chmod(0o640)
    assert files.write_text(path, "two")
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o640, "two")
    stamp = path.stat().st_ino
    assert not files.write_text(path, "two")
    assert path.stat().st_ino == stamp
    assert [each.name for each in path.parent.iterdir()] == ["file.txt"]


# Status


def test_status_shows_every_chapter_with_state_and_seconds(built_book: Path) -> None:
    rows, _ = status.rows(book.load(built_book))
    table = status.table(rows, versions=True).splitlines()
    assert table[0].split()[:6] == ["chapter", "module", "cells", "state", "seconds", "why"]
    assert table[1].split()[:4] == ["01-numbers", "numbers", "7", "fresh"]
    assert "Python 3" in table[1] and "ipython" in table[1]
    assert status.summary(rows) == "All 4 chapters are fresh."


def test_status_of_a_fresh_toy_book_says_what_is_to_do(toy_book: Path) -> None:
    rows, _ = status.rows(book.load(toy_book))
    assert (rows[0].state, rows[0].module) == ("not built", "numbers (to write)")
    assert status.summary(rows) == "4 of 4 chapters are behind: run `bookkit build`."


@pytest.mark.parametrize("damaged", ['{"01-numbers": null}', '{"01-numbers": "soon"}', "[1]", "{"])
def test_a_damaged_record_of_seconds_is_none(built_book: Path, damaged: str) -> None:
    (built_book / build.SECONDS).write_text(damaged, encoding="utf-8")
    rows, _ = status.rows(book.load(built_book))
    assert rows[0].seconds is None


def test_a_record_of_seconds_that_cannot_be_written_hides_no_error(
    built_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(built_book / "chapters/02-words.md", "# any word will do", "# a word")
    (built_book / build.SECONDS).unlink()
    (built_book / build.SECONDS).mkdir()

    def failing(standings: Sequence[Standing], *_: object, **__: object) -> list[execute.Outcome]:
        return [execute.Outcome(each, False, BookError("NameError: shut"), 0.0) for each in standings]

    monkeypatch.setattr(execute, "run", failing)
    with pytest.raises(BookError, match="NameError: shut"):
        run(built_book)


def test_status_goes_on_past_a_chapter_that_cannot_be_read(built_book: Path) -> None:
    replace(built_book / "chapters/01-numbers.md", "return DOUBLE * number", "return DOUBLE *")
    edit_notebook(built_book / "chapters/02-words.ipynb", edit_code)
    (built_book / "chapters/03-both.ipynb").write_text("{", encoding="utf-8")
    rows, errors = status.rows(book.load(built_book))
    assert [row.state for row in rows] == ["stale", "edited", "broken", "fresh"]
    assert "syntax error" in str(errors[0])


def test_a_part_of_the_book_can_be_built_while_the_rest_is_unwritten(
    tmp_path: Path, executed: list[str]
) -> None:
    root = write_toy_book(tmp_path / "book")
    (root / "chapters/03-both.md").unlink()
    run(root, "words")
    assert executed == ["02-words"]
    with pytest.raises(BookError, match="does not exist"):
        run(root)
