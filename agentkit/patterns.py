# Built by bookkit from chapters/07-patterns.md. Edit the chapter, not this file.
# bookkit: cells c39a6f94c3f3, body 79c7d5e02e1f
"""Patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from agentkit.loop import (
    Decision,
    Gate,
    Limits,
    Model,
    Observation,
    RunState,
    Stop,
    decide,
    estimate_tokens,
    execute_call,
    reply_ends,
    run_agent,
)
from agentkit.tools import JSON, ToolCall, ToolSpec, check_call, own_name
from agentkit.wire import NOTHING_TO_ADD, Message, NotJSON, Reply, answer_message, normalise_reply, parse_json

__all__ = [
    "CITE",
    "CLASSIFY",
    "CRITIQUE",
    "JOIN",
    "ORDER",
    "REPLY",
    "SPLIT",
    "Accept",
    "Meter",
    "Outcome",
    "Replies",
    "T",
    "ask",
    "charge",
    "draft",
    "failed",
    "fan_out",
    "judged",
    "look_up",
    "over_ceiling",
    "overlap",
    "paid_cents",
    "quote_policy",
    "read_label",
    "read_parts",
    "reads_of",
    "refund_call",
    "refund_paid",
    "remaining",
    "route",
    "run_adaptive",
    "run_chain",
    "run_evaluator",
    "run_orchestrator",
    "run_parallel",
    "run_router",
    "states_amount",
]


# %% chapters/07-patterns.md § One meter, one ending


@dataclass
class Meter:
    """What one run of a pattern has spent, and what became of its tool calls.

    limits         ceilings of the run: `max_turns` model calls, `max_prompt_tokens` for any one prompt
    model_calls    calls of a model so far
    prompt_tokens  estimated tokens of all prompts sent
    record         one observation for each call put to the effect boundary, in order
    """

    limits: Limits = field(default_factory=Limits)
    model_calls: int = 0
    prompt_tokens: int = 0
    record: list[Observation] = field(default_factory=list)

    @property
    def tool_calls(self) -> int:
        """Calls put to the effect boundary, denied ones included."""
        return len(self.record)

    def chat(self, model: Model, messages: list[Message]) -> Message | Reply:
        """Charge one model call and make it."""
        self.model_calls += 1
        self.prompt_tokens += estimate_tokens(messages)
        return model.chat(messages)

    def execute(self, call: ToolCall, tools: Mapping[str, ToolSpec], gate: Gate) -> Observation:
        """Charge one call and take it over the effect boundary. What a handler raises passes through."""
        try:
            seen = execute_call(call, tools, gate)
        except BaseException as error:
            why = f"cut off by {type(error).__name__}: the effect may or may not have happened"
            self.record.append(Observation(call.call_id, False, "unknown", why))
            raise
        self.record.append(seen)
        return seen


@dataclass(frozen=True)
class Outcome:
    """How a pattern ended.

    answer  its text, if the model gave one; with any ending but answered and goal_met, do not send it
    seen    the observation that stopped it, or else the one that the answer rests on
    note    one line for the log, where there is something to say
    """

    stop: Stop
    answer: str | None = None
    seen: Observation | None = None
    note: str = ""


def failed(seen: Observation) -> Outcome:
    """The outcome of a pattern whose step did not give a result: a person decides, or the goal is unmet."""
    return Outcome(Stop.NEEDS_APPROVAL if seen.kind == "pending" else Stop.GOAL_UNMET, None, seen)


def over_ceiling(meter: Meter, messages: list[Message]) -> Stop | None:
    """The ending, if a ceiling of the meter forbids to send these messages."""
    if meter.model_calls >= meter.limits.max_turns:
        return Stop.STEP_LIMIT
    return Stop.TOKEN_LIMIT if estimate_tokens(messages) > meter.limits.max_prompt_tokens else None


def ask(model: Model, prompt: str, meter: Meter) -> tuple[Stop, str | None]:
    """Put one question to a model: `answered` and its text, or the ending that stands in the way and None.

    A call that the reply proposes is not run; such a reply is malformed.
    """
    messages: list[Message] = [{"role": "user", "content": prompt}]
    stop = over_ceiling(meter, messages)
    if stop is not None:
        return stop, None
    reply, calls = normalise_reply(meter.chat(model, messages))
    stop = reply_ends(reply.stop_reason, bool(calls)) or Stop.MALFORMED
    return stop, reply.message["content"] if stop is Stop.ANSWERED else None


def draft(model: Model, prompt: str, seen: Observation | None, meter: Meter) -> Outcome:
    """Have a text written that rests on `seen`."""
    stop, text = ask(model, prompt, meter)
    return Outcome(stop, text, seen)


class Replies:
    """A scripted model for patterns: one reply a call, in order, whatever is asked."""

    def __init__(self, replies: Iterable[Message | Reply | str]) -> None:
        self._rest = iter(replies)

    def chat(self, messages: list[Message]) -> Message | Reply:
        """The next reply; a string is a plain answer."""
        reply = next(self._rest, NOTHING_TO_ADD)
        return answer_message(reply) if isinstance(reply, str) else reply


# %% chapters/07-patterns.md § The chain

ORDER = "A-17"  # the only order of the support desk
CITE = "Write the customer one sentence that cites this receipt: "


def look_up(order_id: str, call_id: str) -> ToolCall:
    """The call that reads an order."""
    return ToolCall(call_id, "lookup_order", {"order_id": order_id})


def refund_call(order_id: str, amount_cents: JSON, call_id: str) -> ToolCall:
    """The call that pays money back."""
    return ToolCall(call_id, "refund_order", {"order_id": order_id, "amount_cents": amount_cents})


def paid_cents(order: Observation) -> JSON:
    """What an order says was paid; None when it does not say, which the refund's contract then refuses."""
    return order.content.get("paid_cents") if isinstance(order.content, dict) else None


