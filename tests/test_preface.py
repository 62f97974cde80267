"""What the preface shows of the library works as printed."""

import re
from pathlib import Path

import pytest

PREFACE = Path(__file__).parent.parent / "index.md"


def test_the_library_example_of_the_preface_denies_once_and_pays_the_right_amount(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (example,) = re.findall(r"^~~~python\n(.*?)^~~~", PREFACE.read_text(encoding="utf-8"), re.S | re.M)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["receipts"] == [{"order_id": "A-17", "refunded_cents": 4999}]
    assert "denied" in capsys.readouterr().out
