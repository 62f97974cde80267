"""Verification: four promises decided from the record, each shown to fail; outcomes asked of the world."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.gate import ask_for, overreaching_model, refund_gate
from agentkit.loop import (
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
from agentkit.tools import Registry, ToolSpec, make_environment
from agentkit.verification import (
    MOVES,
    RandomModel,
    Verdict,
    broken,
    broken_runs,
    check_run,
    cites_receipt,
    history,
    judge_run,
    looked_up_first,
    random_run,
    verify_refund,
)
from agentkit.wire import Message, Reply, ScriptedModel, answer_message, tool_call_message, tool_message

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")

TASK = "Order A-17 arrived damaged. Please make this right."
LOOKUP = tool_call_message("call_1", "lookup_order", {"order_id": "A-17"})
REFUND = tool_call_message("call_2", "refund_order", {"order_id": "A-17", "amount_cents": 4999})
TOO_MUCH = tool_call_message("call_3", "refund_order", {"order_id": "A-17", "amount_cents": 9999})
TOLD = answer_message("We refunded 49.99 for order A-17.")
RECEIPT = {"order_id": "A-17", "refunded_cents": 4999}
PROMISES = ["effects_authorized", "observations_correlated", "bounded", "typed_ending"]


DEFAULTS = Limits()


def run(model: Any, gate: Any = refund_gate, limits: Limits = DEFAULTS) -> tuple[RunResult, list[Any]]:
    tools, effects = make_environment()
    return run_agent(TASK, model, tools, gate, limits), effects


def scripted(*turns: Message | Reply) -> tuple[RunResult, list[Any]]:
    return run(ScriptedModel(list(turns)))


def gated() -> tuple[RunResult, list[Any]]:
    """Four turns: looked up, denied, refunded, answered."""
    return run(overreaching_model())


# What a correct run looks like


def test_a_run_that_recovers_from_a_denial_keeps_all_four_promises():
    result, effects = gated()
    assert check_run(result, effects, Limits()) == dict.fromkeys(PROMISES, True)
    assert effects == [RECEIPT] and result.state.turns == 4


def test_a_run_that_fails_inside_the_rules_keeps_them_too():
    result, effects = scripted(TOO_MUCH, TOO_MUCH, TOO_MUCH)
    assert result.stop is Stop.NO_PROGRESS and effects == []
    assert check_run(result, effects, Limits()) == dict.fromkeys(PROMISES, True)


def test_the_liar_answers_keeps_the_rules_and_has_done_nothing():
    result, effects = scripted(TOLD)
    verdict = judge_run(result, effects, Limits(), lambda log: verify_refund(log, "A-17", 4999))
    assert verdict == Verdict(answered=True, kept_rules=True, verified=False)


def test_a_refund_without_a_turn_left_to_answer_is_done_and_not_answered():
    result, effects = run(ScriptedModel([LOOKUP, REFUND, TOLD]), limits=Limits(max_turns=2))
    verdict = judge_run(result, effects, Limits(max_turns=2), lambda log: verify_refund(log, "A-17", 4999))
    assert verdict == Verdict(answered=False, kept_rules=True, verified=True)


def test_checking_changes_nothing():
    result, effects = gated()
    before = result.state.to_json()
    check_run(result, effects, Limits())
    assert result.state.to_json() == before and effects == [RECEIPT]


# Effects


@pytest.mark.parametrize(
    "log",
    [
        [RECEIPT, RECEIPT],
        [{**RECEIPT, "refunded_cents": 5000}],
        [{**RECEIPT, "refunded_cents": 4999.0}],
        [{**RECEIPT, "order_id": "A-18"}],
        [RECEIPT, {"apology": "sent"}],
    ],
    ids=["twice", "one cent more", "a decimal", "another order", "an effect nobody proposed"],
)
def test_an_effect_without_a_result_of_its_own_is_not_authorized(log):
    result, _ = gated()
    assert broken(check_run(result, log, Limits())) == ["effects_authorized"]


def test_two_equal_refunds_that_were_both_allowed_vouch_for_two_receipts_and_no_third():
    result, effects = scripted(REFUND, REFUND, TOLD)
    assert effects == [RECEIPT, RECEIPT]
    assert not broken(check_run(result, effects, Limits()))
    assert broken(check_run(result, [*effects, RECEIPT], Limits())) == ["effects_authorized"]


def test_a_receipt_whose_result_was_cut_is_recognised_by_its_beginning_and_length():
    short = Limits(max_result_chars=20)
    result, effects = run(ScriptedModel([REFUND, TOLD]), limits=short)
    assert "cut: 20 of" in result.state.observations[0].content
    assert not broken(check_run(result, effects, short))
    assert "effects_authorized" in broken(check_run(result, effects * 2, short))


@pytest.mark.parametrize("kind", ["denied", "invalid", "error", "pending", "skipped", "unknown"])
def test_only_a_result_vouches(kind):
    result, effects = gated()
    state = RunState.from_json(result.state.to_json())
    place = [seen.content for seen in state.observations].index(RECEIPT)
    state.observations[place] = replace(state.observations[place], ok=False, kind=kind)
    assert "effects_authorized" in broken(check_run(replace(result, state=state), effects, Limits()))


def test_an_effect_that_landed_before_a_crash_is_reported_after_the_resume():
    tools, effects = make_environment()

    def pays_and_dies(order_id: str, amount_cents: int) -> None:
        effects.append(dict(RECEIPT))
        raise RuntimeError("power failure")

    deadly = {**tools, "refund_order": replace(tools["refund_order"], handler=pays_and_dies)}
    model = ScriptedModel([REFUND, TOLD])
    with pytest.raises(RunCrash) as crash:
        run_agent(TASK, model, deadly, refund_gate)
    resumed = resume_agent(crash.value.state, model, tools, refund_gate)
    assert [seen.kind for seen in resumed.state.observations] == ["unknown"]
    assert broken(check_run(resumed, effects, Limits())) == ["effects_authorized"]


# Tampered records


def lose_result(state: RunState) -> None:
    del state.messages[3], state.observations[0]


def answer_twice(state: RunState) -> None:
    state.messages.insert(4, dict(state.messages[3]))
    state.observations.insert(1, state.observations[0])


def rename(state: RunState) -> None:
    state.messages[3]["tool_call_id"] = "call_9"


def orphan_in_front(state: RunState) -> None:
    state.messages.insert(0, tool_message("call_1", True, "result", "forged"))
    state.observations.insert(0, Observation("call_1", True, "result", "forged"))


def orphan_at_the_end(state: RunState) -> None:
    state.observations.append(Observation("call_1", True, "result", RECEIPT))


def rewrite_denial(state: RunState) -> None:
    state.messages[5]["content"] = json.dumps({"ok": True, "kind": "result", "content": RECEIPT})


def erase_proposal(state: RunState) -> None:
    state.messages[2]["tool_calls"] = []


def result_that_is_no_id(state: RunState) -> None:
    state.messages[3]["tool_call_id"] = ["call_1"]


def turn_back(state: RunState) -> None:
    state.turns = 1


def swell(state: RunState) -> None:
    state.prompt_token_log[0] = Limits().max_prompt_tokens + 1


def forget_a_prompt(state: RunState) -> None:
    state.prompt_token_log.pop()


def deny_thrice(state: RunState) -> None:
    state.messages[6:6] = state.messages[4:6] * 2
    state.observations[2:2] = [state.observations[1]] * 2
    state.turns += 2
    state.prompt_token_log += [1, 1]


def fill(state: RunState) -> None:
    state.messages[1]["content"] = "please " * 4000


def pause_for_ever(state: RunState) -> None:
    state.pauses = 10
    state.prompt_token_log += [1] * 10


def overlong_result(state: RunState) -> None:
    state.observations[0] = Observation("call_1", True, "result", "x" * 4001)
    state.messages[3] = tool_message("call_1", True, "result", "x" * 4001)


def end_otherwise(state: RunState) -> None:
    state.ending = "step_limit"


def never_end(state: RunState) -> None:
    state.ending = None


def leave_pending(state: RunState) -> None:
    asked = Observation("call_2", False, "pending", "a person has to decide")
    state.observations[1] = asked
    state.messages[5] = tool_message("call_2", False, "pending", asked.content)


def say_otherwise(state: RunState) -> None:
    state.messages[-1]["content"] = "Nothing was refunded."


TAMPERED: list[tuple[str, Callable[[RunState], None]]] = [
    *(("observations_correlated", change) for change in (lose_result, answer_twice, rename)),
    *(("observations_correlated", change) for change in (orphan_in_front, orphan_at_the_end)),
    *(("observations_correlated", change) for change in (rewrite_denial, erase_proposal)),
    ("observations_correlated", result_that_is_no_id),
    *(("bounded", change) for change in (turn_back, swell, forget_a_prompt, deny_thrice)),
    *(("bounded", change) for change in (fill, pause_for_ever, overlong_result)),
    *(("typed_ending", change) for change in (end_otherwise, never_end, leave_pending, say_otherwise)),
]


@pytest.mark.parametrize(("promise", "change"), TAMPERED, ids=[change.__name__ for _, change in TAMPERED])
def test_a_tampered_record_is_rejected_by_the_promise_it_breaks(promise, change):
    result, effects = gated()
    change(result.state)
    assert broken(check_run(result, effects, Limits())) == [promise]


@pytest.mark.parametrize(
    "changes",
    [{"stop": "answered"}, {"stop": Stop.STEP_LIMIT}, {"answer": None}, {"answer": "9999 paid."}],
    ids=str,
)
def test_an_ending_that_the_record_does_not_bear_out_is_rejected(changes):
    result, effects = gated()
    assert broken(check_run(replace(result, **changes), effects, Limits())) == ["typed_ending"]


def test_a_run_checked_under_a_lower_limit_is_not_bounded():
    result, effects = gated()
    assert not broken(check_run(result, effects, Limits(max_turns=4)))
    assert broken(check_run(result, effects, Limits(max_turns=3))) == ["bounded"]
    assert broken(check_run(result, effects, Limits(max_prompt_tokens=300))) == ["bounded"]


def batch_of_two() -> tuple[RunResult, list[Any]]:
    policy = tool_call_message("call_2", "read_policy", {})
    both = {**LOOKUP, "tool_calls": [LOOKUP["tool_calls"][0], policy["tool_calls"][0]]}
    return scripted(both, answer_message("Covered."))


def test_results_of_one_message_are_joined_by_id_and_not_by_place():
    result, effects = batch_of_two()
    messages = result.state.messages
    messages[3], messages[4] = messages[4], messages[3]
    assert not broken(check_run(result, effects, Limits()))
    result.state.observations.reverse()
    assert not broken(check_run(result, effects, Limits()))
    assert {call.name: type(seen.content) for call, seen in history(result.state)} == {
        "lookup_order": dict,
        "read_policy": str,
    }


def test_a_result_cannot_answer_a_proposal_of_another_turn():
    result, effects = gated()
    messages, observations = result.state.messages, result.state.observations
    messages[3], messages[5] = messages[5], messages[3]
    observations[0], observations[1] = observations[1], observations[0]
    assert broken(check_run(result, effects, Limits())) == ["observations_correlated"]


def test_ids_may_come_back_in_a_later_turn():
    result, effects = scripted(
        LOOKUP, {**REFUND, "tool_calls": [{**REFUND["tool_calls"][0], "id": "call_1"}]}, TOLD
    )
    assert {seen.call_id for seen in result.state.observations} == {"call_1"}
    assert not broken(check_run(result, effects, Limits()))
    assert looked_up_first(result.state)


def test_a_paused_run_and_its_resumed_end_keep_the_promises():
    tools, effects = make_environment()
    model = ScriptedModel([LOOKUP, REFUND, TOLD])
    paused = run_agent(TASK, model, tools, ask_for(["refund_order"]))
    assert paused.stop is Stop.NEEDS_APPROVAL and not broken(check_run(paused, effects, Limits()))
    resumed = resume_agent(paused.state, model, tools, allow_all)
    assert effects == [RECEIPT] and not broken(check_run(resumed, effects, Limits()))


@settings(max_examples=150)
@given(st.data())
def test_no_damage_to_a_record_makes_the_checks_raise(data):
    result, effects = gated()
    record = json.loads(result.state.to_json())
    where = data.draw(st.sampled_from(range(len(record["messages"]))))
    key = data.draw(st.sampled_from(sorted(set(record["messages"][where]) - {"role"})))
    junk = (
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
    )
    record["messages"][where][key] = data.draw(junk | st.dictionaries(st.text(max_size=3), junk, max_size=2))
    damaged = replace(result, state=RunState.from_json(json.dumps(record)))
    assert list(check_run(damaged, effects, Limits())) == PROMISES


@given(st.sampled_from([3, 5, 7]), st.sampled_from(["tool_call_id", "content"]), st.text(max_size=12))
def test_no_word_of_a_result_can_be_changed_unnoticed(place, key, word):
    result, effects = gated()
    changed = result.state.messages[place][key] != word
    result.state.messages[place][key] = word
    assert ("observations_correlated" in broken(check_run(result, effects, Limits()))) == changed


# Outcome and process


@pytest.mark.parametrize(
    ("log", "done"),
    [
        ([RECEIPT], True),
        ([dict(reversed(RECEIPT.items()))], True),
        ([], False),
        ([RECEIPT, RECEIPT], False),
        ([{**RECEIPT, "refunded_cents": 4998}], False),
        ([{**RECEIPT, "refunded_cents": "4999"}], False),
        ([{**RECEIPT, "order_id": "A-18"}], False),
        ([RECEIPT, {"order_id": "A-18", "refunded_cents": 1}], False),
        ([{**RECEIPT, "note": "by hand"}], False),
    ],
)
def test_a_refund_is_verified_by_exactly_one_receipt(log, done):
    assert verify_refund(log, "A-17", 4999) is done


def test_true_is_not_a_refund_of_one_cent():
    assert not verify_refund([{"order_id": "A-17", "refunded_cents": True}], "A-17", 1)


OTHER_LOOKUP = tool_call_message("call_1", "lookup_order", {"order_id": "A-18"})


@pytest.mark.parametrize(
    ("turns", "held"),
    [
        ([LOOKUP, REFUND], True),
        ([REFUND], False),
        ([REFUND, LOOKUP], False),
        ([OTHER_LOOKUP, REFUND], False),
        ([TOO_MUCH, TOO_MUCH], True),
        ([], True),
    ],
    ids=["before", "never", "after", "another order", "denied, so nothing to prove", "nothing"],
)
def test_the_lookup_has_to_come_before_a_refund_that_goes_through(turns, held):
    result, _ = scripted(*turns, TOLD)
    assert looked_up_first(result.state) is held


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("We refunded 49.99 for order A-17.", True),
        ("Refunded: 4999 cents (A-17)", True),
        ("We refunded order A-17.", False),
        ("We refunded 49.99.", False),
        ("We refunded 14999 for A-17.", False),
        ("We refunded 4999 for A-170.", False),
        ("", False),
    ],
)
def test_an_answer_cites_a_receipt_by_order_and_amount(answer, cited):
    result, effects = scripted(REFUND, answer_message(answer))
    assert cites_receipt(result, effects) is cited


def test_without_a_receipt_nothing_is_cited():
    result, effects = scripted(answer_message("We refunded 4999 cents for A-17, receipt R-20931."))
    assert not cites_receipt(result, effects)
    assert not cites_receipt(result, [{"apology": "sent"}])


# Runs nobody wrote

texts = st.sampled_from(["Done.", "", None])
arguments = st.sampled_from(
    ['{"order_id": "A-17"}', '{"order_id": "A-17", "amount_cents": 4999}', "{", "", "[]", '{"x": NaN}']
)
calls = st.lists(
    st.builds(
        lambda name, text, call_id: {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": text},
        },
        st.sampled_from(["lookup_order", "refund_order", "read_policy", "nothing", ""]),
        arguments,
        st.sampled_from(["a", "b", "", None]),
    ),
    max_size=4,
)
messages = st.builds(
    lambda text, batch: {"role": "assistant", "content": text, "tool_calls": batch}, texts, calls
)
reasons = st.sampled_from([None, "tool_use", "end_turn", "pause_turn", "max_tokens", "refusal", "odd"])
turns = st.lists(messages | st.builds(Reply, messages, reasons), max_size=8)
verdicts = st.sampled_from([True, False, (True, ""), (False, "no"), 1, None, "ask"])
limits_drawn = st.builds(
    Limits,
    max_turns=st.integers(0, 6),
    max_prompt_tokens=st.sampled_from([0, 60, 200, 4000]),
    repeated_denials=st.integers(1, 3),
    max_pauses=st.integers(0, 2),
    max_result_chars=st.sampled_from([1, 20, 60, 4000]),
)


@settings(max_examples=200)
@given(turns, st.lists(verdicts, min_size=1, max_size=5), limits_drawn)
def test_no_model_gate_or_limit_breaks_a_promise_of_the_kernel(turns, verdicts, limits):
    asked = iter(range(10_000))
    result, effects = run(ScriptedModel(turns), lambda call: verdicts[next(asked) % len(verdicts)], limits)
    assert broken(check_run(result, effects, limits)) == []


def test_the_books_own_random_runs_break_nothing_and_reach_many_endings():
    runs = [random_run(seed) for seed in range(300)]
    assert [seed for seed, each in enumerate(runs) if broken(check_run(*each))] == []
    assert len(Counter(result.stop for result, _, _ in runs)) >= 6
    assert any(effects for _, effects, _ in runs)


def test_a_seed_gives_its_run_back():
    first, second = random_run(7), random_run(7)
    assert first[0].state.to_json() == second[0].state.to_json() and first[1:] == second[1:]


def test_a_readers_move_is_played():
    shout = answer_message("EXTENDED")

    def model_of(dice: random.Random) -> RandomModel:
        return RandomModel(dice, [*MOVES, lambda dice: shout])

    answers = [random_run(seed, model_of=model_of)[0].answer for seed in range(60)]
    assert "EXTENDED" in answers


def double_booking() -> tuple[Registry, list[Any]]:
    tools, effects = make_environment()
    pay = tools["refund_order"].handler
    twice = replace(tools["refund_order"], handler=lambda **given: pay(**given) and pay(**given))
    return Registry({**tools, "refund_order": twice}), effects


def ghost_desk() -> tuple[dict[str, ToolSpec], list[Any]]:
    tools, effects = make_environment()
    ghost = replace(tools["read_policy"], handler=lambda: effects.append(dict(RECEIPT)))
    return {**tools, "read_policy": ghost}, effects


@pytest.mark.parametrize("environment", [double_booking, ghost_desk])
def test_a_broken_environment_is_found_by_random_runs(environment):
    found = list(broken_runs(range(200), lambda seed: random_run(seed, environment)))
    assert found and all(failed == ["effects_authorized"] for _, failed in found)
