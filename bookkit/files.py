"""Reading and replacing files of the book; content digests.

A file is replaced in one step: the new bytes go to a temporary file in the same folder, which then takes the
old one's place. Whoever is killed in between leaves the old file, whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from bookkit.errors import BookError

TEMPORARY = ".bookkit-"  # how the name of a half-written file begins; git ignores these


def digest(value: Any, length: int = 64) -> str:
    """The first `length` hex digits of the SHA-256 of a JSON value."""
    canonical = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def read_text(path: Path) -> str:
    """A UTF-8 file with LF line ends, whatever they are on disk.

    Raises BookError when the file is missing, unreadable or not UTF-8 (naming the line of the first bad
    byte).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}", path=path) from error
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BookError(
            f"is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            path=path,
            line=line,
            hint="Save the file as UTF-8.",
        ) from error


def write_text(path: Path, text: str) -> bool:
    """Replace the file's content in one step; return False, touching nothing, when it is `text` already."""
    data = text.encode("utf-8")
    return write_bytes(path, data)


def write_bytes(path: Path, data: bytes) -> bool:
    """Replace the file's content in one step; return False, touching nothing, when it holds `data` already.

    Raises BookError when the disk is full or the folder cannot be written; the old file is then intact.
    """
    try:
        if path.exists() and path.read_bytes() == data:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data)
    except OSError as error:
        raise BookError(
            f"cannot be written: {error.strerror}",
            path=path,
            hint="The old file is as it was. Make room or make the folder writable, then run this again.",
        ) from error
    return True


def _replace(path: Path, data: bytes) -> None:
    mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, suffix=path.suffix + ".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(name, mode & 0o777)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
