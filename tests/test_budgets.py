"""Budgets and endings: every run ends, the ending says why, and a detector's mistakes are known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.budgets import (
    BRANCHES,
    ENDINGS,
    ENDS_IN,
    CostLedger,
    Prices,
    Step,
    Tally,
    cost_guard,
    cost_usd,
    deadline_guard,
    dispatch,
    forgive_retries,
    goal_guard,
    is_periodic,
    next_prompt,
    queue_guard,
    recent_steps,
    rehearse,
    repeated_call_guard,
    stalled_world_guard,
    stop_diagram,
    stubborn,
    trust,
    wanderer,
    what_to_do,
    window_guard,
    with_goal,
)
from agentkit.gate import call_digest, overreaching_model, refund_gate
from agentkit.loop import (
    Decision,
    Guard,
    Limits,
    Observation,
    RunCrash,
    RunResult,
    RunState,
    Stop,
    allow_all,
    resume_agent,
    run_agent,
)
from agentkit.tools import ToolSpec, make_environment
from agentkit.wire import (
    Reply,
    ScriptedModel,
    Usage,
    answer_message,
    parse_tool_calls,
    tool_call_message,
)

TASK = "Investigate order A-17."
HELLO = answer_message("Hello.")
LOOKUP = tool_call_message("call01", "lookup_order", {"order_id": "A-17"})
PRICES = Prices(prompt=3.0, cached=0.3, completion=15.0)


def run(
    turns: list[Any], guards: list[Guard] | None = None, gate: Any = allow_all, **limits: int
) -> RunResult:
    tools, _ = make_environment()
    return run_agent("A task.", ScriptedModel(turns), tools, gate, Limits(**limits), guards or [])


# --- published figures -------------------------------------------------------------------------
def test_the_wanderer_is_stopped_by_steps_after_five_turns_and_five_observations() -> None:
    tools, _ = make_environment()
    result = run_agent(TASK, wanderer(), tools, refund_gate, Limits(max_turns=5))
    assert (result.stop, result.state.turns, len(result.state.observations)) == (Stop.STEP_LIMIT, 5, 5)


def test_the_stubborn_model_is_stopped_after_two_denials_with_an_empty_log() -> None:
    tools, effects = make_environment()
    result = run_agent("Refund order A-17.", stubborn(), tools, refund_gate)
    assert (result.stop, result.state.turns, effects) == (Stop.NO_PROGRESS, 2, [])
    assert [seen.kind for seen in result.state.observations] == ["denied", "denied"]


def test_the_token_limit_ends_the_wanderer_after_fourteen_turns() -> None:
    tools, _ = make_environment()
    limits = Limits(max_turns=40, max_prompt_tokens=1200)
    result = run_agent(TASK, wanderer(), tools, refund_gate, limits)
    log = result.state.prompt_token_log
    assert (result.stop, result.state.turns, len(log)) == (Stop.TOKEN_LIMIT, 14, 14)
    assert log[:6] == [54, 142, 229, 317, 404, 492] and log[-2:] == [1104, 1192]


@pytest.mark.parametrize("script", [wanderer, stubborn])
def test_the_scripts_use_fresh_ids_of_six_characters(script: Any) -> None:
    ids = [call.call_id for turn in script().turns for call in parse_tool_calls(turn)]
    assert len(set(ids)) == len(ids) == 60 and {len(call_id) for call_id in ids} == {6}


def test_alternating_amounts_buy_one_turn_and_drifting_ones_run_to_the_cap() -> None:
    def ending(amounts: list[int]) -> tuple[Stop, int]:
        tools, effects = make_environment()
        turns = [
            tool_call_message(f"call{n:02d}", "refund_order", {"order_id": "A-17", "amount_cents": cents})
            for n, cents in enumerate(amounts)
        ]
        result = run_agent("Refund.", ScriptedModel(turns), tools, refund_gate, Limits(max_turns=12))
        assert effects == []
        return result.stop, result.state.turns

    assert ending([9999] * 12) == (Stop.NO_PROGRESS, 2)
    assert ending([9998, 9999] * 6) == (Stop.NO_PROGRESS, 3)
    assert ending(list(range(9999, 9987, -1))) == (Stop.STEP_LIMIT, 12)


# --- endings -----------------------------------------------------------------------------------
PAUSED = Reply(HELLO, "pause_turn")
EVERY_ENDING: dict[Stop, tuple[list[Any], dict[str, Any]]] = {
    Stop.ANSWERED: ([HELLO], {}),
    Stop.GOAL_MET: ([LOOKUP], {"guards": [goal_guard(lambda state: state.turns == 1)]}),
    Stop.STEP_LIMIT: ([LOOKUP] * 9, {"max_turns": 3}),
    Stop.TOKEN_LIMIT: ([LOOKUP] * 9, {"max_prompt_tokens": 200}),
    Stop.COST_LIMIT: ([LOOKUP], {"guards": [cost_guard(0.0, PRICES)]}),
    Stop.DEADLINE: ([LOOKUP], {"guards": [deadline_guard(0.0, lambda: 0.0)]}),
    Stop.NO_PROGRESS: ([LOOKUP] * 9, {"guards": [repeated_call_guard(3)]}),
    Stop.NEEDS_APPROVAL: ([LOOKUP], {"gate": lambda call: Decision("ask", "may I?")}),
    Stop.TRUNCATED: ([Reply(HELLO, "max_tokens")], {}),
    Stop.REFUSED: ([Reply({"role": "assistant", "content": ""}, "refusal")], {}),
    Stop.PAUSE_LIMIT: ([PAUSED] * 9, {"max_pauses": 2}),
    Stop.GOAL_UNMET: ([LOOKUP], {"guards": [queue_guard(lambda: 0, lambda state: False)]}),
    Stop.MALFORMED: ([Reply(HELLO, "brand_new_reason")], {}),
}


@pytest.mark.parametrize("stop", Stop)
def test_every_ending_is_reached_ranked_advised_and_drawn(stop: Stop) -> None:
    turns, how = EVERY_ENDING[stop]
    assert run(turns, **how).stop is stop
    assert what_to_do(stop) and 1 <= trust(stop) <= 6
    for state, why in ENDS_IN[stop].items():
        assert f"Left{state}: {stop.value} ({why})" in stop_diagram()


@pytest.mark.parametrize("stop", Stop)
def test_a_run_ends_in_the_state_that_the_diagram_says(stop: Stop) -> None:
    turns, how = EVERY_ENDING[stop]
    state = run(turns, **how).state
    proposing = state.messages[-1]["role"] == "assistant" and state.pauses == 0
    executing = bool(state.observations) and state.observations[-1].kind in ("pending", "denied")
    place = "Proposing" if proposing else "Executing" if executing else "Ready"
    assert place in ENDS_IN[stop]


def test_the_tables_know_every_ending_and_no_other() -> None:
    assert set(ENDINGS) == set(ENDS_IN) == set(EVERY_ENDING) == set(Stop)


def test_trust_falls_from_predicate_to_model_to_cap_to_detector_to_what_only_looks_like_success() -> None:
    ladder = [
        Stop.GOAL_MET,
        Stop.ANSWERED,
        Stop.STEP_LIMIT,
        Stop.NO_PROGRESS,
        Stop.NEEDS_APPROVAL,
        Stop.TRUNCATED,
    ]
    assert [trust(stop) for stop in ladder] == [1, 2, 3, 4, 5, 6]
    assert trust(Stop.REFUSED) == trust(Stop.MALFORMED) == 6
    assert trust(Stop.COST_LIMIT) == trust(Stop.TOKEN_LIMIT) == trust(Stop.DEADLINE) == 3
    assert list(map(trust, ENDINGS)) == sorted(map(trust, ENDINGS))


# --- stop reasons ------------------------------------------------------------------------------
@pytest.mark.parametrize("reason", [*BRANCHES, None, "brand_new_reason", ""])
def test_the_kernel_does_what_the_dispatch_table_says(reason: str | None) -> None:
    branch = dispatch(reason)
    first = LOOKUP if reason == "tool_use" else HELLO
    result = run([Reply(first, reason), answer_message("Second reply.")])
    if branch.stop is None:
        assert (result.stop, result.answer) == (Stop.ANSWERED, "Second reply.")
    else:
        assert result.stop is branch.stop
        assert len(result.state.prompt_token_log) == 1  # no second call was made


def test_the_six_documented_reasons_each_say_what_goes_wrong_without_them() -> None:
    assert set(BRANCHES) == {
        "tool_use",
        "end_turn",
        "max_tokens",
        "refusal",
        "pause_turn",
        "stop_sequence",
    }
    assert all(branch.meaning and branch.without and branch.action for branch in BRANCHES.values())


def test_pause_pause_pause_end_is_one_turn_four_calls_and_no_user_message() -> None:
    result = run([PAUSED, PAUSED, PAUSED, Reply(HELLO, "end_turn")], max_turns=1)
    assert (result.stop, result.state.turns, result.state.pauses) == (Stop.ANSWERED, 1, 3)
    assert len(result.state.prompt_token_log) == 4
    assert [message["role"] for message in result.state.messages].count("user") == 1


# --- goals -------------------------------------------------------------------------------------
def test_a_liar_answers_and_its_goal_is_unmet() -> None:
    tools, effects = make_environment()
    lied = run_agent(
        "Refund.", ScriptedModel([answer_message("Your refund is complete.")]), tools, refund_gate
    )
    assert lied.stop is Stop.ANSWERED
    judged = with_goal(lied, lambda state: len(effects) == 1)
    assert (judged.stop, judged.answer) == (Stop.GOAL_UNMET, lied.answer)


@pytest.mark.parametrize("verdict", [1, "yes", [1], None, False])
def test_only_true_meets_a_goal(verdict: Any) -> None:
    assert with_goal(run([HELLO]), lambda state: verdict).stop is Stop.GOAL_UNMET
    assert goal_guard(lambda state: verdict)(RunState([])) is None
    assert queue_guard(lambda: 0, lambda state: verdict)(RunState([])) is Stop.GOAL_UNMET


def test_endings_other_than_an_answer_are_not_judged() -> None:
    capped = run([LOOKUP] * 3, max_turns=2)
    assert with_goal(capped, lambda state: True) is capped


def test_a_goal_guard_saves_the_turn_after_the_goal() -> None:
    tools, effects = make_environment()
    met = goal_guard(lambda state: effects == [{"order_id": "A-17", "refunded_cents": 4999}])
    result = run_agent("Refund.", overreaching_model(), tools, refund_gate, guards=[met])
    assert (result.stop, result.state.turns, result.answer) == (Stop.GOAL_MET, 3, None)


def test_a_predicate_that_breaks_is_loud_and_keeps_the_state() -> None:
    with pytest.raises(RunCrash) as crash:
        run([LOOKUP, HELLO], [goal_guard(lambda state: state.turns // 0 == 1)])
    assert crash.value.state.messages[0]["role"] == "system"


def test_an_empty_queue_is_no_success_by_itself() -> None:
    solved: list[int] = []
    assert queue_guard(lambda: 2, lambda state: False)(RunState([])) is None
    assert queue_guard(lambda: 0, lambda state: len(solved) == 2)(RunState([])) is Stop.GOAL_UNMET
    solved += [1, 2]
    assert queue_guard(lambda: 0, lambda state: len(solved) == 2)(RunState([])) is Stop.GOAL_MET


# --- money -------------------------------------------------------------------------------------
counts = st.integers(0, 10**7)
usages = st.builds(Usage, counts, counts, counts)
prices_drawn = st.builds(Prices, *[st.floats(0, 1000, allow_nan=False)] * 3)


def exact_cost(usage: Usage, prices: Prices) -> Fraction:
    """An oracle in exact arithmetic: every prompt token is either cached or fresh."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    parts = [
        (usage.prompt_tokens - cached, prices.prompt),
        (cached, prices.cached),
        (usage.completion_tokens, prices.completion),
    ]
    return sum((tokens * Fraction(price) for tokens, price in parts), Fraction()) / 10**6


