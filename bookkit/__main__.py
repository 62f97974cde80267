"""`python -m bookkit` is the command `bookkit`."""

from bookkit.cli import main

main()
