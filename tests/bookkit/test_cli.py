"""The commands say what they do and what is wrong, and exit with 0, 1 or 2."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from toy import edit_notebook, replace, snapshot

from bookkit.cli import cli

COMMANDS = ["build", "tangle", "execute", "figures", "render", "status", "check", "pull", "preview", "new"]


def bookkit(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bookkit", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ | {"CI": "true"})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = CliRunner().invoke(cli, [command, "--help"])
    assert done.exit_code == 0
    description = done.output.split("Options:")[0]
    assert len(description.split()) > 10
    options = [each for each in cli.commands[command].params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []


def test_the_commands_are_listed_in_the_order_of_the_work() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    assert re.findall(r"^  (\w+)  ", output.split("Commands:")[1], re.MULTILINE) == COMMANDS


def test_tangle_writes_modules_and_then_has_nothing_to_do(toy_book: Path) -> None:
    first = bookkit(toy_book, "tangle", "words")
    assert (first.returncode, first.stdout) == (0, "toykit/words.py: written\n")
    second = bookkit(toy_book / "chapters", "tangle", "words")
    assert (second.returncode, second.stdout) == (0, "Nothing to do: the modules match their chapters.\n")


@pytest.mark.parametrize("command", ["tangle", "execute", "figures"])
def test_check_writes_nothing_names_what_would_change_and_exits_1(built_book: Path, command: str) -> None:
    fine = bookkit(built_book, command, "--check")
    assert (fine.returncode, fine.stdout.startswith("Nothing to do")) == (0, True)
    replace(built_book / "chapters/02-words.md", 'word.upper() + "!"', 'word.upper() + "?"')
    path = built_book / "chapters/01-numbers.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("M1 2L5", "M1 3L5"), encoding="utf-8")
    before = snapshot(built_book)
    done = bookkit(built_book, command, "--check")
    assert done.returncode == 1
    named = {
        "tangle": "toykit/words.py",
        "execute": "chapters/01-numbers.ipynb",
        "figures": "figures/numbers-line.svg",
    }
    assert named[command] in done.stdout and "would change" in done.stdout
    assert snapshot(built_book) == before


def test_an_unknown_chapter_is_one_sentence_with_a_suggestion(toy_book: Path) -> None:
    for command in (["build"], ["tangle"], ["execute"], ["pull"]):
        done = bookkit(toy_book, *command, "wrods")
        assert done.returncode == 1
        assert done.stderr == "Error: no chapter is called 'wrods'\nDid you mean words or 02-words?\n"


def test_an_unknown_figure_is_told(built_book: Path) -> None:
    done = bookkit(built_book, "figures", "fig-numbers-lime")
    assert done.returncode == 1
    assert "fig-numbers-lime" in done.stderr and "fig-numbers-line" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["bild"], ["build", "--frce"], ["build", "--jobs", "0"], ["pull"]])
def test_wrong_usage_exits_2(toy_book: Path, arguments: list[str]) -> None:
    done = bookkit(toy_book, *arguments)
    assert done.returncode == 2
    assert "Usage: " in done.stderr


def test_outside_of_a_book_the_way_in_is_told(tmp_path: Path) -> None:
    done = bookkit(tmp_path, "status")
    assert done.returncode == 1
    assert "_quarto.yml" in done.stderr and "--root" in done.stderr


def test_a_chapter_that_is_not_utf8_is_told_with_its_path_from_here(toy_book: Path) -> None:
    path = toy_book / "chapters/02-words.md"
    path.write_bytes(path.read_bytes() + b"\xff")
    done = bookkit(toy_book, "tangle")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: chapters/02-words.md:")
    assert "not UTF-8" in done.stderr


def test_a_missing_package_is_told_with_the_command_that_brings_it(toy_book: Path) -> None:
    run = "import sys; sys.modules['nbclient'] = None; sys.argv = ['bookkit', 'execute', 'words']; "
    done = subprocess.run(
        [sys.executable, "-c", run + "from bookkit.cli import main; main()"],
        cwd=toy_book,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "needs the package nbclient" in done.stderr and 'pip install -e ".[book]"' in done.stderr


def test_status_shows_a_table_and_what_to_do(toy_book: Path) -> None:
    done = bookkit(toy_book, "status")
    assert done.returncode == 0
    assert "02-words" in done.stdout and "not built" in done.stdout
    assert done.stdout.endswith("4 of 4 chapters are behind: run `bookkit build`.\n")


def test_pull_says_which_cells_it_took(built_book: Path) -> None:
    edit_notebook(
        built_book / "chapters/01-numbers.ipynb",
        lambda content: content["cells"][4].update(source=["The answer is 40."]),
    )
    done = bookkit(built_book, "pull", "numbers")
    assert done.stdout == "chapters/01-numbers.md: cell 5: The answer is 40.\n"
    again = bookkit(built_book, "pull", "numbers")
    assert again.stdout.startswith("Nothing to do")


def test_new_says_what_it_wrote_and_what_is_next(toy_book: Path) -> None:
    done = bookkit(toy_book, "new", "squares")
    assert done.stdout.splitlines()[0] == "chapters/04-squares.md: written"
    assert "bookkit build squares" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["build"], ["status"], ["execute", "--force", "words"]])
def test_an_output_that_is_full_is_one_sentence(built_book: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "bookkit", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=built_book, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be written: no space left on device\n"


def test_a_log_gets_plain_lines(built_book: Path) -> None:
    done = bookkit(built_book, "execute", "--force", "words")
    assert re.fullmatch(r"02-words: executed in \d+\.\d s \(asked for\)\n", done.stdout)


def test_a_terminal_gets_a_bar_that_goes_away(built_book: Path) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "bookkit", "execute", "--force", "words"]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, cwd=built_book, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    shown = _read_all(leader)
    assert process.wait() == 0
    assert "━" in shown and "cells" in shown
    assert re.search(r"02-words: executed in \d+\.\d s \(asked for\)", shown)


def _read_all(descriptor: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # how Linux tells that the other side has closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(descriptor)
    return b"".join(chunks).decode(errors="replace")


def test_a_failing_cell_exits_1_and_is_told_on_standard_error(built_book: Path) -> None:
    replace(built_book / "chapters/02-words.md", 'shout("toy")', "shout(7)")
    done = bookkit(built_book, "build")
    assert done.returncode == 1
    assert "02-words: failed after" in done.stdout
    line = (built_book / "chapters/02-words.md").read_text(encoding="utf-8").splitlines().index(
        "shout(7)"
    ) + 1
    assert f"Error: chapters/02-words.md:{line}: cell 4: AttributeError" in done.stderr
