# Built by bookkit from chapters/06-budgets.md. Edit the chapter, not this file.
# bookkit: cells 71ccd5bff054, body cfe9019fdd63
"""Budgets and endings."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from agentkit.gate import call_digest
from agentkit.loop import Decision, Guard, Limits, Observation, RunResult, RunState, Stop, run_agent
from agentkit.tools import JSON, ToolCall, ToolSpec
from agentkit.wire import (
    Message,
    ScriptedModel,
    Usage,
    answer_message,
    parse_tool_calls,
    tool_call_message,
)

__all__ = [
    "BRANCHES",
    "ENDINGS",
    "ENDS_IN",
    "Branch",
    "CostLedger",
    "Ending",
    "Goal",
    "Prices",
    "Row",
    "Step",
    "Tally",
    "Total",
    "charged",
    "cost_guard",
    "cost_usd",
    "deadline_guard",
    "dispatch",
    "forgive_retries",
    "goal_guard",
    "is_periodic",
    "next_prompt",
    "queue_guard",
    "recent_steps",
    "rehearse",
    "repeated_call_guard",
    "result_shown",
    "stalled_world_guard",
    "stop_diagram",
    "stubborn",
    "trust",
    "wanderer",
    "what_to_do",
    "window_guard",
    "with_goal",
]


# %% chapters/06-budgets.md § A run that never answers


def wanderer(proposals: int = 60) -> ScriptedModel:
    """A model that looks order A-17 up again and again and never answers. Its ids are call01, call02, …"""
    ids = [f"call{n:02d}" for n in range(1, proposals + 1)]
    return ScriptedModel(
        [tool_call_message(call_id, "lookup_order", {"order_id": "A-17"}) for call_id in ids]
    )


def stubborn(proposals: int = 60) -> ScriptedModel:
    """A model that asks for a refund of 9 999 cents, is denied, and asks for the same again."""
    asked = {"order_id": "A-17", "amount_cents": 9999}
    ids = [f"call{n:02d}" for n in range(1, proposals + 1)]
    return ScriptedModel([tool_call_message(call_id, "refund_order", asked) for call_id in ids])


# %% chapters/06-budgets.md § Thirteen endings

ENDS_IN: Mapping[Stop, Mapping[str, str]] = {
    Stop.ANSWERED: {"Proposing": "no calls"},
    Stop.GOAL_MET: {"Ready": "predicate holds"},
    Stop.STEP_LIMIT: {"Ready": "no turn left"},
    Stop.TOKEN_LIMIT: {"Ready": "prompt too large"},
    Stop.COST_LIMIT: {"Ready": "call too dear"},
    Stop.DEADLINE: {"Ready": "time is up"},
    Stop.NO_PROGRESS: {"Ready": "detector", "Executing": "denied again"},
    Stop.NEEDS_APPROVAL: {"Executing": "gate asks"},
    Stop.TRUNCATED: {"Proposing": "max_tokens"},
    Stop.REFUSED: {"Proposing": "refusal"},
    Stop.PAUSE_LIMIT: {"Ready": "paused too often"},
    Stop.GOAL_UNMET: {"Ready": "queue empty"},
    Stop.MALFORMED: {"Proposing": "no usable reply"},
}


def stop_diagram() -> str:
    """Mermaid source of the kernel's state machine; every member of `Stop` stands where a run can end so."""
    lines = [
        "stateDiagram-v2",
        "[*] --> Ready",
        "Ready --> Proposing: admitted",
        "Proposing --> Executing: calls",
    ]
    lines += ["Executing --> Ready: observed", "Proposing --> Ready: pause_turn"]
    for state in ("Ready", "Proposing", "Executing"):
        ends = [
            f"Left{state}: {stop.value} ({ENDS_IN[stop][state]})" for stop in Stop if state in ENDS_IN[stop]
        ]
        lines += [f'state "left from {state}" as Left{state}', *ends]
        lines += [f"{state} --> Left{state}", f"Left{state} --> [*]"]
    return "\n    ".join(lines)


@dataclass(frozen=True)
class Ending:
    """What an ending says about the work.

    `rank` orders the endings by how much one may conclude from them, 1 the most; it is not how bad the news
    is. Endings of one rank are told apart by `action`.
    """

    rank: int
    decided_by: str
    trust: str
    action: str


_SCOPE = "partial work: under-scoped"
_SHAPED = "none: only looks like success"