@given(usages, prices_drawn)
def test_a_cached_token_is_priced_once(usage: Usage, prices: Prices) -> None:
    assert cost_usd(usage, prices) == pytest.approx(float(exact_cost(usage, prices)), rel=1e-12)


def test_the_chapters_bill() -> None:
    call = Usage(prompt_tokens=10_000, completion_tokens=500, cached_tokens=8_000)
    assert cost_usd(call, PRICES) == pytest.approx(0.0159)


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_is_finite_and_not_negative(price: float) -> None:
    with pytest.raises(ValueError, match="the cached price must be a finite number"):
        Prices(1.0, price, 1.0)


def state_with(log: list[Usage | None], prompts: list[int] | None = None) -> RunState:
    return RunState([], usage_log=list(log), prompt_token_log=prompts or [100] * len(log))


@given(st.lists(st.none() | usages, max_size=8), st.integers(0, 8))
def test_the_ledger_adds_up_whatever_was_asked_before(log: list[Usage | None], asked_at: int) -> None:
    state, ledger = state_with(log[:asked_at]), CostLedger(PRICES)
    ledger.spent_usd(state)
    state.usage_log += log[asked_at:]
    state.prompt_token_log += [100] * len(log[asked_at:])
    expected = sum((exact_cost(usage or Usage(100), PRICES) for usage in log), Fraction())
    assert ledger.spent_usd(state) == pytest.approx(float(expected), rel=1e-12)
    assert ledger.spent_usd(RunState.from_json(state.to_json())) == pytest.approx(float(expected), rel=1e-12)


