# Built by bookkit from chapters/10-verification.md. Edit the chapter, not this file.
# bookkit: cells ba5ef2e78cd1, body 34d634e3a7e9
"""Verification."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agentkit.loop import (
    Decision,
    Gate,
    Limits,
    Model,
    Observation,
    RunResult,
    RunState,
    Stop,
    count_chars,
    resume_agent,
    run_agent,
)
from agentkit.tools import JSON, ToolCall, ToolSpec, make_environment
from agentkit.wire import (
    Message,
    Reply,
    answer_message,
    parse_tool_calls,
    tool_call_message,
    tool_message,
)

__all__ = [
    "MOVES",
    "NUMBER",
    "Batch",
    "Dice",
    "Environment",
    "Move",
    "Outcome",
    "RandomModel",
    "Run",
    "Verdict",
    "batches",
    "bounded",
    "broken",
    "broken_runs",
    "by_batch",
    "canonical",
    "check_run",
    "cites_receipt",
    "effects_authorized",
    "history",
    "is_short",
    "judge_run",
    "looked_up_first",
    "observations_correlated",
    "prompt_sizes",
    "propose",
    "random_call",
    "random_gate",
    "random_limits",
    "random_run",
    "refund_again",
    "speak",
    "typed_ending",
    "verify_refund",
    "witnesses",
]


# %% chapters/10-verification.md § Effects are authorized


def canonical(value: JSON) -> str:
    """One spelling for one JSON value. The order of keys does not count; 1, 1.0 and True are three values."""
    return json.dumps(value, sort_keys=True, default=repr)


def witnesses(receipt: Mapping[str, JSON], limit: int) -> tuple[str, str]:
    """How a result may show a receipt: whole, or cut after `limit` characters with the kernel's mark."""
    text = json.dumps(receipt, ensure_ascii=False, default=repr)
    return canonical(receipt), canonical(f"{text[:limit]} [cut: {limit} of {len(text)} characters]")


def effects_authorized(state: RunState, effects: Iterable[Mapping[str, JSON]], limits: Limits) -> bool:
    """Whether each receipt of the effect log has a result of its own that shows it."""
    results = Counter(
        canonical(seen.content) for seen in state.observations if seen.ok is True and seen.kind == "result"
    )
    for receipt in effects:
        shown = next((form for form in witnesses(receipt, limits.max_result_chars) if results[form]), None)
        if shown is None:
            return False
        results[shown] -= 1
    return True


# %% chapters/10-verification.md § Observations are correlated


@dataclass(frozen=True)
class Batch:
    """The calls that one message proposes, and the tool messages that follow it."""

    calls: Sequence[ToolCall] = ()
    results: list[Message] = field(default_factory=list)


def batches(state: RunState) -> list[Batch]:
    """The transcript as batches. A tool message that no proposal precedes is in a batch without calls."""
    found = [Batch()]
    for message in state.messages:
        if message.get("role") == "tool":
            found[-1].results.append(message)
        else:
            proposes = message.get("role") == "assistant"
            found.append(Batch(parse_tool_calls(message) if proposes else ()))
    return found


def by_batch(state: RunState) -> Iterator[tuple[Batch, list[Observation]]]:
    """Each batch with its observations. Those that belong to none come last, with an empty batch."""
    observations = iter(state.observations)
    for batch in batches(state):
        yield batch, list(islice(observations, len(batch.results)))
    yield Batch(), list(observations)


def observations_correlated(state: RunState) -> bool:
    """Whether each proposal has exactly one tool message, and each tool message its own observation."""
    for batch, seen in by_batch(state):
        proposed = sorted(canonical(call.call_id) for call in batch.calls)
        answered = sorted(canonical(message.get("tool_call_id")) for message in batch.results)
        recorded = sorted(canonical(tool_message(o.call_id, o.ok, o.kind, o.content)) for o in seen)
        if proposed != answered or recorded != sorted(map(canonical, batch.results)):
            return False
    return True


# %% chapters/10-verification.md § The run is bounded


def history(state: RunState) -> list[tuple[ToolCall, Observation]]:
    """Each call with what became of it, joined by id, in the order in which the outcomes were recorded."""
    pairs = []
    for batch, seen in by_batch(state):
        calls = {call.call_id: call for call in batch.calls}
        pairs += [(calls[each.call_id], each) for each in seen if each.call_id in calls]
    return pairs