ENDINGS: Mapping[Stop, Ending] = {
    stop: Ending(rank, decided_by, trust, action)
    for stop, rank, decided_by, trust, action in (
        (Stop.GOAL_MET, 1, "a predicate", "ideal", "report success"),
        (Stop.ANSWERED, 2, "the model", "acceptable", "verify the outcome, then pass it on"),
        (Stop.STEP_LIMIT, 3, "a counter", _SCOPE, "return partial findings; split the task"),
        (Stop.TOKEN_LIMIT, 3, "a counter", _SCOPE, "compact the transcript before resuming"),
        (Stop.COST_LIMIT, 3, "a ledger", _SCOPE, "ask the owner of the budget; resume"),
        (Stop.DEADLINE, 3, "a clock", _SCOPE, "use what is there; check effects in flight"),
        (Stop.PAUSE_LIMIT, 3, "a counter", _SCOPE, "resume later; a provider's tool is not done"),
        (Stop.NO_PROGRESS, 4, "a loop detector", "a bug", "report it to a person, with the last call"),
        (Stop.GOAL_UNMET, 4, "a predicate", "a known failure", "treat as failed, never as done"),
        (Stop.NEEDS_APPROVAL, 5, "the gate", "open: a person intervenes", "show the pending call; resume"),
        (Stop.TRUNCATED, 6, "the provider", _SHAPED, "discard the text; raise the output limit"),
        (Stop.REFUSED, 6, "the provider", _SHAPED, "tell the user; a retry is refused again"),
        (Stop.MALFORMED, 6, "nobody", _SHAPED, "log the raw reply; retry once"),
    )
}


def trust(stop: Stop) -> int:
    """Rank of an ending, 1 for the one from which most may be concluded about the work."""
    return ENDINGS[stop].rank


def what_to_do(stop: Stop) -> str:
    """What a caller does next with a run that ended so."""
    return ENDINGS[stop].action


# %% chapters/06-budgets.md § Why did the provider stop?


@dataclass(frozen=True)
class Branch:
    """One stop reason: what it means, the bug of a loop without the branch, what to do, how the run ends.

    `stop` is None where the run goes on.
    """

    meaning: str
    without: str
    action: str
    stop: Stop | None


BRANCHES: Mapping[str, Branch] = {
    reason: Branch(meaning, without, action, stop)
    for reason, meaning, without, action, stop in (
        ("tool_use", "it wants calls run", "no result follows: a 400", "execute, append, go on", None),
        ("end_turn", "it is satisfied", "no run ever ends", "return the text, maybe empty", Stop.ANSWERED),
        ("max_tokens", "cut at the output limit", "half passes as whole", "raise the limit", Stop.TRUNCATED),
        ("refusal", "a safety model declined", "content[0] may not exist", "tell the user", Stop.REFUSED),
        ("pause_turn", "a provider's tool is not done", "a part passes as final", "send again", None),
        ("stop_sequence", "it wrote your stop string", "none, without one", "as end_turn", Stop.ANSWERED),
    )
}
_UNKNOWN = Branch("no documented reason", "taken for success", "end; look at the raw reply", Stop.MALFORMED)


def dispatch(stop_reason: str | None) -> Branch:
    """The branch for a provider's stop reason. None, from models that give none, is end_turn."""
    return BRANCHES.get("end_turn" if stop_reason is None else stop_reason, _UNKNOWN)


# %% chapters/06-budgets.md § Done, says who?

Goal = Callable[[RunState], bool]


def with_goal(result: RunResult, goal: Goal) -> RunResult:
    """Hold an answer against the world: `answered` becomes goal_met or goal_unmet, other endings stay.

    Only `True` meets a goal.
    """
    if result.stop is not Stop.ANSWERED:
        return result
    return replace(result, stop=Stop.GOAL_MET if goal(result.state) is True else Stop.GOAL_UNMET)


def goal_guard(goal: Goal) -> Guard:
    """End the run with goal_met as soon as the goal is, before another call is paid for."""

    def check(state: RunState) -> Stop | None:
        return Stop.GOAL_MET if goal(state) is True else None

    return check


def queue_guard(waiting: Callable[[], int], goal: Goal) -> Guard:
    """End the run when nothing waits any more: goal_met if the goal is met, goal_unmet if it is not."""

    def check(state: RunState) -> Stop | None:
        if waiting() > 0:
            return None
        return Stop.GOAL_MET if goal(state) is True else Stop.GOAL_UNMET

    return check


# %% chapters/06-budgets.md § Money


