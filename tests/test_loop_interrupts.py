"""Ctrl-C at every line of the kernel: the state that comes out is whole, and no effect happens twice."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from agentkit import loop
from agentkit.gate import Approvals, call_digest, pending_calls, with_approvals
from agentkit.loop import (
    Decision,
    Limits,
    RunInterrupted,
    RunResult,
    RunState,
    Stop,
    count_chars,
    resume_agent,
    run_agent,
)
from agentkit.tools import ToolCall, ToolSpec
from agentkit.wire import Reply, ScriptedModel, answer_message, check_messages, tool_call_message

UNTIL_APPROVED = 900
PLENTY = Limits(max_turns=20)
PAID_BY = {1: "a", UNTIL_APPROVED: "b", 3: "c", 4: "d", 7: "e"}


class Desk:
    """A run with a batch in which one call waits, two pauses, a denial, and a log of what was paid."""

    def __init__(self) -> None:
        self.log: list[int] = []
        self.tools = {"pay": ToolSpec("Pay cents.", {"cents": int}, self.pay, effectful=True)}
        pays = [tool_call_message(call_id, "pay", {"cents": cents}) for cents, call_id in PAID_BY.items()]
        batch = {**pays[0], "tool_calls": [call for message in pays[:3] for call in message["tool_calls"]]}
        pauses = [Reply(answer_message(text), "pause_turn") for text in ("Hm.", "")]
        self.model = ScriptedModel([batch, *pauses, pays[3], pays[4], answer_message("done")])

    def pay(self, cents: int) -> dict[str, int]:
        self.log.append(cents)
        return {"paid": cents}

    @staticmethod
    def gate(call: ToolCall) -> Decision | bool:
        cents = (call.arguments or {})["cents"]
        return Decision("ask", "a person decides") if cents == UNTIL_APPROVED else cents != 7

    def start(self) -> RunResult:
        return run_agent("Pay.", self.model, self.tools, self.gate)

    def go_on(self, state: RunState, approve: bool = True) -> RunResult:
        approvals = Approvals(pending_calls(state))
        for call in pending_calls(state) if approve else ():
            approvals.approve(call_digest(call), "ines")
        gate = with_approvals(self.gate, approvals)
        return resume_agent(state, self.model, self.tools, gate, PLENTY)


class CtrlC:
    """Presses Ctrl-C when the kernel is about to run its n-th line."""

    def __init__(self, line: int) -> None:
        self.lines_left = line

    def __call__(self, frame: FrameType, event: str, arg: Any) -> CtrlC | None:
        if frame.f_code.co_filename != loop.__file__ or frame.f_code.co_name == "_crash":
            return None
        if event == "line":
            self.lines_left -= 1
            if self.lines_left == 0:
                raise KeyboardInterrupt
        return self

    def during(self, work: Callable[[], RunResult]) -> RunResult:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return work()
        finally:
            sys.settrace(before)


def assert_whole(state: RunState) -> None:
    """A provider takes the transcript, and everything that is counted agrees with it."""
    assert check_messages(state.messages) == []
    results = [message["tool_call_id"] for message in state.messages if message["role"] == "tool"]
    assert results == [observation.call_id for observation in state.observations]
    assert state.prompt_chars == count_chars(state.messages)
    assert len(state.prompt_token_log) == len(state.usage_log) <= state.turns + state.pauses
    assert RunState.from_json(state.to_json()) == state


def assert_ends_well(desk: Desk, state: RunState) -> None:
    """Resumed, the run ends; each effect has happened at most once and is on record as what it may be."""
    state = RunState.from_json(state.to_json())
    for _ in range(4):
        if desk.go_on(state).stop is Stop.ANSWERED:
            break
    assert state.ending == "answered"
    assert_whole(state)
    assert max(Counter(desk.log).values(), default=0) <= 1
    kinds = {observation.call_id: observation.kind for observation in state.observations}
    assert all(kinds[PAID_BY[cents]] in ("result", "unknown") for cents in desk.log)
    assert "pending" not in kinds.values()


def lines_of(work: Callable[[], RunResult]) -> int:
    """How many lines of the kernel it runs."""
    counter = CtrlC(-1)
    counter.during(work)
    return -1 - counter.lines_left


def waiting() -> tuple[Desk, RunState]:
    desk = Desk()
    return desk, desk.start().state


LINES_TO_ASK = lines_of(Desk().start)
DESK, STATE = waiting()
LINES_AFTER = lines_of(lambda: DESK.go_on(STATE))


@pytest.mark.parametrize("line", range(1, LINES_TO_ASK + 1))
def test_ctrl_c_at_any_line_of_a_run_leaves_a_state_that_can_go_on(line: int) -> None:
    desk = Desk()
    with pytest.raises(KeyboardInterrupt) as caught:
        CtrlC(line).during(desk.start)
    if not isinstance(caught.value, RunInterrupted):  # before the `try`: nothing has happened
        assert desk.log == [] and line < 10
        return
    assert_whole(caught.value.state)
    assert_ends_well(desk, caught.value.state)


@pytest.mark.parametrize("line", range(1, LINES_AFTER + 1))
def test_ctrl_c_at_any_line_after_an_approval_leaves_a_state_that_can_go_on(line: int) -> None:
    desk, state = waiting()
    before = state.to_json()
    with pytest.raises(KeyboardInterrupt) as caught:
        CtrlC(line).during(lambda: desk.go_on(state))
    if not isinstance(caught.value, RunInterrupted):
        assert state.to_json() == before and line == 1
        return
    assert caught.value.state is state
    assert_whole(state)
    assert_ends_well(desk, state)


def test_ctrl_c_while_waiting_calls_are_put_aside_leaves_them_waiting() -> None:
    """Cut off right behind the call that asks, those behind it wait too, for nothing there has run."""
    seen = set()
    for line in range(1, LINES_TO_ASK + 1):
        desk = Desk()
        with pytest.raises(KeyboardInterrupt) as caught:
            CtrlC(line).during(desk.start)
        if isinstance(caught.value, RunInterrupted):
            seen.add(tuple(observation.kind for observation in caught.value.state.observations))
    assert ("result", "pending", "pending") in seen
    assert not any("pending" in kinds and kinds != ("result", "pending", "pending") for kinds in seen)