def prompt_sizes(state: RunState) -> list[int]:
    """Estimated tokens of the prompt before each assistant message, counted again from the transcript."""
    sizes, chars = [], 0
    for message in state.messages:
        if message.get("role") == "assistant":
            sizes.append(chars // 4)
        chars += count_chars([message])
    return sizes


def is_short(seen: Observation, limit: int) -> bool:
    """Whether what a tool or gate said keeps to `limit` characters, the mark of a cut left out.

    Sentences of the kernel itself, on calls that it skipped or that wait, are short and never cut.
    """
    text = seen.content if isinstance(seen.content, str) else json.dumps(seen.content, ensure_ascii=False)
    kept = len(text) <= limit or text[limit:].startswith(f" [cut: {limit} of ")
    return kept or seen.kind in ("skipped", "pending", "unknown")


def bounded(state: RunState, limits: Limits) -> bool:
    """Whether a run, begun with `run_agent`, kept to its limits by its own counters and by the transcript."""
    sizes = prompt_sizes(state)
    queries = state.turns + state.pauses
    denied = Counter(
        (call.name, canonical(call.arguments)) for call, seen in history(state) if seen.kind == "denied"
    )
    return (
        state.turns <= limits.max_turns
        and state.pauses <= limits.max_pauses + 1  # the pause that is one too many ends the run
        and state.turns <= len(sizes) <= queries == len(state.prompt_token_log)
        and max([*sizes, *state.prompt_token_log], default=0) <= limits.max_prompt_tokens
        and max(denied.values(), default=0) <= limits.repeated_denials
        and all(is_short(seen, limits.max_result_chars) for seen in state.observations)
    )


# %% chapters/10-verification.md § The ending is typed


def typed_ending(result: RunResult) -> bool:
    """Whether the run ended in a `Stop` that its record bears out, with an answer only if it answered."""
    state = result.state
    if not isinstance(result.stop, Stop) or state.ending != result.stop.value:
        return False
    waiting = any(seen.kind == "pending" for seen in state.observations)
    if waiting and result.stop is not Stop.NEEDS_APPROVAL:
        return False
    if result.stop is not Stop.ANSWERED:
        return result.answer is None
    last = state.messages[-1] if state.messages else {}
    said = last.get("role") == "assistant" and not last.get("tool_calls")
    return said and isinstance(result.answer, str) and result.answer == last.get("content")


# %% chapters/10-verification.md § Four answers from one record


def check_run(result: RunResult, effects: Iterable[Mapping[str, JSON]], limits: Limits) -> dict[str, bool]:
    """The four promises that the kernel keeps whatever the model did, each decided from the finished record.

    `effects` is the effect log of this run alone, `limits` those that it was run under (the last ones, if it
    was resumed). Runs nothing and changes nothing.
    """
    state = result.state
    return {
        "effects_authorized": effects_authorized(state, effects, limits),
        "observations_correlated": observations_correlated(state),
        "bounded": bounded(state, limits),
        "typed_ending": typed_ending(result),
    }


def broken(checks: Mapping[str, bool]) -> list[str]:
    """The names of the checks that failed."""
    return [name for name, held in checks.items() if not held]


# %% chapters/10-verification.md § Answered is not done


def verify_refund(effects: Iterable[Mapping[str, JSON]], order_id: str, amount_cents: int) -> bool:
    """Whether the effect log holds one receipt, for this order and exactly this amount, and nothing else.

    Asks the world, so no wording of an answer changes its verdict.
    """
    wanted = canonical({"order_id": order_id, "refunded_cents": amount_cents})
    return list(map(canonical, effects)) == [wanted]


# %% chapters/10-verification.md § Three layers of checks


def looked_up_first(state: RunState) -> bool:
    """Whether an order was successfully looked up before each refund of it that went through."""
    known = set()
    for call, seen in history(state):
        order = canonical((call.arguments or {}).get("order_id"))
        if seen.ok and call.name == "lookup_order":
            known.add(order)
        if seen.ok and call.name == "refund_order" and order not in known:
            return False
    return True


NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def cites_receipt(result: RunResult, effects: Iterable[Mapping[str, JSON]]) -> bool:
    """Whether the answer names order and amount (cents, or a decimal) of each refund. False without any."""
    answer = result.answer or ""
    receipts = [receipt for receipt in effects if "refunded_cents" in receipt]
    numbers = set(NUMBER.findall(answer))

    def cited(receipt: Mapping[str, Any]) -> bool:
        cents = receipt["refunded_cents"]
        named = re.search(rf"(?<![\w-]){re.escape(receipt['order_id'])}(?![\w-])", answer)
        return bool(named) and bool(numbers & {str(cents), f"{cents / 100:.2f}"})

    return bool(receipts) and all(map(cited, receipts))


# %% chapters/10-verification.md § Count both

Outcome = Callable[[Sequence[Mapping[str, JSON]]], bool]


@dataclass(frozen=True)
class Verdict:
    """Three facts about one run, none of which follows from another."""

    answered: bool
    kept_rules: bool
    verified: bool


def judge_run(
    result: RunResult, effects: Sequence[Mapping[str, JSON]], limits: Limits, outcome: Outcome
) -> Verdict:
    """Judge a finished run: its ending, the kernel's promises, and `outcome` of its effect log."""
    kept = not broken(check_run(result, effects, limits))
    return Verdict(result.stop is Stop.ANSWERED, kept, outcome(effects))


# %% chapters/10-verification.md § Runs drawn at random

Dice = random.Random
Move = Callable[[Dice], Any]


def random_call(dice: Dice) -> tuple[str, JSON]:
    """A tool's name, real or not, and arguments, fitting or not."""
    amount = dice.choice([4999, 4999.0, 9999, 0, -1, True, "4999", None])
    order = dice.choice(["A-17", "A-17", "A-18", 17])
    arguments = [{}, {"order_id": order}, {"order_id": order, "amount_cents": amount}, [order], None]
    return dice.choice(["lookup_order", "read_policy", "refund_order", "drop_tables"]), dice.choice(arguments)


def propose(dice: Dice) -> Message:
    """One to three calls in a message, under ids that may be equal, empty or no text at all."""
    calls = []
    for _ in range(dice.randint(1, 3)):
        name, arguments = random_call(dice)
        text = dice.choice([json.dumps(arguments)] * 6 + ["{", "NaN", ""])
        function = {"name": name, "arguments": text}
        calls.append({"id": dice.choice(["a", "b", "", 7]), "type": "function", "function": function})
    return {"role": "assistant", "content": dice.choice([None, "", "Let me see."]), "tool_calls": calls}


def refund_again(dice: Dice) -> Message:
    """The refund that a tired model repeats."""
    return tool_call_message("call_1", "refund_order", {"order_id": "A-17", "amount_cents": 9999})


def speak(dice: Dice) -> Any:
    """An answer, a pause, a refusal, a reply that contradicts itself, or nothing that is a message."""
    text = answer_message(dice.choice(["Done.", "", "Refunded 9999 cents for A-17."]))
    reason = dice.choice([None, "end_turn", "pause_turn", "max_tokens", "refusal", "tool_use", "?"])
    return dice.choice([text, Reply(text, reason), Reply(propose(dice), reason), None, [], "Done."])


MOVES: tuple[Move, ...] = (propose, propose, propose, refund_again, speak)


@dataclass(frozen=True)
class RandomModel:
    """A model whose next reply is one of `moves`, thrown by `dice`, whatever the transcript says."""

    dice: Dice
    moves: Sequence[Move] = MOVES

    def chat(self, messages: list[Message]) -> Any:
        """Some reply, or something that is none."""
        return self.dice.choice(self.moves)(self.dice)


def random_gate(dice: Dice) -> Gate:
    """A gate in a mood: allows, denies, asks, answers with what is no verdict, or fails."""
    answers = [Decision("allow"), (True, "fine"), (False, "no"), Decision("ask", "ines?"), 1, None]

    def judge(call: ToolCall) -> Any:
        if dice.random() < 0.05:
            raise ConnectionError("policy service unreachable")
        return dice.choice(answers)

    return judge


def random_limits(dice: Dice) -> Limits:
    """Limits from none at all to the defaults."""
    return Limits(
        max_turns=dice.randint(0, 8),
        max_prompt_tokens=dice.choice([0, 60, 150, 400, 4000]),
        repeated_denials=dice.randint(1, 3),
        max_pauses=dice.randint(0, 2),
        max_result_chars=dice.choice([1, 20, 60, 4000]),
    )


Environment = Callable[[], tuple[Mapping[str, ToolSpec], list[dict[str, Any]]]]
Run = tuple[RunResult, list[dict[str, Any]], Limits]


def random_run(
    seed: int,
    environment: Environment = make_environment,
    model_of: Callable[[Dice], Model] = RandomModel,
) -> Run:
    """One run with model, gate and limits drawn from `seed`. A paused one is resumed, twice at most."""
    dice = Dice(seed)
    limits, (tools, effects) = random_limits(dice), environment()
    model, gate = model_of(dice), random_gate(dice)
    result = run_agent("Order A-17 arrived damaged.", model, tools, gate, limits)
    for _ in range(2):
        if result.stop is Stop.NEEDS_APPROVAL:
            result = resume_agent(result.state, model, tools, gate, limits)
    return result, effects, limits


def broken_runs(
    seeds: Iterable[int], draw: Callable[[int], Run] = random_run
) -> Iterator[tuple[int, list[str]]]:
    """The seeds whose runs break a promise, with the promises they break, in order."""
    for seed in seeds:
        failed = broken(check_run(*draw(seed)))
        if failed:
            yield seed, failed