def _finite(what: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{what} must be a finite number, at least 0; got {value!r}")
    return value


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens of fresh prompt, cached prompt and completion. ValueError for no price."""

    prompt: float
    cached: float
    completion: float

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            _finite(f"the {name} price", price)


def cost_usd(usage: Usage, prices: Prices) -> float:
    """Dollars for one call, or for a sum of calls. The cached part of the prompt is priced once."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    fresh = usage.prompt_tokens - cached
    dollars = fresh * prices.prompt + cached * prices.cached + usage.completion_tokens * prices.completion
    return dollars / 1_000_000


Total = TypeVar("Total")


@dataclass
class Tally(Generic[Total]):
    """A running total over a list of the state that only grows; `add(total, state, position)` once for each.

    A memo and not a memory: for another list, as after a resume, or for one whose end was replaced, it
    starts anew.
    """

    items: Callable[[RunState], Sequence[Any]]
    start: Callable[[], Total]
    add: Callable[[Total, RunState, int], Total]
    _known: Sequence[Any] = ()
    _counted: int = 0
    _last: Any = None

    def __post_init__(self) -> None:
        self._total = self.start()

    def of(self, state: RunState) -> Total:
        """The total over everything in the list so far."""
        items = self.items(state)
        if not (items is self._known and self._counted <= len(items) and self._ends_alike(items)):
            self._known, self._counted, self._total = items, 0, self.start()
        for position in range(self._counted, len(items)):
            self._total = self.add(self._total, state, position)
        self._counted, self._last = len(items), items[-1] if items else None
        return self._total

    def _ends_alike(self, items: Sequence[Any]) -> bool:
        return self._counted == 0 or items[self._counted - 1] is self._last


def charged(state: RunState, call: int) -> Usage:
    """What one model call used, as reported; where the provider said nothing, the estimate of its prompt."""
    return state.usage_log[call] or Usage(prompt_tokens=state.prompt_token_log[call])


class CostLedger:
    """What a run has spent. A lower bound with a provider that reports no usage: replies are not in it."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self._tally = Tally(lambda state: state.usage_log, Usage, self._add)

    @staticmethod
    def _add(total: Usage, state: RunState, call: int) -> Usage:
        more = charged(state, call)
        return Usage(
            total.prompt_tokens + more.prompt_tokens,
            total.completion_tokens + more.completion_tokens,
            total.cached_tokens + min(more.cached_tokens, more.prompt_tokens),
        )

    def spent_usd(self, state: RunState) -> float:
        """Dollars for all calls so far: the tokens are added up first and priced once."""
        return cost_usd(self._tally.of(state), self.prices)


def next_prompt(state: RunState) -> Usage:
    """What the next call's prompt will at least use; what was cached last time is expected to be again."""
    last = charged(state, -1) if state.usage_log else Usage()
    expected = max(last.prompt_tokens + last.completion_tokens, state.prompt_chars // 4)
    return Usage(prompt_tokens=expected, cached_tokens=last.cached_tokens)


def cost_guard(max_usd: float, prices: Prices) -> Guard:
    """End the run before a call whose prompt would take the spending over `max_usd` dollars."""
    _finite("max_usd", max_usd)
    ledger = CostLedger(prices)

    def check(state: RunState) -> Stop | None:
        expected = ledger.spent_usd(state) + cost_usd(next_prompt(state), prices)
        return None if expected <= max_usd else Stop.COST_LIMIT  # NaN is no permission

    return check


# %% chapters/06-budgets.md § A deadline cannot stop a call in flight


def deadline_guard(seconds: float, clock: Callable[[], float], started: float | None = None) -> Guard:
    """End the run once `seconds` have passed since `started` (default: now), both by `clock`.

    To hold one deadline over a resume on another machine, use wall-clock time and store `started`.
    """
    ends = (clock() if started is None else started) + _finite("seconds", seconds)

    def check(state: RunState) -> Stop | None:
        return None if clock() < ends else Stop.DEADLINE

    return check


# %% chapters/06-budgets.md § Going in circles


@dataclass(frozen=True)
class Step:
    """One proposed call: a digest of its tool and arguments, and the kind of observation it came to."""

    call: str
    kind: str


def recent_steps(state: RunState, count: int) -> list[Step]:
    """The last `count` proposals, oldest first. Reads the transcript from its end, no further than needed."""
    latest_first: list[Step] = []
    end = len(state.observations)
    for message in reversed(state.messages):
        if len(latest_first) >= count:
            break
        if message["role"] == "assistant":
            calls = parse_tool_calls(message)
            outcomes = state.observations[end - len(calls) : end]
            end -= len(calls)
            steps = [Step(call_digest(call), seen.kind) for call, seen in zip(calls, outcomes, strict=False)]
            latest_first += reversed(steps)
    return latest_first[:count][::-1]


def forgive_retries(steps: Sequence[Step]) -> list[Step]:
    """The steps without those errors that the very next step retries. Of retries in a row one is free."""
    kept: list[Step] = []
    forgiven: str | None = None
    for step, following in zip(steps, [*steps[1:], None], strict=False):
        retried = following is not None and step.kind == "error" and following.call == step.call
        if retried and forgiven != step.call:
            forgiven = step.call
            continue
        kept.append(step)
        forgiven = forgiven if retried else None
    return kept


def _at_least(what: str, value: int, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{what} must be a whole number, at least {least}; got {value!r}")
    return value


def repeated_call_guard(times: int = 3) -> Guard:
    """End the run when the last `times` proposals were the same call. At least 2."""
    _at_least("times", times, 2)

    def check(state: RunState) -> Stop | None:
        steps = forgive_retries(recent_steps(state, 2 * times))[-times:]
        same = len(steps) == times and len({step.call for step in steps}) == 1
        return Stop.NO_PROGRESS if same else None

    return check


def is_periodic(items: Sequence[Any]) -> bool:
    """Whether the whole sequence repeats a part of at most half its length: AAAA, ABAB, ABCABC, ABABA."""
    return any(
        all(items[i] == items[i + period] for i in range(len(items) - period))
        for period in range(1, len(items) // 2 + 1)
    )


def window_guard(window: int = 6) -> Guard:
    """End the run when its last `window` proposals go in a circle of at most half that length. At least 2."""
    _at_least("window", window, 2)

    def check(state: RunState) -> Stop | None:
        calls = [step.call for step in forgive_retries(recent_steps(state, 2 * window))][-window:]
        return Stop.NO_PROGRESS if len(calls) == window and is_periodic(calls) else None

    return check


def result_shown(observation: Observation) -> JSON:
    """What an observation shows of the world: the content of a result, None for everything else."""
    return observation.content if observation.kind == "result" else None


def stalled_world_guard(patience: int = 6, shows: Callable[[Observation], JSON] = result_shown) -> Guard:
    """End the run when `patience` calls in a row showed nothing new. At least 1.

    `shows` picks what counts as the world. Give it the number that should improve (tests that fail, rows that
    are left) and return None for observations that do not show it.
    """
    _at_least("patience", patience, 1)

    def add(total: tuple[set[str], int], state: RunState, position: int) -> tuple[set[str], int]:
        seen, progress = total
        shown = shows(state.observations[position])
        world = json.dumps(shown, sort_keys=True)
        if shown is None or world in seen:
            return seen, progress
        seen.add(world)
        return seen, position + 1

    steps_until_progress = Tally(lambda state: state.observations, lambda: (set[str](), 0), add)

    def check(state: RunState) -> Stop | None:
        _, progress = steps_until_progress.of(state)
        return Stop.NO_PROGRESS if len(state.observations) - progress >= patience else None

    return check


# %% chapters/06-budgets.md § Measured: what is caught, and what is caught wrongly

Row = tuple[str, Mapping[str, JSON], Any]


def rehearse(
    rows: Sequence[Row], guards: Sequence[Guard] = (), repeated_denials: int | None = None
) -> RunResult:
    """Run prepared steps through the kernel, one a turn, to see where a guard ends them.

    A row is (tool, arguments, outcome). An exception as outcome is raised by the tool, a `Decision` is the
    gate's; anything else is the tool's result. After the last row the model answers. The kernel's own counter
    of denials stays out of it unless `repeated_denials` sets it.
    """
    outcomes = deque(outcome for _, _, outcome in rows)

    def gate(call: ToolCall) -> Decision | tuple[bool, str]:
        return outcomes.popleft() if isinstance(outcomes[0], Decision) else (True, "rehearsed")

    def handler(**arguments: JSON) -> JSON:
        outcome = outcomes.popleft()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    anything = {"type": "object", "additionalProperties": True}
    tools = {name: ToolSpec("rehearsed", anything, handler) for name, _, _ in rows}
    proposals: list[Message] = [
        tool_call_message(f"call{n:02d}", name, dict(arguments))
        for n, (name, arguments, _) in enumerate(rows, 1)
    ]
    turns = len(rows) + 1
    limits = Limits(turns, max_prompt_tokens=10**9, repeated_denials=repeated_denials or turns)
    script = ScriptedModel([*proposals, answer_message("done")])
    return run_agent("rehearsal", script, tools, gate, limits, guards)