def refund_paid(
    order: Observation,
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    meter: Meter,
    call_id: str,
    order_id: str = ORDER,
) -> Observation:
    """Refund exactly what the order says was paid. A lookup that failed is returned, and nothing is paid."""
    if not order.ok:
        return order
    return meter.execute(refund_call(order_id, paid_cents(order), call_id), tools, gate)


def run_chain(
    model: Model, tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter, order_id: str = ORDER
) -> Outcome:
    """The chain: code owns the sequence, and the model is asked once, for the letter."""
    order = meter.execute(look_up(order_id, "c1"), tools, gate)
    receipt = refund_paid(order, tools, gate, meter, "c2", order_id)
    if not receipt.ok:
        return failed(receipt)
    return draft(model, CITE + json.dumps(receipt.content), receipt, meter)


# %% chapters/07-patterns.md § The router

CLASSIFY = "Which desk, 'billing' or 'policy'? One word. "


# %% chapters/07-patterns.md § Pitfall


def read_label(text: str, labels: Iterable[str]) -> str | None:
    """The label that a reply consists of, case and surrounding punctuation aside; None for anything else."""
    word = text.strip().strip("'\".!`*").casefold()
    return next((label for label in labels if label.casefold() == word), None)


def route(prompt: str, branches: Mapping[str, Callable[[], Outcome]], model: Model, meter: Meter) -> Outcome:
    """One bounded decision: the model names a branch, code runs it. An unknown name runs none."""
    stop, text = ask(model, prompt, meter)
    if text is None:
        return Outcome(stop)
    label = read_label(text, branches)
    if label is None:
        return Outcome(Stop.MALFORMED, note=f"no route for {text[:60]!r}")
    return replace(branches[label](), note=f"routed to {label}")


def quote_policy(tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter) -> Outcome:
    """Answer with the policy itself; no model takes part."""
    seen = meter.execute(ToolCall("r1", "read_policy", {}), tools, gate)
    return Outcome(Stop.ANSWERED, f"Our policy: {seen.content}", seen) if seen.ok else failed(seen)


def run_router(task: str, model: Model, tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter) -> Outcome:
    """The router: the model picks `billing` or `policy`, and code owns both."""
    branches = {
        "billing": lambda: run_chain(model, tools, gate, meter),
        "policy": lambda: quote_policy(tools, gate, meter),
    }
    return route(CLASSIFY + task, branches, model, meter)


# %% chapters/07-patterns.md § The fan-out

T = TypeVar("T")


