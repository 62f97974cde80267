"""The command line: what each command takes and says. What it does lives in the module it calls."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookkit import book as books
from bookkit.errors import BookError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bookkit.book import Book


@dataclass(frozen=True)
class Here:
    """Where the book is: the folder asked for, or the nearest one above that holds `_quarto.yml`."""

    folder: Path | None

    def load(self) -> Book:
        """Read the book's plan."""
        return books.load(self.folder.resolve() if self.folder else books.find_root(Path.cwd()))


class Commands(click.Group):
    """Lists the commands in the order of the work, not of the alphabet."""

    def list_commands(self, context: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)


def chapter_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """The optional list of chapters that most commands take."""
    return click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")(command)


def check_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--check`, which the commands that write share."""
    return click.option("--check", is_flag=True, help="Write nothing; name what would change and exit 1.")(
        command
    )


def jobs_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--jobs`, which the commands that execute share."""
    return click.option(
        "--jobs", type=click.IntRange(1), help="Notebooks at once.  [default: as many as cores]"
    )(command)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The book's folder.  [default: the nearest one above with a _quarto.yml]",
)
@click.pass_context
def cli(context: click.Context, root: Path | None) -> None:
    """Build an executable book.

    Only chapters/*.md are edited. Modules, notebooks, figures and pages are built from them; what did not
    change is not built again. Start with `bookkit build`; `bookkit status` says what is behind and why.

    CHAPTER is a chapter's name (gate), its number (5), both (05-gate) or its path. A chapter's solutions
    are solutions/05-gate.
    """
    context.obj = Here(root)


@cli.command()
@chapter_arguments
@click.option("--force", is_flag=True, help="Make everything anew, stale or not.")
@jobs_option
@click.pass_obj
def build(here: Here, chapters: tuple[str, ...], force: bool, jobs: int | None) -> None:
    """Build what is behind: modules, notebooks, figures, pages.

    Says what it did and why. Never overwrites a notebook or a module that somebody edited: it stops and says
    how to keep the edit. Exits 1 when a cell failed; that chapter keeps its last good notebook.
    """
    from bookkit import build as building
    from bookkit.progress import display

    book = here.load()
    chosen = book.select(chapters)
    with display() as show:
        report = building.run(book, chosen if chapters else (), force=force, jobs=jobs, display=show)
    if report.is_empty:
        skipped = f" but {', '.join(report.skipped)}" if report.skipped else ""
        click.echo(f"Nothing to do: {_count(len(chosen), 'chapter')}, everything is up to date{skipped}.")


@cli.command()
@chapter_arguments
@check_option
@click.pass_obj
def tangle(here: Here, chapters: tuple[str, ...], check: bool) -> None:
    """Write the modules that the saved cells make.

    Every cell that starts with `# @save` goes to the module of its chapter (`# @save NAME`: to module NAME).
    All cells are validated before the first file is written.
    """
    from bookkit import tangle as tangling

    book = here.load()
    changed = tangling.run(book, book.select(chapters), check=check)
    _tell(changed, check, "the modules match their chapters")


@cli.command()
@chapter_arguments
@click.option("--force", is_flag=True, help="Execute the chapters even if they are fresh.")
@check_option
@jobs_option
@click.pass_obj
def execute(here: Here, chapters: tuple[str, ...], force: bool, check: bool, jobs: int | None) -> None:
    """Execute the chapters whose code, modules, data or pinned packages changed.

    Each runs in a kernel of its own, in its notebook's folder. A failing cell is shown with its line in the
    chapter; the last good notebook is kept.
    """
    from bookkit import build as building
    from bookkit.progress import display

    book = here.load()
    chosen = book.select(chapters)
    if check:
        _tell(building.behind(book, chosen, force=force), check, "the notebooks match their chapters")
        return
    with display() as show:
        changed = building.notebooks(book, chosen, show, force=force, jobs=jobs)
    if not changed:
        click.echo("Nothing to do: the notebooks match their chapters.")


@cli.command()
@click.argument("labels", nargs=-1, metavar="[LABEL]...")
@check_option
@click.pass_obj
def figures(here: Here, labels: tuple[str, ...], check: bool) -> None:
    """Export labelled pictures from the executed notebooks to figures/.

    LABEL is a figure's label, such as fig-loop-prompt-growth. Without one, all are exported.
    """
    from bookkit import export

    _tell(export.run(here.load(), list(labels), check), check, "the figures match the notebooks")


@cli.command()
@click.option(
    "--to",
    "formats",
    multiple=True,
    type=click.Choice(["html", "epub", "pdf"]),
    help="A format; may be given several times.  [default: all]",
)
@click.option(
    "--engine",
    type=click.Choice(["quarto", "pandoc"]),
    help="Who renders.  [default: quarto if it is installed, else the built-in pandoc]",
)
@click.pass_obj
def render(here: Here, formats: tuple[str, ...], engine: str | None) -> None:
    """Render the pages to _book/ as HTML, EPUB and PDF. Executes nothing."""
    from bookkit import render as rendering

    book = here.load()
    for path in rendering.run(book, list(formats) or ["html", "epub", "pdf"], engine):
        click.echo(f"{_shown(path, book.root)}: written")


@cli.command()
@click.option("--versions", is_flag=True, help="Also show what each notebook was executed with.")
@click.pass_obj
def status(here: Here, versions: bool) -> None:
    """Show how every chapter stands, and why it is stale. Writes nothing."""
    from bookkit import status as standing

    book = here.load()
    rows, errors = standing.rows(book)
    click.echo(standing.table(rows, versions=versions))
    for name in book.missing:
        click.echo(f"{name}: listed in {books.CONFIG}, does not exist")
    for error in errors:
        click.echo(f"\n{error}")
    click.echo(f"\n{standing.summary(rows)}")


@cli.command()
@click.pass_obj
def check(here: Here) -> None:
    """Prove that nothing is stale and that the pages can be trusted. Writes and executes nothing.

    Names every fault with its place and exits 1 if there is one.
    """
    from bookkit import check as checking

    book = here.load()
    problems = checking.run(book)
    for problem in problems:
        click.echo(str(problem))
    if problems:
        raise SystemExit(f"{_count(len(problems), 'problem')} found.")
    click.echo(f"No problem found in {_count(len(book.pages), 'page')}.")


@cli.command()
@click.argument("chapter")
@click.pass_obj
def pull(here: Here, chapter: str) -> None:
    """Take edits made in a chapter's notebook back into its text.

    Changes the text only, and only where a cell differs. If the text was edited as well, changes nothing.
    """
    from bookkit import pull as pulling

    book = here.load()
    found = book.find(chapter)
    for line in pulling.run(found) or [f"Nothing to do: {found.source} has what its notebook has."]:
        click.echo(line)


@cli.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=4200, show_default=True, help="Where to serve."
)
@click.pass_obj
def preview(here: Here, port: int) -> None:
    """Serve the pages on this machine; rebuild and reload when a chapter is saved."""
    from bookkit import preview as previewing

    previewing.serve(here.load(), port)


@cli.command()
@click.argument("name")
@click.option("--title", help="The chapter's title.  [default: its name]")
@click.option("--part", help="The part it joins.  [default: the last one with chapters in it]")
@click.pass_obj
def new(here: Here, name: str, title: str | None, part: str | None) -> None:
    """Start a chapter: its text, its module's tests, its line in _quarto.yml.

    NAME is one word in lower case: it names the chapter's file, its module and its tests.
    """
    from bookkit import new as starting

    for path in starting.run(here.load(), name, title=title, part=part):
        click.echo(f"{path}: written")
    click.echo(f"Next: `bookkit build {name}`, then write.")


def _tell(changed: Iterable[str], check: bool, fine: str) -> None:
    """Say what was, or would be, written; exit 1 when a check found something."""
    names = list(changed)
    for name in names:
        click.echo(f"{name}: {'would change' if check else 'written'}")
    if not names:
        click.echo(f"Nothing to do: {fine}.")
    if check and names:
        sys.exit(1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


@contextmanager
def told() -> Iterator[None]:
    """A BookError is a message and exit status 1; a missing package names the command that brings it."""
    try:
        yield
    except BookError as error:
        click.echo(f"Error: {_relative(str(error))}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "bookkit":
            raise
        click.echo(f"Error: this needs the package {error.name}, which is not installed.", err=True)
        click.echo('Install what the book needs: python -m pip install -e ".[book]"', err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        click.echo("Error: the output cannot be written: no space left on device", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        sys.exit(1)


def _relative(message: str) -> str:
    """The message with paths as seen from here."""
    return message.replace(f"{Path.cwd()}{os.sep}", "")


def main() -> None:
    """Run the command given on the command line."""
    with told():
        cli(prog_name="bookkit")