def test_a_call_without_reported_usage_counts_as_its_estimated_prompt() -> None:
    assert CostLedger(PRICES).spent_usd(state_with([None], [1_000_000])) == pytest.approx(3.0)


def test_the_next_prompt_is_at_least_the_last_one_and_its_reply() -> None:
    state = state_with([Usage(1000, 50, 800)])
    state.prompt_chars = 400
    assert next_prompt(state) == Usage(prompt_tokens=1050, cached_tokens=800)
    state.prompt_chars = 80_000
    assert next_prompt(state).prompt_tokens == 20_000


def reading_model(reads: int, tokens: int) -> ScriptedModel:
    turns = [
        Reply(tool_call_message(f"c{n}", "read_policy", {}), "tool_use", Usage(1000 + tokens * n, 400))
        for n in range(reads)
    ]
    return ScriptedModel([*turns, Reply(HELLO, "end_turn", Usage(1000 + tokens * reads, 400))])


@given(st.integers(1, 8), st.integers(0, 20_000), st.floats(0.0, 1.0))
@settings(max_examples=60)
def test_no_call_is_made_whose_prompt_the_guard_knew_to_be_too_dear(
    reads: int, tokens: int, budget: float
) -> None:
    tools, _ = make_environment()
    limits = Limits(max_turns=20, max_prompt_tokens=10**9)
    guard = cost_guard(budget, PRICES)
    result = run_agent("Read.", reading_model(reads, tokens), tools, allow_all, limits, [guard])
    spent = Fraction()
    for made, following in zip(result.state.usage_log, result.state.usage_log[1:], strict=False):
        assert made and following
        spent += exact_cost(made, PRICES)
        known = exact_cost(Usage(made.prompt_tokens + made.completion_tokens), PRICES)
        assert float(spent + known) <= budget + 1e-9
    assert result.stop is (Stop.COST_LIMIT if result.answer is None else Stop.ANSWERED)


