"""What the kernel costs, as ratios: python tests/benchmarks/bench_kernel.py

A ratio compares two measurements of one process, so that it says the same on a fast and on a slow machine.
Not part of the test run: a busy machine would make it lie.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import jsonschema

from agentkit.loop import Limits, allow_all, run_agent
from agentkit.schema import compile_schema
from agentkit.tools import ToolSpec
from agentkit.wire import tool_call_message

TURNS = (50, 100, 200, 400)
LONG_RUN = 10_000
SECONDS = 1.5  # how long each pair is measured; the best of its rounds counts

PROPOSAL = tool_call_message("call_1", "noop", {"number": 7})
WIRE = json.dumps(PROPOSAL)

ORDER = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^[A-Z]-[0-9]+$"},
        "amount_cents": {"type": "integer", "minimum": 1, "maximum": 100_000},
        "currency": {"enum": ["EUR", "USD"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 5},
        "customer": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "vip": {"type": "boolean"}},
            "required": ["name"],
        },
    },
    "required": ["order_id", "amount_cents", "currency"],
    "additionalProperties": False,
}
VALUE = {
    "order_id": "A-17",
    "amount_cents": 4999,
    "currency": "EUR",
    "tags": ["damaged", "urgent"],
    "customer": {"name": "Ada", "vip": True},
}


class OneCall:
    """A model that proposes the same call for ever and takes no time over it."""

    def chat(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        return PROPOSAL


class FreshCall:
    """The same, each time as a message of its own, as from a network."""

    def chat(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        return json.loads(WIRE)


def noop(number: int) -> dict[str, int]:
    return {"number": number}


TOOLS = {"noop": ToolSpec("Do nothing.", {"number": int}, noop)}


def bare_loop(turns: int) -> None:
    """The least that a loop does: read the arguments, look at one type, call, write the result."""
    model, messages = OneCall(), [{"role": "user", "content": "Go."}]
    done = 0
    while done < turns:
        reply = model.chat(messages)
        messages.append(reply)
        call = reply["tool_calls"][0]
        arguments = json.loads(call["function"]["arguments"])
        if type(arguments["number"]) is not int:
            raise TypeError("number")
        content = json.dumps(noop(**arguments))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        done += 1


def kernel(turns: int, model: Any = OneCall()) -> Any:  # noqa: B008 (it holds nothing)
    """The same run through the kernel: parse, validate, gate, run, append, account."""
    return run_agent("Go.", model, TOOLS, allow_all, Limits(max_turns=turns, max_prompt_tokens=10**9))


def seconds(work: Callable[[], Any]) -> float:
    """Processor time, so that other processes are not counted."""
    start = time.process_time()
    work()
    return time.process_time() - start


def paired(left: Callable[[], Any], right: Callable[[], Any]) -> tuple[float, float]:
    """The best of many rounds of each, taken in turn so that a busy moment hits both."""
    rounds, end = [(seconds(left), seconds(right))], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        rounds.append((seconds(left), seconds(right)))
    return min(pair[0] for pair in rounds), min(pair[1] for pair in rounds)


def report(name: str, value: float, unit: str, limit: str, holds: bool) -> bool:
    print(f"{name:<52} {value:8.2f} {unit:<3} wanted {limit:<7} {'ok' if holds else 'MISSED'}")
    return holds


def bench_turns() -> bool:
    """Growth is that of the ratio: a turn of the bare loop costs the same at any length, noise apart."""
    ratios, fine = {}, True
    for turns in TURNS:
        ours, theirs = paired(lambda n=turns: kernel(n), lambda n=turns: bare_loop(n))
        ratios[turns] = ours / theirs
        print(f"    {turns} turns: {ours / turns * 1e6:.1f} us a turn, bare {theirs / turns * 1e6:.1f}")
        name = f"kernel turn against a bare while loop, {turns} turns"
        fine &= report(name, ratios[turns], "x", "<= 6", ratios[turns] <= 6)
    growth = max(ratios.values()) / ratios[TURNS[0]]
    return report("growth of a turn's cost, 50 to 400 turns", growth, "x", "< 1.15", growth < 1.15) and fine


def bench_validation() -> bool:
    ours, theirs = compile_schema(ORDER), jsonschema.Draft202012Validator(ORDER)
    assert ours.problem(VALUE) is None
    assert theirs.is_valid(VALUE)
    left, right = paired(
        lambda: [ours.problem(VALUE) for _ in range(200)],
        lambda: [theirs.is_valid(VALUE) for _ in range(200)],
    )
    return report("validation, times as fast as jsonschema", right / left, "x", ">= 5", right / left >= 5)


def import_milliseconds(code: str, cache: str) -> float:
    """What -X importtime counts for this code, every module once: the least of fifteen processes."""
    command = [sys.executable, "-X", "importtime", "-c", code]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    totals = []
    for _ in range(15):
        log = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr
        totals.append(sum(int(own) for own in re.findall(r"^import time:\s+(\d+) \|", log, re.M)))
    return min(totals) / 1000


def bench_import() -> bool:
    """Compiled modules are read from a cache, as they are from the second import on any machine."""
    with tempfile.TemporaryDirectory() as cache:
        milliseconds = import_milliseconds("import agentkit.loop", cache) - import_milliseconds("pass", cache)
    return report(
        "import agentkit.loop above the bare interpreter", milliseconds, "ms", "< 50", milliseconds < 50
    )


def peak_bytes(work: Callable[[], Any]) -> tuple[int, Any]:
    tracemalloc.start()
    kept = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, kept


def bench_memory() -> bool:
    half, _ = peak_bytes(lambda: kernel(LONG_RUN // 2, FreshCall()))
    peak, result = peak_bytes(lambda: kernel(LONG_RUN, FreshCall()))
    text = json.dumps(result.state.messages)
    transcript, _ = peak_bytes(lambda: json.loads(text))
    print(f"    {LONG_RUN} turns: peak {peak / 1e6:.1f} MB, transcript {transcript / 1e6:.1f} MB")
    fine = report(
        "peak memory against the transcript's own size", peak / transcript, "x", "< 2", peak / transcript < 2
    )
    return (
        report("peak memory, 10 000 turns against 5 000", peak / half, "x", "< 2.2", peak / half < 2.2)
        and fine
    )


if __name__ == "__main__":
    results = [bench() for bench in (bench_turns, bench_validation, bench_import, bench_memory)]
    sys.exit(not all(results))
