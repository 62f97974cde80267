"""Public test cases: the folder named by AGENTKIT_CASES, else `../shared/cases` beside the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "cases"


def folder() -> Path:
    """Where the cases are looked for."""
    return Path(os.environ.get("AGENTKIT_CASES") or BESIDE)


def load(name: str) -> list[dict[str, Any]]:
    """The records of `name`.jsonl; without the file the test, or the module that loads it, is skipped."""
    path = folder() / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"no public cases at {path}: set AGENTKIT_CASES to their folder", allow_module_level=True)
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