# --- time --------------------------------------------------------------------------------------
class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("now", "stop"), [(0.0, None), (9.9, None), (10.0, Stop.DEADLINE), (11.0, Stop.DEADLINE)]
)
def test_a_deadline_counts_from_where_it_was_set(now: float, stop: Stop | None) -> None:
    clock = Clock()
    guard = deadline_guard(10.0, clock)
    clock.now = now
    assert guard(RunState([])) is stop


def test_a_deadline_with_a_stored_start_survives_a_resume() -> None:
    clock = Clock()
    clock.now = 100.0
    assert deadline_guard(10.0, clock)(RunState([])) is None
    assert deadline_guard(10.0, clock, started=80.0)(RunState([])) is Stop.DEADLINE


def test_a_deadline_does_not_preempt_a_call_in_flight() -> None:
    clock, receipts = Clock(), []

    def slow() -> str:
        clock.now += 30.0
        receipts.append("paid")
        return "paid"

    script = ScriptedModel([tool_call_message("call01", "slow", {}), HELLO])
    tools = {"slow": ToolSpec("Pay, slowly.", {}, slow, effectful=True)}
    result = run_agent("Pay.", script, tools, allow_all, guards=[deadline_guard(1.0, clock)])
    assert (result.stop, receipts, result.state.observations[0].kind) == (Stop.DEADLINE, ["paid"], "result")


