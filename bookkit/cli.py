"""The command line."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bookkit import book as books
from bookkit.errors import BookError


class _Book:
    def __init__(self, root: Path | None) -> None:
        self.root = root

    def load(self) -> books.Book:
        root = self.root or books.find_root(Path.cwd())
        return books.load(root.resolve())


@click.group()
@click.option(
    "--root", type=click.Path(path_type=Path, exists=True, file_okay=False), help="The book's folder."
)
@click.pass_context
def cli(context: click.Context, root: Path | None) -> None:
    """Build an executable book."""
    context.obj = _Book(root)


@cli.command()
@click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")
@click.option("--check", is_flag=True, help="Write nothing; name what would change and exit 1.")
@click.pass_obj
def tangle(here: _Book, chapters: tuple[str, ...], check: bool) -> None:
    """Write the modules that the saved cells make."""
    from bookkit import tangle as tangling

    book = here.load()
    changed = tangling.run(book, book.select(chapters), check=check)
    for name in changed:
        click.echo(f"{name}: {'would change' if check else 'written'}")
    if not changed:
        click.echo("Nothing to do: the modules match their chapters.")
    if check and changed:
        sys.exit(1)


def main() -> None:
    """Run the command; a BookError is a message and exit status 1."""
    try:
        cli()
    except BookError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
