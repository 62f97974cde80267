"""What agentkit.tiers promises: which rung a system stands on, and what an agent's turns cost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.tiers import (
    CHECKS,
    System,
    Tier,
    agent_bill,
    agent_tokens,
    answer,
    count_paths,
    failed_checks,
    multiple,
    place,
    workflow_tokens,
)

PREFIX, DELTA = 2000, 500
ROUTER = System("router", stages=2, decisions=1, final=4)
EVALUATOR = System("evaluator", stages=2, decisions=2, onward=1, final=1)
FIXER = System("fix this failing test", decisions=None, onward=None, final=1)

turns = st.integers(1, 200)
tokens = st.integers(0, 100_000)
systems = st.builds(
    System,
    name=st.just("any"),
    stages=st.integers(1, 4),
    decisions=st.none() | st.integers(0, 5),
    onward=st.none() | st.integers(0, 4),
    final=st.integers(0, 4),
)


def walk(system: System, left: int) -> int:
    """Count the paths by walking every one of them: the slow oracle for ``count_paths``."""
    if left == 0:
        return 1
    return system.final + sum(walk(system, left - 1) for _ in range(system.onward or 0))


# --- placing systems


@pytest.mark.parametrize(
    ("system", "paths", "tier"),
    [
        (System("classify a ticket"), 1, Tier.CALL),
        (System("extract, validate, route", stages=3, decisions=1, final=3), 3, Tier.WORKFLOW),
        (ROUTER, 4, Tier.WORKFLOW),
        (EVALUATOR, 3, Tier.WORKFLOW),
        (FIXER, None, Tier.AGENT),
    ],
    ids=lambda value: value.name if isinstance(value, System) else None,
)
def test_known_systems_stand_where_the_chapter_puts_them(
    system: System, paths: int | None, tier: Tier
) -> None:
    assert count_paths(system) == paths
    assert place(system) is tier


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (ROUTER, {"decisions": None, "onward": 4}),  # asked again after every branch
        (EVALUATOR, {"onward": None}),  # the judge writes the repair's arguments
        (EVALUATOR, {"decisions": None}),  # no last draft
    ],
)
def test_open_options_or_a_model_owned_ending_make_a_workflow_an_agent(
    before: System, change: dict[str, int | None]
) -> None:
    assert place(before) is Tier.WORKFLOW
    assert place(replace(before, **change)) is Tier.AGENT


def test_more_branches_are_more_drawing_and_not_another_tier() -> None:
    assert place(replace(ROUTER, final=10)) is Tier.WORKFLOW
    assert count_paths(replace(EVALUATOR, onward=4)) == 21


def test_the_whiteboard_decides_how_many_paths_count_as_drawable() -> None:
    menu = replace(FIXER, decisions=3, onward=5)
    assert count_paths(menu) == 156
    assert place(menu) is Tier.WORKFLOW
    assert place(menu, whiteboard=155) is Tier.AGENT
    assert place(replace(menu, decisions=6)) is Tier.AGENT


@given(systems)
def test_counted_paths_are_the_paths_one_walks(system: System) -> None:
    if system.decisions is None or system.onward is None:
        assert count_paths(system) is None
    else:
        assert count_paths(system) == walk(system, system.decisions)


@given(systems)
def test_whatever_can_be_drawn_is_ended_by_code(system: System) -> None:
    drawable, code_ends = answer(system)
    assert code_ends or not drawable


@given(systems)
def test_two_yeses_and_only_two_yeses_keep_a_system_off_the_top_rung(system: System) -> None:
    assert (place(system) is Tier.AGENT) == (answer(system) != (True, True))


# --- the price of turns


@given(turns, tokens, tokens)
def test_an_agents_tokens_are_the_sum_over_its_turns(n: int, prefix: int, delta: int) -> None:
    assert agent_tokens(n, prefix, delta) == sum(prefix + t * delta for t in range(1, n + 1))
    assert agent_tokens(n, prefix, delta, task_in_prefix=True) == sum(prefix + t * delta for t in range(n))


@given(turns, tokens, tokens)
def test_the_two_conventions_differ_by_one_delta_a_turn(n: int, prefix: int, delta: int) -> None:
    other = agent_tokens(n, prefix, delta, task_in_prefix=True)
    assert agent_tokens(n, prefix, delta) - other == n * delta


@given(tokens, tokens)
def test_an_agent_of_one_turn_costs_what_one_call_costs(prefix: int, delta: int) -> None:
    assert agent_tokens(1, prefix, delta) == workflow_tokens(1, prefix, delta)


@pytest.mark.parametrize(
    ("n", "against_one", "against_as_many"),
    [(4, 5.2, 1.3), (10, 19, 1.9), (20, 58, 2.9), (40, 196, 4.9)],
)
def test_the_published_multiples(n: int, against_one: float, against_as_many: float) -> None:
    assert multiple(n, PREFIX, DELTA) == against_one
    assert multiple(n, PREFIX, DELTA, against=n) == against_as_many


def test_dropping_the_prefix_changes_the_answer() -> None:
    assert multiple(20, 0, DELTA, against=20) == 10.5


def test_both_sides_of_a_multiple_use_one_convention() -> None:
    assert multiple(20, PREFIX, DELTA, task_in_prefix=True) == 135_000 / 2_000


@pytest.mark.parametrize(("prefix", "delta", "against"), [(0, 0, 1), (PREFIX, DELTA, 0)])
def test_a_multiple_of_nothing_is_refused(prefix: int, delta: int, against: int) -> None:
    with pytest.raises(ValueError, match="send no tokens"):
        multiple(20, prefix, delta, against=against)


def test_a_negative_count_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="delta must be 0 or more, got -1"):
        agent_tokens(20, PREFIX, -1)
    with pytest.raises(ValueError, match="stages must be 0 or more, got -4"):
        workflow_tokens(-4, PREFIX, DELTA)


# --- caching


@pytest.mark.parametrize(
    ("n", "cache", "full_price_tokens"),
    [
        (20, "nothing", 145_000),
        (20, "prefix", 110_800),
        (10, "nothing", 47_500),
        (20, "history", 25_300),
        (10, "history", 11_050),
    ],
)
def test_the_published_bills(n: int, cache: str, full_price_tokens: int) -> None:
    assert agent_bill(n, PREFIX, DELTA, cache).cost() == pytest.approx(full_price_tokens)


@given(turns, tokens, tokens, st.sampled_from(["nothing", "prefix", "history"]))
def test_caching_moves_tokens_between_prices_and_removes_none(
    n: int, prefix: int, delta: int, cache: str
) -> None:
    bill = agent_bill(n, prefix, delta, cache)
    assert bill.sent == agent_tokens(n, prefix, delta)
    assert min(bill.plain, bill.written, bill.read) >= 0


@given(turns, tokens, tokens)
def test_a_cached_history_is_the_turns_one_by_one(n: int, prefix: int, delta: int) -> None:
    """Each turn reads what the last one sent and writes its own news; the first writes all it has."""
    read = sum(prefix + (t - 1) * delta for t in range(2, n + 1))
    bill = agent_bill(n, prefix, delta, "history")
    assert (bill.plain, bill.written, bill.read) == (0, prefix + n * delta, read)


def test_writes_may_cost_extra() -> None:
    assert agent_bill(20, PREFIX, DELTA, "history").cost(write_rate=1.25) == pytest.approx(28_300)
    assert agent_bill(20, PREFIX, DELTA, "nothing").cost(write_rate=1.25) == 145_000


def test_an_unknown_cache_or_no_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="one of nothing, prefix, history; got 'all'"):
        agent_bill(20, PREFIX, DELTA, "all")
    with pytest.raises(ValueError, match="1 turn or more, got 0"):
        agent_bill(0, PREFIX, DELTA, "nothing")


# --- the four checks


def test_the_invoice_pipeline_fails_two_checks_in_order() -> None:
    invoices = {"cost of error": True, "viability": True, "value": False, "complexity": False}
    assert failed_checks(invoices) == ["complexity", "value"]


def test_four_passed_checks_are_a_case_for_an_agent() -> None:
    assert failed_checks(dict.fromkeys(CHECKS, True)) == []


@pytest.mark.parametrize("answers", [{}, {"value": True}, dict.fromkeys([*CHECKS, "fun"], True)])
def test_a_check_that_nobody_made_is_not_passed(answers: dict[str, bool]) -> None:
    with pytest.raises(ValueError, match="answer exactly these checks: complexity, value"):
        failed_checks(answers)
