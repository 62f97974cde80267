"""The one exception that this tool raises for something its user can mend."""

from __future__ import annotations

from pathlib import Path


class BookError(Exception):
    """A fault in the book or in its surroundings, told with the place and the way out.

    `path` is the file at fault, `line` its 1-based line, `cell` the 1-based place of the cell among all cells
    of the chapter, `hint` one sentence on what to do. `str()` joins them: ``path:line: cell N: message`` and,
    on a line of its own, the hint.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        cell: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.path = path
        self.line = line
        self.cell = cell
        self.hint = hint
        super().__init__(self._text())

    def _text(self) -> str:
        place = "" if self.path is None else Path(self.path).as_posix()
        if place and self.line is not None:
            place += f":{self.line}"
        parts = [place, f"cell {self.cell}" if self.cell is not None else "", self.message]
        text = ": ".join(part for part in parts if part)
        return f"{text}\n{self.hint}" if self.hint else text


class BookErrors(BookError):
    """Several faults found in one go; `errors` holds them in the order of the book."""

    def __init__(self, errors: list[BookError]) -> None:
        self.errors = errors
        super().__init__("\n\n".join(str(error) for error in errors))


def raise_all(errors: list[BookError]) -> None:
    """Raise what was collected: nothing, the one error itself, or all of them as one `BookErrors`."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BookErrors(errors)
