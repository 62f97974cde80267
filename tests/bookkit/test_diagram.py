"""Every kind of diagram is plain SVG; every way of laying one out gives the same bytes in every process."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytest.importorskip("mermaidx")

from bookkit import diagram, svg

KINDS = {
    "flowchart": """flowchart LR
  start([Start]) --> gate{ok?} -->|no| refuse[(log)]
  subgraph harness [Harness]
    gate --> run
  end
  run ==> done((end)) -.-> round(x)""",
    "sequence": """sequenceDiagram
  autonumber
  participant M as Model
  participant H as Harness
  H->>M: messages and a text that is long enough to wrap
  alt allowed
    H->>H: run
  else denied
    H-->>M: reason
  end
  Note over M,H: turn""",
    "state": """stateDiagram-v2
  [*] --> running
  state running {
    a --> b
  }
  running --> [*]: end
  note right of running: loop""",
    "class": """classDiagram
  class Registry {
    +find(name) ToolSpec
  }
  Mapping <|-- Registry : is""",
    "er": """erDiagram
  ORDER ||--o{ REFUND : has
  ORDER {
    int paid
  }""",
    "gantt": """gantt
  dateFormat YYYY-MM-DD
  section Turn
  propose :a, 2024-01-01, 1d
  execute :after a, 2d""",
    "pie": 'pie\n  "3.14159265" : 80\n  "history" : 20',
    "mindmap": "mindmap\n  root((agent))\n    tools\n    loop",
    "timeline": """timeline
  one : propose
  two : execute""",
    "journey": "journey\n  title A refund\n  section Desk\n    Look up: 5: Agent\n    Refund: 3: Agent",
    "quadrant": "quadrantChart\n  x-axis cheap --> dear\n  y-axis weak --> strong\n  agent: [0.8, 0.9]",
    "git": 'gitGraph\n  commit id: "a"\n  branch fix\n  commit id: "b"\n  checkout main\n  merge fix id: "c"',
    "xychart": "xychart-beta\n  x-axis [1, 2, 3]\n  y-axis 0 --> 300\n  line [54, 142, 229]",
    "block": "block-beta\n  columns 2\n  model harness\n  model --> harness",
    "sankey": "sankey-beta\n\nprompt,cached,80\nprompt,fresh,20",
    "requirement": """requirementDiagram
  requirement bound {
  id: 1
  }""",
}
# One of each way of laying things out: a graph, measured texts in a row, a simulation that starts at random.
TWICE = ("flowchart", "sequence", "mindmap")
DRAW = """
import json, sys
sys.path.insert(0, sys.argv[1])
from test_diagram import KINDS, TWICE
from bookkit import diagram
print(json.dumps({kind: diagram.draw(KINDS[kind], f"fig-toy-{kind}") for kind in TWICE}))
"""


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, str], dict[str, str]]:
    """Every kind drawn in this process and, at the same time, some in another one with another hash seed."""
    here = Path(__file__).parent
    other = subprocess.Popen(
        [sys.executable, "-c", DRAW, str(here)],
        cwd=here.parents[1],
        env={"PYTHONHASHSEED": "7", "PATH": ""},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    ours = {kind: diagram.draw(source, f"fig-toy-{kind}") for kind, source in KINDS.items()}
    theirs, _ = other.communicate()
    return ours, json.loads(theirs)


@pytest.fixture(scope="module")
def drawn(both: tuple[dict[str, str], dict[str, str]]) -> dict[str, str]:
    return both[0]


@pytest.mark.parametrize("kind", TWICE)
def test_another_process_draws_the_same_bytes(both: tuple[dict[str, str], dict[str, str]], kind: str) -> None:
    ours, theirs = both
    assert ours[kind] == theirs[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_plain_svg_text(drawn: dict[str, str], kind: str) -> None:
    picture = ET.fromstring(drawn[kind])
    kinds = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert "foreignObject" not in kinds
    assert "svg" in kinds and "text" in kinds


@pytest.mark.parametrize("kind", KINDS)
def test_identifiers_and_styles_belong_to_the_label(drawn: dict[str, str], kind: str) -> None:
    picture = ET.fromstring(drawn[kind])
    identifiers = [element.get("id", "") for element in picture.iter() if element.get("id")]
    assert all(name.startswith(f"fig-toy-{kind}") for name in identifiers), identifiers
    body = drawn[kind].rpartition("</style>")[2]
    assert all(identifiers.count(name) == 1 for name in svg.REFERENCE.findall(body))


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_has_a_size_of_its_own(drawn: dict[str, str], kind: str) -> None:
    root = ET.fromstring(drawn[kind])
    _, _, width, height = (root.get("viewBox") or "").split()
    assert (root.get("width"), root.get("height")) == (width, height)
    assert float(width) > 20 and float(height) > 20


def test_a_picture_stays_readable_on_a_dark_page(drawn: dict[str, str]) -> None:
    assert all('style="background-color: #ffffff"' in picture[:400] for picture in drawn.values())


def test_a_text_that_looks_like_a_coordinate_is_left_alone(drawn: dict[str, str]) -> None:
    assert "3.14159265" in drawn["pie"]


def test_mermaid_shows_one_output_named_by_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[dict[str, str]] = []
    monkeypatch.setattr(svg, "display", lambda data, raw: outputs.append(data))
    monkeypatch.setattr(svg, "running_cell", svg.RunningCell())
    svg.running_cell.label = "fig-toy-path"
    diagram.mermaid(KINDS["pie"])
    assert [set(output) for output in outputs] == [{"image/svg+xml", "text/plain"}]
    assert outputs[0]["text/plain"] == "fig-toy-path"


@pytest.mark.parametrize("source", ["", "flowchart LR\n  a -->", "no such diagram"])
def test_a_source_that_mermaid_cannot_read_is_refused_by_name(source: str) -> None:
    with pytest.raises(ValueError, match="fig-toy-bad: Mermaid cannot draw this"):
        diagram.draw(source, "fig-toy-bad")
