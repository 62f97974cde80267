"""What holds of every run: any replies, any gate, any limits, any place to stop and go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.loop import (
    Decision,
    Limits,
    RunCrash,
    RunInterrupted,
    RunResult,
    RunState,
    Stop,
    estimate_tokens,
    resume_agent,
    run_agent,
)
from agentkit.tools import ToolCall, ToolSpec
from agentkit.wire import Reply, Usage, answer_message, check_messages, tool_call_message

many = settings(max_examples=200, deadline=None)


class Script:
    """The n-th reply to a transcript that holds n assistant messages, so that a resumed run goes on alike."""

    def __init__(self, replies: list[Any]) -> None:
        self.replies = replies
        self.calls = 0

    def chat(self, messages: list[dict[str, Any]]) -> Any:
        self.calls += 1
        said = sum(message["role"] == "assistant" for message in messages)
        return self.replies[said % len(self.replies)]


class Raised(Exception):
    """What a gate raises here."""


@dataclass
class World:
    """Tools with a log, and a gate whose answer depends on nothing but the call."""

    verdicts: list[Any]
    allowed: list[Any] = field(default_factory=list)
    ran: list[Any] = field(default_factory=list)
    break_at: int | None = None
    breakage: BaseException | None = None

    def gate(self, call: ToolCall) -> Any:
        verdict = self.verdicts[len(json.dumps(call.arguments)) % len(self.verdicts)]
        if isinstance(verdict, Raised):
            raise verdict
        said_yes = verdict is True or (
            isinstance(verdict, tuple) and verdict[:1] == (True,) and verdict[0] is True
        )
        if said_yes or (isinstance(verdict, Decision) and verdict.verdict == "allow"):
            self.allowed.append((call.name, call.arguments))
        return verdict

    def tools(self) -> dict[str, ToolSpec]:
        return {
            "pay": ToolSpec("Pay.", {"cents": int}, self.pay, effectful=True),
            "look": ToolSpec("Look.", {}, self.look),
            "odd": ToolSpec("Returns what is no JSON.", {"text": str}, self.odd),
        }

    def enter(self, name: str, arguments: dict[str, Any]) -> None:
        self.ran.append((name, arguments))
        if self.breakage and len(self.ran) == self.break_at:
            raise self.breakage

    def pay(self, cents: int) -> dict[str, int]:
        assert type(cents) is int
        self.enter("pay", {"cents": cents})
        if cents < 0:
            raise ValueError("cannot pay less than nothing")
        return {"paid": cents}

    def look(self) -> list[str]:
        self.enter("look", {})
        return ["a", "b"]

    def odd(self, text: str) -> Any:
        assert type(text) is str
        self.enter("odd", {"text": text})
        return {text} if len(text) % 2 else text * 50


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
garbage = json_values | st.binary(max_size=4) | st.builds(object) | st.just({1, 2}) | st.just((1,))
arguments = st.one_of(
    st.builds(lambda cents: {"cents": cents}, st.integers(-2, 9)),
    st.just({}),
    st.builds(lambda text: {"text": text}, st.text(max_size=9)),
    st.dictionaries(st.sampled_from(["cents", "text", "x"]), json_values, max_size=2),
)
names = st.sampled_from(["pay", "look", "odd"]) | st.sampled_from(["", "nobody", " pay "])
ids = st.sampled_from(["a", "b", "call_1", ""])


@st.composite
def assistant_messages(draw: st.DrawFn, fewest_calls: int = 0) -> dict[str, Any]:
    """A message of the right shape; its ids may repeat and its arguments may break the contract."""
    count = draw(st.integers(fewest_calls, 3))
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | st.text(max_size=12))}
    if count:
        drawn = [tool_call_message(draw(ids), draw(names), draw(arguments)) for _ in range(count)]
        message["tool_calls"] = [single["tool_calls"][0] for single in drawn]
    return message


@st.composite
def broken_messages(draw: st.DrawFn) -> Any:
    """A good message in which any one place holds anything."""
    message = draw(assistant_messages())
    place = draw(
        st.sampled_from(
            ["role", "content", "tool_calls", "call", "id", "function", "name", "arguments", "extra"]
        )
    )
    anything = draw(garbage)
    calls = message.get("tool_calls")
    if place in ("role", "content", "tool_calls", "extra") or not calls:
        return {**message, place: anything}
    if place == "call":
        calls[0] = anything
    elif place in ("id", "function"):
        calls[-1][place] = anything
    else:
        calls[-1]["function"][place] = anything
    return message


reasons = st.sampled_from(
    ["tool_use", "end_turn", "stop_sequence", "pause_turn", "max_tokens", "refusal", None]
)
usages = st.none() | st.builds(Usage, st.integers(0, 99), st.integers(0, 99), st.integers(0, 9))
messages = assistant_messages() | broken_messages() | garbage
replies = messages | st.builds(Reply, messages, reasons | st.text(max_size=5) | garbage, usages)
proper = st.builds(Reply, assistant_messages(), st.sampled_from(["tool_use", "pause_turn", None]), usages)
scripts = st.lists(proper, min_size=1, max_size=5) | st.lists(replies, min_size=1, max_size=5)
verdicts = st.lists(
    st.one_of(
        st.just(True),
        st.just((True, "fine")),
        st.just((False, "no")),
        st.sampled_from([Decision("allow", "ok"), Decision("deny", "no"), Decision("ask", "wait")]),
        st.builds(Raised, st.text(max_size=3)),
        garbage,
    ),
    min_size=1,
    max_size=4,
)
limits = st.builds(
    Limits,
    max_turns=st.integers(0, 6),
    max_prompt_tokens=st.integers(0, 900) | st.just(10**6),
    repeated_denials=st.integers(1, 3),
    max_pauses=st.integers(0, 3),
    max_result_chars=st.sampled_from([1, 30, 4000]),
)


def assert_sound(state: RunState) -> None:
    """A provider would take the transcript, every call has its result, and the books agree with it."""
    assert check_messages(state.messages) == []
    owed: list[str] = []
    answered: list[str] = []
    for message in state.messages:
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
            assert owed.pop(0) == message["tool_call_id"]
        else:
            assert owed == []
            owed = [call["id"] for call in message.get("tool_calls", [])]
    assert owed == []
    assert answered == [observation.call_id for observation in state.observations]
    assert state.prompt_chars // 4 == estimate_tokens(state.messages)
    assert RunState.from_json(state.to_json()) == state


def outcomes(state: RunState) -> list[tuple[str, str]]:
    return [(observation.call_id, observation.kind) for observation in state.observations]


def assert_same(left: RunResult, right: RunResult) -> None:
    assert (left.stop, left.answer) == (right.stop, right.answer)
    assert left.state == right.state


@many
@given(scripts, verdicts, limits)
def test_every_run_ends_typed_sound_and_within_its_limits(script, verdicts, limits):
    world, model = World(verdicts), Script(script)
    result = run_agent("Go.", model, world.tools(), world.gate, limits)
    assert type(result.stop) is Stop
    assert result.state.ending == result.stop.value
    assert (result.answer is not None) == (result.stop is Stop.ANSWERED)
    assert_sound(result.state)
    state = result.state
    assert model.calls == state.turns + state.pauses == len(state.prompt_token_log) == len(state.usage_log)
    assert model.calls <= limits.max_turns + limits.max_pauses
    assert state.turns <= limits.max_turns
    assert all(tokens <= limits.max_prompt_tokens for tokens in state.prompt_token_log)


@many
@given(scripts, verdicts, limits)
def test_no_handler_runs_but_those_the_gate_allowed_in_that_order(script, verdicts, limits):
    world = World(verdicts)
    result = run_agent("Go.", Script(script), world.tools(), world.gate, limits)
    assert world.ran == world.allowed  # the handlers themselves assert their arguments' types
    reached = [o for o in result.state.observations if o.kind in ("result", "error")]
    assert len(reached) == len(world.ran)


@many
@given(scripts, verdicts, limits, st.integers(0, 7))
def test_a_run_stopped_saved_and_resumed_ends_as_one_that_was_not(script, verdicts, limits, place):
    whole_world = World(verdicts)
    whole = run_agent("Go.", Script(script), whole_world.tools(), whole_world.gate, limits)

    world, looks = World(verdicts), []

    def pull_the_plug(state: RunState) -> Stop | None:
        looks.append(state)
        return Stop.DEADLINE if len(looks) > place else None

    first = run_agent("Go.", Script(script), world.tools(), world.gate, limits, [pull_the_plug])
    restored = RunState.from_json(first.state.to_json())
    rest = resume_agent(restored, Script(script), world.tools(), world.gate, limits)
    assert_same(rest, whole)
    assert world.ran == whole_world.ran


@many
@given(scripts, verdicts, limits)
def test_resuming_a_run_that_has_ended_changes_nothing(script, verdicts, limits):
    world, model = World(verdicts), Script(script)
    whole = run_agent("Go.", model, world.tools(), world.gate, limits)
    calls, ran = model.calls, len(world.ran)
    again = resume_agent(RunState.from_json(whole.state.to_json()), model, world.tools(), world.gate, limits)
    assert_same(again, whole)
    assert (model.calls, len(world.ran)) == (calls, ran)


@many
@given(scripts, limits)
def test_calls_that_waited_run_once_when_they_are_approved(script, limits):
    world, steady = World([Decision("ask", "wait")]), World([True])
    paused = run_agent("Go.", Script(script), world.tools(), world.gate, limits)
    assert world.ran == []
    resumed = resume_agent(
        RunState.from_json(paused.state.to_json()), Script(script), world.tools(), steady.gate, limits
    )
    free = World([True])
    whole = run_agent("Go.", Script(script), free.tools(), free.gate, limits)
    assert (resumed.stop, resumed.answer, world.ran) == (whole.stop, whole.answer, free.ran)
    assert outcomes(resumed.state) == outcomes(whole.state)


@many
@given(
    scripts,
    verdicts,
    limits,
    st.integers(1, 4),
    st.sampled_from([RuntimeError("x"), KeyboardInterrupt(), SystemExit(1), AssertionError(), MemoryError()]),
)
def test_only_a_declared_crash_escapes_and_its_state_goes_on(script, verdicts, limits, place, breakage):
    world = World(verdicts, break_at=place, breakage=breakage)
    try:
        run_agent("Go.", Script(script), world.tools(), world.gate, limits)
        return
    except (RunCrash, RunInterrupted) as crash:
        assert isinstance(crash, RunInterrupted) == isinstance(breakage, KeyboardInterrupt)
        state = crash.state
    assert_sound(state)
    assert [o.kind for o in state.observations].count("unknown") == 1
    ran = len(world.ran)
    result = resume_agent(
        RunState.from_json(state.to_json()), Script(script), world.tools(), world.gate, limits
    )
    assert_sound(result.state)
    assert result.state.messages[: len(state.messages)] == state.messages
    assert len(world.ran) >= ran


@many
@given(st.lists(assistant_messages(fewest_calls=1), min_size=1, max_size=3), st.integers(0, 30), limits)
def test_a_transcript_cut_anywhere_is_made_whole_before_it_is_sent(script, keep, limits):
    world = World([True])
    whole = run_agent("Go.", Script(script), world.tools(), world.gate)
    messages = whole.state.messages[: max(2, keep)]
    results = sum(message["role"] == "tool" for message in messages)
    cut = RunState(messages, whole.state.observations[:results])
    assert_sound(resume_agent(cut, Script(script), world.tools(), world.gate, limits).state)


@given(st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_an_answer_ends_a_run_exactly_when_a_turn_is_left_for_it(answer_at, turns):
    script = [tool_call_message("a", "look", {})] * answer_at + [answer_message("here")]
    world = World([True])
    result = run_agent("Go.", Script(script), world.tools(), world.gate, Limits(max_turns=turns))
    assert (result.stop is Stop.ANSWERED) == (answer_at < turns)


@pytest.mark.parametrize(
    "field_name", ["max_turns", "max_prompt_tokens", "repeated_denials", "max_pauses", "max_result_chars"]
)
@given(value=st.integers(max_value=-1) | st.booleans() | st.floats() | st.text() | st.none())
@settings(max_examples=30, deadline=None)
def test_limits_refuse_what_is_no_count_and_name_the_field(field_name, value):
    with pytest.raises(ValueError, match=field_name):
        Limits(**{field_name: value})