# --- what a detector sees ----------------------------------------------------------------------
letters = st.lists(st.sampled_from("abc"), max_size=14)


def rows(text: str | list[str], outcome: Any = "same") -> list[tuple[str, dict[str, Any], Any]]:
    return [(name, {}, outcome) for name in text]


def ended_at(script: list[Any], guard: Guard) -> int | None:
    result = rehearse(script, [guard])
    return result.state.turns if result.stop is Stop.NO_PROGRESS else None


@given(letters, st.integers(1, 20))
def test_recent_steps_are_the_last_proposals_in_order(text: list[str], count: int) -> None:
    result = rehearse(rows(text))
    calls = [
        call_digest(call)
        for m in result.state.messages
        if m["role"] == "assistant"
        for call in parse_tool_calls(m)
    ]
    assert [step.call for step in recent_steps(result.state, count)] == calls[-count:]


def test_recent_steps_of_a_batch_have_each_its_own_outcome() -> None:
    tools, _ = make_environment()
    proposals = [
        tool_call_message("a", "lookup_order", {"order_id": "A-17"})["tool_calls"][0],
        tool_call_message("b", "lookup_order", {"order_id": "Z-99"})["tool_calls"][0],
        tool_call_message("c", "no_such_tool", {})["tool_calls"][0],
    ]
    batch = {"role": "assistant", "content": None, "tool_calls": proposals}
    state = run_agent("Look.", ScriptedModel([batch, HELLO]), tools, allow_all).state
    assert [step.kind for step in recent_steps(state, 9)] == ["result", "error", "invalid"]
    assert [step.kind for step in recent_steps(state, 2)] == ["error", "invalid"]


def test_recent_steps_read_no_further_back_than_they_must() -> None:
    class Watched(list[Any]):
        read = 0

        def __reversed__(self) -> Any:
            for position in range(len(self) - 1, -1, -1):
                Watched.read += 1
                yield self[position]

    state = rehearse(rows("ab" * 500)).state
    state.messages = Watched(state.messages)
    recent_steps(state, 6)
    assert Watched.read <= 2 * 6 + 2


def test_a_tally_looks_at_each_entry_once_and_starts_anew_for_another_list() -> None:
    looked_at: list[int] = []

    def add(total: int, state: RunState, position: int) -> int:
        looked_at.append(position)
        return total + 1

    tally = Tally(lambda state: state.observations, int, add)
    state = rehearse(rows("aaa")).state
    assert (tally.of(state), tally.of(state), looked_at) == (3, 3, [0, 1, 2])
    state.observations.append(Observation("x", True, "result", 1))
    assert (tally.of(state), looked_at) == (4, [0, 1, 2, 3])
    assert tally.of(RunState.from_json(state.to_json())) == 4
    state.observations[-1] = Observation(
        "x", True, "result", 2
    )  # replaced, as when a pending call is decided
    assert tally.of(RunState([])) == 0 and tally.of(state) == 4


# --- retries -----------------------------------------------------------------------------------
def steps(text: str) -> list[Step]:
    """`a` is a result of call a, `A` an error of it."""
    return [Step(letter.lower(), "error" if letter.isupper() else "result") for letter in text]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("Aa", "a"),
        ("AAa", "Aa"),
        ("AAAA", "AAA"),
        ("aA", "aA"),
        ("AbA", "AbA"),
        ("AaBb", "ab"),
        ("AaAa", "aa"),
        ("Ab", "Ab"),
    ],
)
def test_one_retry_after_an_error_is_forgiven(before: str, after: str) -> None:
    assert forgive_retries(steps(before)) == steps(after)


def test_a_retry_that_succeeds_trips_no_detector() -> None:
    once = [("fetch", {}, TimeoutError("slow")), ("fetch", {}, "page"), ("next", {}, "page 2")]
    for guard in (repeated_call_guard(2), window_guard(2), window_guard(4), stalled_world_guard(2)):
        assert ended_at(once, guard) is None


def test_retrying_for_ever_trips_all_of_them() -> None:
    for_ever = [("fetch", {}, TimeoutError("slow"))] * 12
    assert ended_at(for_ever, repeated_call_guard(3)) == 4
    assert ended_at(for_ever, window_guard(4)) == 5
    assert ended_at(for_ever, stalled_world_guard(4)) == 4


