"""Patterns: five control policies over one kernel, one gate, one meter, and endings a caller can trust."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Barrier, Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit import patterns
from agentkit.gate import ask_for, limits_gate, overreaching_model, refund_gate
from agentkit.loop import Decision, Gate, Limits, Stop, allow_all, run_agent
from agentkit.patterns import (
    Meter,
    Outcome,
    Replies,
    ask,
    fan_out,
    overlap,
    read_label,
    read_parts,
    reads_of,
    refund_call,
    refund_paid,
    route,
    run_adaptive,
    run_chain,
    run_evaluator,
    run_orchestrator,
    run_parallel,
    run_router,
    states_amount,
)
from agentkit.tools import Registry, ToolCall, ToolSpec, make_environment
from agentkit.wire import Reply, ScriptedModel, answer_message, tool_call_message

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")

TASK = "Order A-17 arrived damaged. Please make this right."
RECEIPT = {"order_id": "A-17", "refunded_cents": 4999}
LETTER = "We refunded 4999 cents for damaged order A-17."
VAGUE = "We are sorry about the damage - your refund is on its way."

Pattern = Callable[[Any, Gate, Meter], Outcome]
PATTERNS: dict[str, tuple[Pattern, tuple[int, int, int]]] = {
    "chain": (lambda t, g, m: run_chain(Replies([LETTER]), t, g, m), (1, 2, 34)),
    "router": (lambda t, g, m: run_router(TASK, Replies(["billing", LETTER]), t, g, m), (2, 2, 65)),
    "parallel": (lambda t, g, m: run_parallel(Replies([LETTER]), t, g, m), (1, 3, 78)),
    "evaluator": (lambda t, g, m: run_evaluator(Replies([VAGUE, LETTER]), t, g, m), (2, 2, 71)),
    "agent": (lambda t, g, m: run_adaptive(TASK, overreaching_model(), t, g, m), (4, 3, 774)),
}
WORKFLOWS = ["chain", "router", "parallel", "evaluator"]


def desk_without(broken: str, handler: Callable[..., Any]) -> tuple[dict[str, ToolSpec], list[Any]]:
    """The desk with one handler replaced."""
    tools, effects = make_environment()
    spec = tools[broken]
    schema = {"order_id": str} if broken == "lookup_order" else {}
    return {**tools, broken: ToolSpec(spec.description, schema, handler)}, effects


# --- the published table -------------------------------------------------------------------------
@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_spends_what_was_published_and_lands_the_one_receipt(name: str) -> None:
    pattern, spent = PATTERNS[name]
    (tools, effects), meter = make_environment(), Meter()
    outcome = pattern(tools, refund_gate, meter)
    assert (meter.model_calls, meter.tool_calls, meter.prompt_tokens) == spent
    assert effects == [RECEIPT]
    assert outcome.stop is (Stop.GOAL_MET if name == "evaluator" else Stop.ANSWERED)
    assert outcome.seen is not None and outcome.seen.content == RECEIPT


@pytest.mark.parametrize(("rounds", "tokens"), list(enumerate([28, 71, 114, 157, 200, 243], start=1)))
def test_an_exhausted_revision_budget_is_goal_unmet_and_pays_once(rounds: int, tokens: int) -> None:
    (tools, effects), meter = make_environment(), Meter()
    outcome = run_evaluator(Replies([VAGUE] * rounds), tools, refund_gate, meter, max_rounds=rounds)
    assert (outcome.stop, outcome.answer) == (Stop.GOAL_UNMET, VAGUE)
    assert (meter.model_calls, meter.prompt_tokens) == (rounds, tokens)
    assert effects == [RECEIPT]


def test_a_revision_budget_of_zero_asks_nobody_and_is_goal_unmet() -> None:
    (tools, effects), meter = make_environment(), Meter()
    outcome = run_evaluator(Replies([LETTER]), tools, refund_gate, meter, max_rounds=0)
    assert (outcome.stop, outcome.answer, meter.model_calls) == (Stop.GOAL_UNMET, None, 0)
    assert effects == [RECEIPT]


# --- a step that did not work ----------------------------------------------------------------------
@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_denied_refund_ends_goal_unmet_without_a_letter(name: str) -> None:
    gate = limits_gate({"lookup_order": {}, "read_policy": {}, "refund_order": {"amount_cents": 3000}})
    (tools, effects), meter = make_environment(), Meter()
    outcome = PATTERNS[name][0](tools, gate, meter)
    assert (outcome.stop, outcome.answer) == (Stop.GOAL_UNMET, None)
    assert outcome.seen is not None and outcome.seen.kind == "denied"
    assert effects == [] and meter.model_calls == (1 if name == "router" else 0)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_refund_that_a_person_must_decide_ends_needs_approval(name: str) -> None:
    tools, effects = make_environment()
    outcome = PATTERNS[name][0](tools, ask_for(["refund_order"]), Meter())
    assert outcome.stop is Stop.NEEDS_APPROVAL and outcome.answer is None and effects == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_failed_lookup_refunds_nothing(name: str) -> None:
    def unreachable(order_id: str) -> Any:
        raise ConnectionError("orders unreachable")

    tools, effects = desk_without("lookup_order", unreachable)
    outcome = PATTERNS[name][0](tools, allow_all, Meter())
    assert outcome.stop is Stop.GOAL_UNMET and effects == []
    assert outcome.seen is not None
    assert (outcome.seen.kind, outcome.seen.content) == ("error", "orders unreachable")


@pytest.mark.parametrize(
    "order", ["a sentence", None, [], {}, {"paid_cents": None}, {"paid_cents": "4999"}, 7]
)
@pytest.mark.parametrize("name", WORKFLOWS)
def test_an_order_that_does_not_say_what_was_paid_is_refused_by_the_contract(name: str, order: Any) -> None:
    tools, effects = desk_without("lookup_order", lambda order_id: order)
    outcome = PATTERNS[name][0](tools, allow_all, Meter())
    assert outcome.stop is Stop.GOAL_UNMET and effects == []
    assert outcome.seen is not None and outcome.seen.kind == "invalid"


def test_a_policy_that_cannot_be_read_stops_the_fan_out_before_the_refund() -> None:
    def lost() -> Any:
        raise ValueError("no policy today")

    tools, effects = desk_without("read_policy", lost)
    outcome = run_parallel(Replies([LETTER]), tools, allow_all, Meter())
    assert outcome.stop is Stop.GOAL_UNMET and effects == []


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        (Reply(answer_message("We are sor"), "max_tokens"), Stop.TRUNCATED),
        (Reply(answer_message(""), "refusal"), Stop.REFUSED),
        (Reply(answer_message("..."), "pause_turn"), Stop.MALFORMED),
        (Reply(answer_message("?"), "brand_new_reason"), Stop.MALFORMED),
        (tool_call_message("c", "refund_order", {"order_id": "A-17", "amount_cents": 1}), Stop.MALFORMED),
        ({"role": "assistant", "content": 7, "tool_calls": "x"}, Stop.MALFORMED),
    ],
)
@pytest.mark.parametrize("name", ["chain", "parallel", "evaluator"])
def test_a_letter_that_was_not_written_is_no_answer_and_the_receipt_is_kept(
    name: str, reply: Any, stop: Stop
) -> None:
    run = {"chain": run_chain, "parallel": run_parallel, "evaluator": run_evaluator}[name]
    tools, effects = make_environment()
    outcome = run(Replies([reply]), tools, refund_gate, Meter())
    assert (outcome.stop, outcome.answer) == (stop, None)
    assert outcome.seen is not None and outcome.seen.content == RECEIPT and effects == [RECEIPT]


def test_the_meter_keeps_the_receipt_when_the_model_crashes_after_the_refund() -> None:
    class Down:
        def chat(self, messages: Any) -> Any:
            raise OSError("provider down")

    (tools, effects), meter = make_environment(), Meter()
    with pytest.raises(OSError, match="provider down"):
        run_chain(Down(), tools, refund_gate, meter)
    assert effects == [RECEIPT] and meter.record[-1].content == RECEIPT


@pytest.mark.parametrize("crash", [TypeError("bug"), KeyboardInterrupt()])
def test_a_handler_that_is_cut_off_leaves_an_unknown_observation_and_the_error_goes_on(
    crash: BaseException,
) -> None:
    def broken(order_id: str) -> Any:
        raise crash

    (tools, effects), meter = desk_without("lookup_order", broken), Meter()
    with pytest.raises(type(crash)):
        run_chain(Replies([LETTER]), tools, refund_gate, meter)
    assert [seen.kind for seen in meter.record] == ["unknown"] and effects == []


# --- ceilings ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("most", range(6))
def test_no_pattern_makes_more_model_calls_than_its_meter_allows(name: str, most: int) -> None:
    tools, _ = make_environment()
    meter = Meter(Limits(max_turns=most))
    outcome = PATTERNS[name][0](tools, refund_gate, meter)
    needed = PATTERNS[name][1][0]
    assert meter.model_calls == min(most, needed)
    assert (outcome.stop is Stop.STEP_LIMIT) == (most < needed)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_prompt_above_the_ceiling_is_not_sent(name: str) -> None:
    tools, _ = make_environment()
    meter = Meter(Limits(max_prompt_tokens=20))
    assert PATTERNS[name][0](tools, refund_gate, meter).stop is Stop.TOKEN_LIMIT
    assert meter.model_calls == meter.prompt_tokens == 0


@given(
    st.lists(st.sampled_from([VAGUE, LETTER, "", "4999"]), max_size=8), st.integers(0, 8), st.integers(0, 8)
)
def test_whatever_is_drafted_the_evaluator_pays_once_and_accepts_only_what_its_criterion_accepts(
    drafts: list[str], rounds: int, turns: int
) -> None:
    (tools, effects), meter = make_environment(), Meter(Limits(max_turns=turns))
    outcome = run_evaluator(Replies(drafts), tools, refund_gate, meter, max_rounds=rounds)
    assert effects == [RECEIPT] and meter.model_calls <= min(rounds, turns)
    assert (outcome.stop is Stop.GOAL_MET) == states_amount(outcome.answer or "", RECEIPT)


# --- the router --------------------------------------------------------------------------------------
def test_a_policy_question_costs_one_model_call_and_one_read_and_moves_no_money() -> None:
    (tools, effects), meter = make_environment(), Meter()
    question = "What is your refund policy for damaged orders?"
    outcome = run_router(question, Replies(["policy"]), tools, refund_gate, meter)
    assert (meter.model_calls, meter.tool_calls, effects) == (1, 1, [])
    assert outcome.answer is not None and outcome.answer.startswith("Our policy: Damaged orders")
    assert outcome.note == "routed to policy"


@given(st.text(max_size=40))
def test_only_a_reply_that_is_the_label_itself_reaches_the_branch_that_pays(text: str) -> None:
    tools, effects = make_environment()
    outcome = run_router(TASK, Replies([text, LETTER]), tools, refund_gate, Meter())
    pays = text.strip().strip("'\".!`*").casefold() == "billing"
    assert (effects == [RECEIPT]) == pays and (effects == []) == (not pays)
    assert outcome.stop in (Stop.ANSWERED, Stop.MALFORMED)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("billing", "billing"),
        (" Billing.\n", "billing"),
        ("'policy'", "policy"),
        ("**policy**", "policy"),
        ("not billing", None),
        ("billing or policy", None),
        ("billingpolicy", None),
        ("", None),
        ("refund", None),
    ],
)
def test_a_label_is_read_exactly_or_not_at_all(text: str, label: str | None) -> None:
    assert read_label(text, ["billing", "policy"]) == label


def test_a_route_that_nobody_wrote_runs_no_branch_and_says_what_was_said() -> None:
    ran: list[str] = []
    branches = {"a": lambda: ran.append("a") or Outcome(Stop.ANSWERED)}
    outcome = route("?", branches, Replies(["b"]), Meter())  # type: ignore[arg-type]
    assert (outcome.stop, outcome.note, ran) == (Stop.MALFORMED, "no route for 'b'", [])


# --- the fan-out ---------------------------------------------------------------------------------------
def reads(*handlers: Callable[[], Any]) -> tuple[list[ToolCall], dict[str, ToolSpec]]:
    tools = {f"read_{n}": ToolSpec("Read.", {}, handler) for n, handler in enumerate(handlers)}
    return [ToolCall(f"p{n}", name, {}) for n, name in enumerate(tools)], tools


def test_reads_overlap_they_meet_at_a_barrier_that_opens_only_for_all_of_them() -> None:
    barrier = Barrier(5, timeout=30)
    calls, tools = reads(*[lambda: barrier.wait() >= 0] * 5)
    assert [seen.content for seen in fan_out(calls, tools, allow_all, Meter())] == [True] * 5


def test_both_reads_of_run_parallel_overlap() -> None:
    barrier = Barrier(2, timeout=30)
    tools, effects = make_environment()
    lookup, policy = tools["lookup_order"].handler, tools["read_policy"].handler
    met = {
        **tools,
        "lookup_order": ToolSpec("Read.", {"order_id": str}, lambda **a: barrier.wait() * 0 or lookup(**a)),
        "read_policy": ToolSpec("Read.", {}, lambda: barrier.wait() * 0 or policy()),
    }
    assert run_parallel(Replies([LETTER]), met, refund_gate, Meter()).stop is Stop.ANSWERED
    assert effects == [RECEIPT]


def test_results_come_back_in_the_order_of_proposal_when_reads_finish_in_reverse() -> None:
    gates = [Event() for _ in range(4)]
    gates[3].set()

    def reader(n: int) -> Callable[[], int]:
        def read() -> int:
            gates[n].wait(timeout=30)
            gates[n - 1].set()
            return n

        return read

    calls, tools = reads(*[reader(n) for n in range(4)])
    meter = Meter()
    seen = fan_out(calls, tools, allow_all, meter)
    assert [(o.call_id, o.content) for o in seen] == [("p0", 0), ("p1", 1), ("p2", 2), ("p3", 3)]
    assert meter.record == seen


@pytest.mark.parametrize("name", ["pay.out", "pay_out"])
def test_an_effectful_tool_is_never_fanned_out_under_either_of_its_names(name: str) -> None:
    ran: list[str] = []
    tools = Registry(
        {
            "look": ToolSpec("Read.", {}, lambda: ran.append("look")),
            "pay.out": ToolSpec("Pay.", {}, lambda: ran.append("pay"), effectful=True),
        }
    )
    meter = Meter()
    with pytest.raises(ValueError, match=r"pay\.out changes the world"):
        fan_out([ToolCall("p1", "look", {}), ToolCall("p2", name, {})], tools, allow_all, meter)
    assert ran == [] and meter.tool_calls == 0


def test_the_gate_judges_one_call_after_the_other_before_any_runs_and_each_once() -> None:
    trail: list[str] = []
    calls, tools = reads(*[lambda: trail.append("ran")] * 3)

    def gate(call: ToolCall) -> Decision:
        trail.append(call.call_id)
        return Decision("deny" if call.call_id == "p1" else "allow", "said")

    seen = fan_out(calls, tools, gate, Meter())
    assert trail == ["p0", "p1", "p2", "ran", "ran"]
    assert [o.kind for o in seen] == ["result", "denied", "result"]


def test_a_fan_out_gives_each_call_its_own_kind_of_observation() -> None:
    def absent() -> Any:
        raise KeyError("gone")

    calls, tools = reads(lambda: 1, absent)
    calls += [
        ToolCall("p2", "invented", {}),
        ToolCall("p3", "read_0", {"extra": 1}),
        ToolCall("p4", "read_0", None),
    ]
    seen = fan_out(calls, tools, allow_all, Meter())
    assert [o.kind for o in seen] == ["result", "error", "invalid", "invalid", "invalid"]
    assert fan_out([], tools, allow_all, Meter()) == []


def test_a_read_that_crashes_leaves_the_others_results_on_the_record_in_order() -> None:
    def broken() -> Any:
        raise TypeError("bug")

    calls, tools = reads(lambda: 0, broken, lambda: 2)
    meter = Meter()
    with pytest.raises(TypeError, match="bug"):
        fan_out(calls, tools, allow_all, meter)
    assert [(o.call_id, o.kind) for o in meter.record] == [
        ("p0", "result"),
        ("p1", "unknown"),
        ("p2", "result"),
    ]


def test_overlap_waits_for_all_and_raises_the_first_error_in_order() -> None:
    ran: list[int] = []

    def job(n: int) -> Callable[[], int]:
        def run() -> int:
            ran.append(n)
            if n in (1, 2):
                raise LookupError(n)
            return n

        return run

    with pytest.raises(LookupError, match="1"):
        overlap([job(n) for n in range(4)])
    assert sorted(ran) == [0, 1, 2, 3]


# --- the evaluator's criterion ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "passes"),
    [(LETTER, True), ("4999", True), ("49990", False), ("14999", False), ("4 999", False), ("", False)],
)
def test_the_amount_counts_only_as_a_number_of_its_own(text: str, passes: bool) -> None:
    assert states_amount(text, RECEIPT) is passes


def test_only_true_accepts_a_draft() -> None:
    tools, _ = make_environment()
    outcome = run_evaluator(Replies([LETTER]), tools, refund_gate, Meter(), 1, accept=lambda *_: "yes")  # type: ignore[arg-type, return-value]
    assert outcome.stop is Stop.GOAL_UNMET


# --- the agent and the orchestrator ------------------------------------------------------------------------
def test_the_agent_pattern_is_the_kernel_itself() -> None:
    tools, effects = make_environment()
    result = run_agent(TASK, overreaching_model(), tools, refund_gate)
    (again, effects_again), meter = make_environment(), Meter()
    outcome = run_adaptive(TASK, overreaching_model(), again, refund_gate, meter)
    assert (outcome.stop, outcome.answer, effects_again) == (result.stop, result.answer, effects)
    assert meter.record == result.state.observations
    assert meter.prompt_tokens == sum(result.state.prompt_token_log)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("[]", None),
        ('["a", "b", "c", "d"]', None),
        ('["a", 7]', None),
        ('["a", ""]', None),
        ('{"a": 1}', None),
        ("a, b", None),
        ("[" * 10_000, None),
    ],
)
def test_a_split_is_a_short_list_of_questions_or_nothing(text: str, parts: list[str] | None) -> None:
    assert read_parts(text, 3) == parts


def test_workers_see_their_own_part_only_and_cannot_pay() -> None:
    prompts: dict[str, str] = {}

    def worker(part: str) -> Any:
        script = ScriptedModel(
            [
                tool_call_message("c1", "lookup_order", {"order_id": "A-17"}),
                tool_call_message("c2", "refund_order", {"order_id": "A-17", "amount_cents": 4999}),
                answer_message(f"report on {part}"),
            ]
        )

        class Watched:
            def chat(self, messages: Any) -> Any:
                prompts[part] = json.dumps(messages)
                return script.chat(messages)

        return Watched()

    (tools, effects), meter = make_environment(), Meter(Limits(max_turns=20))
    model = Replies(['["part one", "part two"]', "joined"])
    outcome = run_orchestrator(TASK, model, worker, tools, allow_all, meter)
    assert (outcome.stop, outcome.answer, effects) == (Stop.ANSWERED, "joined", [])
    assert "part two" not in prompts["part one"] and TASK not in prompts["part one"]
    assert [seen.kind for seen in meter.record] == ["result", "invalid"] * 2
    assert meter.model_calls == 8


def test_a_worker_that_fails_is_reported_to_the_join_with_its_ending() -> None:
    asked: list[str] = []

    class Boss:
        def chat(self, messages: Any) -> Any:
            asked.append(messages[0]["content"])
            return answer_message('["one"]' if len(asked) == 1 else "joined")

    tools, _ = make_environment()
    wander = [tool_call_message(f"c{n}", "read_policy", {}) for n in range(9)]
    meter = Meter(Limits(max_turns=20))
    run_orchestrator(TASK, Boss(), lambda part: ScriptedModel(wander), tools, allow_all, meter, turns_each=3)
    assert '"ending": "step_limit", "answer": null' in asked[1] and meter.model_calls == 5


@given(st.integers(0, 6))
def test_workers_and_join_stay_within_the_meters_ceiling(most: int) -> None:
    tools, _ = make_environment()
    wander = [tool_call_message(f"c{n}", "read_policy", {}) for n in range(9)]
    meter = Meter(Limits(max_turns=most))
    run_orchestrator(
        TASK, Replies(['["a", "b"]', "x"]), lambda part: ScriptedModel(wander), tools, allow_all, meter
    )
    assert meter.model_calls == most


def test_reads_of_drops_every_effectful_tool() -> None:
    tools, _ = make_environment()
    assert list(reads_of(tools)) == ["lookup_order", "read_policy"]


# --- the set of patterns is open ---------------------------------------------------------------------------
def test_a_sixth_pattern_is_written_from_the_same_parts_and_leaves_the_others_as_they_were() -> None:
    before = dict(vars(patterns))

    def run_cascade(models: list[Any], tools: Any, gate: Gate, meter: Meter) -> Outcome:
        order = meter.execute(ToolCall("k1", "lookup_order", {"order_id": "A-17"}), tools, gate)
        receipt = refund_paid(order, tools, gate, meter, "k2")
        for model in models:
            _, text = ask(model, f"Cite {json.dumps(receipt.content)}", meter)
            if text and states_amount(text, receipt.content):
                return Outcome(Stop.GOAL_MET, text, receipt)
        return Outcome(Stop.GOAL_UNMET, None, receipt)

    (tools, effects), meter = make_environment(), Meter()
    outcome = run_cascade([Replies([VAGUE]), Replies([LETTER])], tools, refund_gate, meter)
    assert (outcome.stop, effects, meter.model_calls) == (Stop.GOAL_MET, [RECEIPT], 2)
    assert dict(vars(patterns)) == before


def test_a_refund_in_a_pattern_passes_the_gate_like_any_other_call() -> None:
    (tools, effects), meter = make_environment(), Meter()
    assert meter.execute(refund_call("A-17", 9999, "x"), tools, refund_gate).kind == "denied"
    assert effects == [] and meter.tool_calls == 1


def test_replies_are_given_in_order_and_then_nothing_more_is_said() -> None:
    model = Replies(["one", answer_message("two")])
    said = [model.chat([{"role": "user", "content": "?"}]) for _ in range(3)]
    assert [message["content"] for message in said if isinstance(message, dict)][:2] == ["one", "two"]
    assert len(said) == 3 and said[2] == answer_message("I have nothing further to add.")