def overlap(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run all jobs at the same time; their results in the order of the jobs.

    If some raise, all are waited for, and the error of the first of them in that order is raised.
    """
    with ThreadPoolExecutor(max_workers=max(len(jobs), 1)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


def judged(call: ToolCall, tools: Mapping[str, ToolSpec], gate: Gate) -> Gate:
    """A gate that repeats what `gate` says to this call now. A call that breaks its contract is not shown."""
    ready, problem = check_call(call, tools)
    decision = decide(gate, ready) if ready else Decision("deny", problem or "")
    return lambda asked: decision


def fan_out(
    calls: Sequence[ToolCall], tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter
) -> list[Observation]:
    """Run independent reads side by side; one observation each, in the order of `calls`.

    Raises ValueError, before anything runs, for a call of an effectful tool. If a handler crashes, the
    others finish first, and all of them are on the meter's record.
    """
    for call in calls:
        name = own_name(tools, call.name)
        if name is not None and tools[name].effectful:
            raise ValueError(f"{name} changes the world: execute it by itself, not in a fan-out")
    gates = [judged(call, tools, gate) for call in calls]
    own = [Meter() for _ in calls]  # threads share nothing
    each = zip(own, calls, gates, strict=True)
    try:
        return overlap([partial(one.execute, call, tools, said) for one, call, said in each])
    finally:
        meter.record += [seen for one in own for seen in one.record]


def run_parallel(
    model: Model, tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter, order_id: str = ORDER
) -> Outcome:
    """The fan-out: both reads at once, then the refund by itself, then one letter with all of it in view."""
    reads = [look_up(order_id, "p1"), ToolCall("p2", "read_policy", {})]
    order, policy = fan_out(reads, tools, gate, meter)
    if not policy.ok:
        return failed(policy)
    receipt = refund_paid(order, tools, gate, meter, "p3", order_id)
    if not receipt.ok:
        return failed(receipt)
    facts = json.dumps({"lookup_order": order.content, "read_policy": policy.content})
    prompt = f"What we know: {facts}. Write one sentence that cites {json.dumps(receipt.content)}."
    return draft(model, prompt, receipt, meter)


# %% chapters/07-patterns.md § The evaluator

Accept = Callable[[str, JSON], bool]
REPLY = "Write a reply for this receipt: {}."
CRITIQUE = " The last draft was rejected: it must name the exact amount."


def states_amount(text: str, receipt: JSON) -> bool:
    """Whether a text names the refunded amount, as a number of its own and not inside a longer one."""
    return re.search(rf"(?<!\d){receipt['refunded_cents']}(?!\d)", text) is not None


def run_evaluator(
    model: Model,
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    meter: Meter,
    max_rounds: int = 3,
    accept: Accept = states_amount,
    order_id: str = ORDER,
) -> Outcome:
    """The evaluator: refund once, then draft until `accept(text, receipt)` or `max_rounds` drafts.

    An accepted draft ends goal_met. After the last round the last draft comes back with goal_unmet.
    """
    order = meter.execute(look_up(order_id, "e1"), tools, gate)
    receipt = refund_paid(order, tools, gate, meter, "e2", order_id)
    if not receipt.ok:
        return failed(receipt)
    prompt = REPLY.format(json.dumps(receipt.content))
    outcome = Outcome(Stop.GOAL_UNMET, None, receipt)
    for _ in range(max_rounds):
        outcome = draft(model, prompt, receipt, meter)
        if outcome.answer is None:
            return outcome
        if accept(outcome.answer, receipt.content) is True:
            return replace(outcome, stop=Stop.GOAL_MET)
        prompt = REPLY.format(json.dumps(receipt.content)) + CRITIQUE
    return replace(outcome, stop=Stop.GOAL_UNMET)


# %% chapters/07-patterns.md § The agent


def charge(meter: Meter, state: RunState) -> None:
    """Charge a run of the kernel to a meter. Calls that it skipped never came to the boundary."""
    meter.model_calls += len(state.prompt_token_log)
    meter.prompt_tokens += sum(state.prompt_token_log)
    meter.record += [seen for seen in state.observations if seen.kind != "skipped"]


def remaining(meter: Meter, most: int | None = None) -> Limits:
    """The meter's limits less the model calls already made, and at most `most` turns."""
    left = max(0, meter.limits.max_turns - meter.model_calls)
    return replace(meter.limits, max_turns=left if most is None else min(left, most))


def run_adaptive(task: str, model: Model, tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter) -> Outcome:
    """The agent: the kernel's loop, in which the model picks each step and the end."""
    result = run_agent(task, model, tools, gate, remaining(meter))
    charge(meter, result.state)
    seen = result.state.observations[-1] if result.state.observations else None
    return Outcome(result.stop, result.answer, seen)


# %% chapters/07-patterns.md § Orchestrator and workers

SPLIT = "Split this task into independent questions: a JSON list of strings and nothing else. Task: "
JOIN = "Answer the task from these reports. Say what is missing. Task: "


def reads_of(tools: Mapping[str, ToolSpec]) -> dict[str, ToolSpec]:
    """The tools that only read."""
    return {name: spec for name, spec in tools.items() if not spec.effectful}


def read_parts(text: str, most: int) -> list[str] | None:
    """The questions of a split: 1 to `most` strings in a JSON list; None for anything else."""
    try:
        parts = parse_json(text)
    except NotJSON:
        return None
    fits = isinstance(parts, list) and 1 <= len(parts) <= most
    return parts if fits and all(isinstance(part, str) and part for part in parts) else None


def run_orchestrator(
    task: str,
    model: Model,
    worker: Callable[[str], Model],
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    meter: Meter,
    max_parts: int = 4,
    turns_each: int = 4,
) -> Outcome:
    """Split the task, give each part to a fresh agent that can only read, join their reports.

    `worker(part)` is the model for one part. A worker that does not answer is reported with its ending.
    """
    stop, text = ask(model, SPLIT + task, meter)
    if text is None:
        return Outcome(stop)
    parts = read_parts(text, max_parts)
    if parts is None:
        return Outcome(Stop.MALFORMED, note=f"no list of 1 to {max_parts} questions: {text[:60]!r}")
    reports = []
    for part in parts:
        result = run_agent(part, worker(part), reads_of(tools), gate, remaining(meter, turns_each))
        charge(meter, result.state)
        reports.append({"question": part, "ending": result.stop.value, "answer": result.answer})
    return draft(model, f"{JOIN}{task} Reports: {json.dumps(reports)}", None, meter)