# --- the three detectors -----------------------------------------------------------------------
@given(letters, st.integers(2, 5))
def test_the_literal_detector_ends_at_the_first_row_of_equal_calls(text: list[str], times: int) -> None:
    expected = next((n for n in range(times, len(text) + 1) if len(set(text[n - times : n])) == 1), None)
    assert ended_at(rows(text), repeated_call_guard(times)) == expected


def has_small_period(text: list[str]) -> bool:
    """An oracle by construction: some beginning of at most half the length, repeated, gives the whole."""
    return any((text[:period] * len(text))[: len(text)] == text for period in range(1, len(text) // 2 + 1))


@given(letters)
def test_periodic_means_made_of_repetitions_of_a_part(text: list[str]) -> None:
    assert is_periodic(text) is has_small_period(text)


@given(letters, st.integers(2, 8))
def test_the_window_detector_ends_at_the_first_periodic_window(text: list[str], window: int) -> None:
    ends = (n for n in range(window, len(text) + 1) if has_small_period(text[n - window : n]))
    assert ended_at(rows(text), window_guard(window)) == next(ends, None)


@given(st.lists(st.integers(0, 3), max_size=14), st.integers(1, 6))
def test_the_world_detector_counts_steps_since_something_new(shown: list[int], patience: int) -> None:
    script = [("look", {"n": n}, value) for n, value in enumerate(shown)]
    news = [n + 1 for n, value in enumerate(shown) if value not in shown[:n]]
    ends = (
        n for n in range(1, len(shown) + 1) if n - max([0, *[new for new in news if new <= n]]) >= patience
    )
    assert ended_at(script, stalled_world_guard(patience)) == next(ends, None)


DENIED = Decision("deny", "exceeds the limit")
ALTERNATING = [("refund", {"cents": cents}, DENIED) for cents in (9998, 9999)] * 6
DRIFTING = [("refund", {"cents": cents}, DENIED) for cents in range(9999, 9987, -1)]
READ_WRITE_READ = [("read", {}, "old"), ("write", {"text": "new"}, "conflict")] * 6
STILL_RED = [row for n in range(6) for row in [("edit", {"patch": n}, "saved"), ("test", {}, "3 failed")]]


@pytest.mark.parametrize(
    ("script", "literal", "window", "world"),
    [
        (ALTERNATING, None, 4, 4),
        (DRIFTING, None, None, 4),
        (READ_WRITE_READ, None, 4, 6),
        (STILL_RED, None, None, 6),
        (rows("a" * 9), 3, 4, 5),
    ],
    ids=["alternating", "drifting", "read-write-read", "still red", "literal"],
)
def test_what_each_detector_catches(
    script: list[Any], literal: int | None, window: int | None, world: int | None
) -> None:
    found = [
        ended_at(script, guard) for guard in (repeated_call_guard(3), window_guard(4), stalled_world_guard(4))
    ]
    assert found == [literal, window, world]


def test_each_detector_has_a_healthy_run_that_it_ends_wrongly() -> None:
    polling = [("poll", {}, "running")] * 5 + [("poll", {}, "finished")]
    gauges = [(gauge, {}, f"{gauge} {n}") for n in range(4) for gauge in ("cpu", "disk")]
    bulk = [("write", {"row": n}, "ok") for n in range(8)]
    assert ended_at(polling, repeated_call_guard(3)) == 3
    assert ended_at(gauges, window_guard(4)) == 4
    assert ended_at(bulk, stalled_world_guard(4)) == 5


def test_a_better_measure_cures_the_bulk_writer() -> None:
    counted = [("write", {"row": n}, {"left": 8 - n}) for n in range(8)]
    assert ended_at(counted, stalled_world_guard(4)) is None
    blind = stalled_world_guard(4, shows=lambda seen: None)
    assert ended_at(counted, blind) == 4


@pytest.mark.parametrize(
    ("make", "least"), [(repeated_call_guard, 2), (window_guard, 2), (stalled_world_guard, 1)]
)
@pytest.mark.parametrize("size", [0, -1, 1.5, True, "3", None])
def test_a_detector_refuses_a_size_that_means_nothing(make: Any, least: int, size: Any) -> None:
    with pytest.raises(ValueError, match=f"whole number, at least {least}"):
        make(size)
    assert make(least)


def test_the_same_message_again_and_again_is_ended_and_an_effect_is_not_repeated_unseen() -> None:
    tools, effects = make_environment()
    asked = tool_call_message("call01", "refund_order", {"order_id": "A-17", "amount_cents": 4999})
    result = run_agent(
        "Refund.", ScriptedModel([asked] * 9), tools, allow_all, guards=[repeated_call_guard(2)]
    )
    assert result.stop is Stop.NO_PROGRESS
    assert len(effects) == len(result.state.observations) == 2


def test_broken_arguments_again_and_again_are_the_same_call() -> None:
    def broken(text: str) -> dict[str, Any]:
        function = {"name": "lookup_order", "arguments": text}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        }

    result = run([broken("{"), broken("[1,"), broken("{'a': 1}")] * 2, [repeated_call_guard(3)])
    assert (result.stop, result.state.turns) == (Stop.NO_PROGRESS, 3)


# --- guards and the kernel ---------------------------------------------------------------------
def test_only_the_repeated_denial_is_on_by_default() -> None:
    for script in (rows("a" * 7), READ_WRITE_READ[:7], STILL_RED[:7], DRIFTING[:7]):
        assert rehearse(script).stop is Stop.ANSWERED


def test_the_counter_of_denials_can_be_rehearsed_and_errs_where_a_gate_changes_its_mind() -> None:
    waits = [("refund", {}, DENIED), ("wait", {}, "11:00"), ("refund", {}, DENIED), ("wait", {}, "12:00")]
    waits += [("refund", {}, "paid")]
    ended = [rehearse(rows, repeated_denials=2) for rows in (ALTERNATING, DRIFTING, waits)]
    assert [result.stop for result in ended] == [Stop.NO_PROGRESS, Stop.ANSWERED, Stop.NO_PROGRESS]
    assert [result.state.turns for result in ended] == [3, len(DRIFTING) + 1, 3]


def test_a_guard_runs_after_the_results_and_before_the_next_call() -> None:
    seen: list[tuple[int, int, int]] = []

    def watch(state: RunState) -> None:
        seen.append((len(state.prompt_token_log), len(state.observations), state.turns))

    run([LOOKUP, LOOKUP, HELLO], [watch])
    assert seen == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]


def new_guards() -> list[Guard]:
    return [repeated_call_guard(3), window_guard(4), stalled_world_guard(5), cost_guard(1.0, PRICES)]


@given(letters, st.data())
@settings(max_examples=50)
def test_a_run_cut_anywhere_and_resumed_with_new_guards_ends_alike(text: list[str], data: Any) -> None:
    tools = {name: ToolSpec(name, {}, lambda: "same") for name in "abc"}
    turns = [*(tool_call_message(f"c{n}", name, {}) for n, name in enumerate(text)), HELLO]
    roomy = Limits(max_turns=20, max_prompt_tokens=10**6)
    whole = run_agent("Go.", ScriptedModel(turns), tools, allow_all, roomy, new_guards())
    cut = data.draw(st.integers(0, whole.state.turns))
    first = run_agent("Go.", ScriptedModel(turns), tools, allow_all, Limits(max_turns=cut), new_guards())
    state = RunState.from_json(first.state.to_json())
    again = resume_agent(state, ScriptedModel(turns), tools, allow_all, roomy, new_guards())
    assert (again.stop, again.state.to_json()) == (whole.stop, whole.state.to_json())


def test_rehearse_plays_results_errors_and_verdicts() -> None:
    script = [("a", {"x": 1}, "fine"), ("b", {}, KeyError("gone")), ("a", {}, DENIED)]
    result = rehearse(script)
    assert [(seen.kind, seen.content) for seen in result.state.observations] == [
        ("result", "fine"),
        ("error", "gone"),
        ("denied", "exceeds the limit"),
    ]
    assert result.stop is Stop.ANSWERED


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -0.01])
def test_a_budget_or_a_deadline_that_is_no_amount_is_refused_when_it_is_set(limit: float) -> None:
    with pytest.raises(ValueError, match="max_usd must be a finite number"):
        cost_guard(limit, PRICES)
    with pytest.raises(ValueError, match="seconds must be a finite number"):
        deadline_guard(limit, lambda: 0.0)
