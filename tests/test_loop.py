"""The kernel on the support desk: what each part promises, with the book's own values."""

from __future__ import annotations

import ast
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkit import loop
from agentkit.loop import (
    EXPECTED_ERRORS,
    SYSTEM_PROMPT,
    Decision,
    Limits,
    Observation,
    RunCrash,
    RunState,
    Stop,
    Transcript,
    allow_all,
    decide,
    estimate_cost,
    estimate_tokens,
    execute_call,
    minimal_agent,
    print_transcript,
    resume_agent,
    run_agent,
    run_tool,
    sequence_diagram,
)
from agentkit.tools import ToolCall, ToolSpec, make_environment, safe_calculate
from agentkit.wire import Reply, ScriptedModel, Usage, answer_message, check_messages, tool_call_message

TASK = "Order A-17 arrived damaged. Please make this right."


def happy_script() -> ScriptedModel:
    return ScriptedModel(
        turns=[
            tool_call_message("call_1", "lookup_order", {"order_id": "A-17"}),
            tool_call_message("call_2", "refund_order", {"order_id": "A-17", "amount_cents": 4999}),
            answer_message("I refunded the 4999 cents you paid for order A-17."),
        ]
    )


@pytest.fixture
def desk() -> tuple[Any, list[dict[str, Any]]]:
    return make_environment()


# One call across the boundary


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            ToolCall("c1", "lookup_order", {"order_id": "A-17"}),
            Observation("c1", True, "result", {"order_id": "A-17", "status": "damaged", "paid_cents": 4999}),
        ),
        (
            ToolCall("c2", "lookup_order", {"order_id": "Z-99"}),
            Observation("c2", False, "error", "no such order: Z-99"),
        ),
        (
            ToolCall("c3", "delete_database", {}),
            Observation(
                "c3",
                False,
                "invalid",
                "unknown tool: delete_database. Available: lookup_order, read_policy, refund_order",
            ),
        ),
    ],
)
def test_the_three_probes_come_back_as_result_error_and_invalid(desk, call, expected):
    assert execute_call(call, desk[0], allow_all) == expected


def test_the_gate_is_not_asked_about_a_call_that_breaks_its_contract(desk):
    asked = []
    execute_call(ToolCall("c1", "refund_order", {"order_id": "A-17"}), desk[0], asked.append)
    assert asked == []


@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_a_call_that_is_not_allowed_leaves_no_effect(desk, verdict):
    tools, effects = desk
    call = ToolCall("c1", "refund_order", {"order_id": "A-17", "amount_cents": 4999})
    observation = execute_call(call, tools, lambda call: Decision(verdict, "because"))
    assert observation == Observation("c1", False, {"deny": "denied", "ask": "pending"}[verdict], "because")
    assert effects == []


def tool(handler: Callable[..., Any]) -> dict[str, ToolSpec]:
    return {"t": ToolSpec("A tool.", {}, handler)}


def observe(handler: Callable[..., Any]) -> Observation:
    return execute_call(ToolCall("c", "t", {}), tool(handler), allow_all)


@pytest.mark.parametrize("error", [kind("so it is") for kind in EXPECTED_ERRORS])
def test_an_expected_error_is_an_observation_in_the_errors_own_words(error):
    def handler() -> None:
        raise error

    assert observe(handler) == Observation("c", False, "error", "so it is")


def test_an_error_without_words_is_named():
    def handler() -> None:
        raise TimeoutError

    assert observe(handler).content == "TimeoutError"


@pytest.mark.parametrize(
    "error", [AssertionError("x"), TypeError("x"), RuntimeError("x"), ZeroDivisionError("x")]
)
def test_any_other_error_passes_through_execute_call(error):
    def handler() -> None:
        raise error

    with pytest.raises(type(error)):
        observe(handler)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "result",
    [{1, 2}, float("nan"), {"x": float("inf")}, b"bytes", object(), CYCLE, DEEP, {(1, 2): 3}],
    ids=["set", "nan", "inf", "bytes", "object", "cycle", "deep", "tuple key"],
)
def test_a_result_that_is_no_json_is_an_error_that_says_the_tool_ran(result):
    observation = observe(lambda: result)
    assert (observation.ok, observation.kind) == (False, "error")
    assert observation.content.startswith("the tool ran, but its result is not JSON")


class Locked(dict):
    def items(self) -> Any:
        raise KeyError("locked")


class Speechless(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("result", [{1: 2, "1": 3}, [{"a": {True: 1, "true": 2}}], {None: 1, "null": 1}])
def test_a_result_with_two_members_of_one_name_is_an_error_and_loses_neither_silently(result):
    observation = observe(lambda: result)
    assert observation.kind == "error"
    assert "occurs twice in one object" in observation.content


def test_a_result_that_cannot_be_read_is_an_error():
    assert observe(lambda: Locked(a=1)).content == "the tool ran, but its result is not JSON: locked"


@pytest.mark.parametrize("error", [Speechless("x"), KeyError(Speechless("x"))])
def test_an_error_that_cannot_say_what_it_is_is_named(error):
    def handler() -> None:
        raise error

    assert observe(handler) == Observation("c", False, "error", type(error).__name__)


@pytest.mark.parametrize("result", [None, True, 0, 1.5, "", "text", [], {}, {"a": [1, {"b": None}]}])
def test_json_results_come_back_as_they_are(result):
    assert observe(lambda: result) == Observation("c", True, "result", result)


def test_an_observation_is_a_snapshot_that_later_changes_do_not_reach():
    shared = {"items": [1]}
    observation = observe(lambda: shared)
    shared["items"].append(2)
    assert observation.content == {"items": [1]}


@pytest.mark.parametrize(
    ("result", "start"),
    [
        ("x" * 50, "x" * 20 + " "),
        (["ab"] * 10, '["ab", "ab", "ab", "'),
        ({"k": "v" * 40}, '{"k": "vvvvvvvvvvvvv '),
    ],
)
def test_a_long_result_is_cut_with_a_mark_and_the_message_around_it_stays_json(result, start):
    state = run_agent(
        "Go.",
        ScriptedModel([tool_call_message("c", "t", {})]),
        tool(lambda: result),
        allow_all,
        Limits(max_result_chars=20),
    ).state
    content = json.loads(state.messages[-2]["content"])["content"]
    whole = result if isinstance(result, str) else json.dumps(result)
    assert content.startswith(start)
    assert content.endswith(f"[cut: 20 of {len(whole)} characters]")
    assert state.observations[0].content == content


def test_a_result_of_exactly_the_allowed_length_is_not_cut():
    script = ScriptedModel([tool_call_message("c", "t", {})])
    state = run_agent("Go.", script, tool(lambda: "x" * 20), allow_all, Limits(max_result_chars=20)).state
    assert state.observations[0].content == "x" * 20


def test_decide_keeps_the_gates_own_decision():
    wait = Decision("ask", "a person decides")
    assert decide(lambda call: wait, ToolCall("c", "t", {})) is wait


def raise_amount(call: ToolCall) -> bool:
    call.arguments["amount_cents"] = 5000
    return True


def add_argument(call: ToolCall) -> Decision:
    call.arguments["note"] = "by the gate"
    return Decision("allow", "fine")


def ask_about_less(call: ToolCall) -> Decision:
    call.arguments["amount_cents"] -= 1
    return Decision("ask", "a person decides")


def make_it_true(call: ToolCall) -> bool:
    call.arguments["amount_cents"] = True  # equal to 1 in Python, another value in JSON
    return True


@pytest.mark.parametrize("gate", [raise_amount, add_argument, ask_about_less, make_it_true])
def test_a_gate_that_changes_the_arguments_denies_and_nothing_runs(desk, gate):
    tools, effects = desk
    observation = execute_call(
        ToolCall("c", "refund_order", {"order_id": "A-17", "amount_cents": 1}), tools, gate
    )
    assert observation.kind == "denied"
    assert "changed the arguments" in observation.content
    assert effects == []


def test_a_gate_that_changes_a_value_inside_an_argument_denies_too():
    ran = []
    tools = {
        "mail": ToolSpec("Mail.", {"type": "object", "properties": {"to": {"type": "array"}}}, ran.append)
    }

    def copy_to_boss(call: ToolCall) -> bool:
        call.arguments["to"].append("boss")
        return True

    assert execute_call(ToolCall("c", "mail", {"to": ["ada"]}), tools, copy_to_boss).kind == "denied"
    assert ran == []


# A run


def test_three_turns_two_calls_one_receipt_answered(desk):
    tools, effects = desk
    result = run_agent(TASK, happy_script(), tools, allow_all)
    assert (result.stop, result.state.turns) == (Stop.ANSWERED, 3)
    assert result.answer == "I refunded the 4999 cents you paid for order A-17."
    assert effects == [{"order_id": "A-17", "refunded_cents": 4999}]
    assert [o.kind for o in result.state.observations] == ["result", "result"]
    assert check_messages(result.state.messages) == []


def test_two_turns_are_too_few_for_the_answer_but_not_for_the_refund(desk):
    tools, effects = desk
    result = run_agent(TASK, happy_script(), tools, allow_all, Limits(max_turns=2))
    assert (result.stop, result.answer, result.state.turns) == (Stop.STEP_LIMIT, None, 2)
    assert effects == [{"order_id": "A-17", "refunded_cents": 4999}]


def wanderer() -> ScriptedModel:
    again = tool_call_message("call_w", "lookup_order", {"order_id": "A-17"})
    return ScriptedModel(turns=[again], reactions={"order_id": again})


def test_the_published_prompt_sizes_come_out(desk):
    limits = Limits(max_turns=40, max_prompt_tokens=1200)
    result = run_agent("Investigate order A-17.", wanderer(), desk[0], allow_all, limits)
    assert (result.stop, result.state.turns) == (Stop.TOKEN_LIMIT, 14)
    log = result.state.prompt_token_log
    assert (log[:6], log[-2:]) == ([54, 142, 229, 317, 404, 492], [1104, 1192])
    assert len(SYSTEM_PROMPT) in (131, 132)
    assert SYSTEM_PROMPT.isascii()


def test_the_prompt_log_agrees_with_the_estimate_of_what_was_sent(desk):
    sent = []

    class Spy(ScriptedModel):
        def chat(self, messages: list[dict[str, Any]]) -> Any:
            sent.append(estimate_tokens(messages))
            return super().chat(messages)

    state = run_agent(TASK, Spy(happy_script().turns), desk[0], allow_all).state
    assert state.prompt_token_log == sent


# Guards


def test_guards_look_before_every_call_and_before_the_limits(desk):
    looks = []

    def guard(state: RunState) -> None:
        looks.append((state.turns, len(state.observations)))

    run_agent(TASK, happy_script(), desk[0], allow_all, guards=[guard])
    assert looks == [(0, 0), (1, 1), (2, 2)]


def test_a_guards_ending_is_the_runs_ending_and_no_further_call_is_made(desk):
    tools, effects = desk
    paid = run_agent(
        TASK, happy_script(), tools, allow_all, guards=[lambda _: Stop.GOAL_MET if effects else None]
    )
    assert (paid.stop, paid.state.turns, paid.answer) == (Stop.GOAL_MET, 2, None)


def test_a_guard_goes_before_the_step_limit(desk):
    result = run_agent(
        TASK, happy_script(), desk[0], allow_all, Limits(max_turns=0), [lambda _: Stop.DEADLINE]
    )
    assert result.stop is Stop.DEADLINE


def test_a_guard_that_returns_no_stop_is_a_crash_and_not_a_silent_pass(desk):
    with pytest.raises(RunCrash, match="ValueError"):
        run_agent(TASK, happy_script(), desk[0], allow_all, guards=[lambda _: True])


# State


def test_a_run_saved_after_its_first_turn_ends_alike_on_another_machine(desk):
    whole = run_agent(TASK, happy_script(), desk[0], allow_all)

    tools, effects = make_environment()
    paused = run_agent(TASK, happy_script(), tools, allow_all, Limits(max_turns=1))
    saved = paused.state.to_json()
    resumed = resume_agent(RunState.from_json(saved), happy_script(), tools, allow_all)
    assert (resumed.stop, resumed.answer) == (whole.stop, whole.answer)
    assert resumed.state == whole.state
    assert effects == [{"order_id": "A-17", "refunded_cents": 4999}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"messages": [5], "observations": [], "usage_log": []}',
        '{"messages": []}',
        '{"observations": [], "usage_log": [1]}',
        "\x00",
        "[" * 100_000,
    ],
)
def test_what_is_no_saved_run_is_refused_with_the_way_out(text):
    with pytest.raises(ValueError, match=r"RunState\.to_json"):
        RunState.from_json(text)


def test_a_saved_state_is_one_line_of_plain_json(desk):
    state = run_agent(TASK, happy_script(), desk[0], allow_all).state
    assert json.loads(state.to_json())["observations"][0]["call_id"] == "call_1"


def test_more_turns_take_up_a_run_that_ran_out_of_them(desk):
    short = run_agent(TASK, happy_script(), desk[0], allow_all, Limits(max_turns=2))
    longer = resume_agent(short.state, happy_script(), desk[0], allow_all, Limits(max_turns=3))
    assert (longer.stop, longer.state.turns) == (Stop.ANSWERED, 3)


def test_a_run_without_progress_goes_on_only_when_the_limit_is_raised(desk):
    model = wanderer()
    stuck = run_agent(TASK, model, desk[0], lambda call: False)
    assert stuck.stop is Stop.ANSWERED  # the script gives up; the next one does not

    insist = tool_call_message("call_s", "refund_order", {"order_id": "A-17", "amount_cents": 9999})
    stubborn = ScriptedModel(turns=[insist], reactions={"denied": insist})

    def deny(call: ToolCall) -> tuple[bool, str]:
        return False, "denied: too much"

    ended = run_agent(TASK, stubborn, desk[0], deny)
    assert (ended.stop, ended.state.turns) == (Stop.NO_PROGRESS, 2)
    assert resume_agent(ended.state, stubborn, desk[0], deny).state.turns == 2
    assert resume_agent(ended.state, stubborn, desk[0], deny, Limits(repeated_denials=3)).state.turns == 3


def test_a_crash_crosses_processes_with_its_state(desk):
    crash = RunCrash("RuntimeError in turn 1", RunState([{"role": "user", "content": "x"}]))
    copy = pickle.loads(pickle.dumps(crash))
    assert (str(copy), copy.state) == (str(crash), crash.state)


# Views


def test_the_transcript_prints_one_line_for_each_text_and_call(desk, capsys):
    print_transcript(run_agent(TASK, happy_script(), desk[0], allow_all).state)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"user   | {TASK}"
    assert lines[2] == 'model  | -> lookup_order {"order_id": "A-17"}'
    assert lines[3].startswith('tool   | {"ok": true, "kind": "result"')
    assert len(lines) == 7


def test_a_lone_surrogate_is_spelled_out_for_the_eye(capsys):
    print_transcript(RunState([{"role": "user", "content": "a\ud800b"}]))
    assert capsys.readouterr().out == "user   | a\\ud800b\n"


def test_a_thought_and_its_call_stand_on_two_lines():
    state = RunState([tool_call_message("c", "t", {}, thought="I look first.")])
    assert str(Transcript(state)) == "model  | I look first.\nmodel  | -> t {}"


def test_the_html_view_escapes_what_models_and_tools_write():
    state = RunState([{"role": "user", "content": "<script>alert(1)</script>"}, answer_message("a & b")])
    page = Transcript(state)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; b" in page


WHOLE = [
    {"role": "user", "content": "Go."},
    tool_call_message("a", "t", {}, "I look."),
    {"role": "tool", "tool_call_id": "a", "content": '{"ok": true, "kind": "result", "content": 1}'},
]


@pytest.mark.parametrize(
    ("messages", "line"),
    [
        ([], ""),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            "user   | ab",
        ),
        ([{"role": "user", "content": [{"type": "image"}]}], "user   | [{'type': 'image'}]"),
        ([{"role": "user", "content": None}], "user   | "),
        ([{"role": "user"}], "user   | "),
        ([{"role": "developer", "content": "x"}], "developer | x"),
        ([{"role": "<b>", "content": "x"}], "<b>    | x"),
        (
            [{"role": "assistant", "content": "x", "tool_calls": [5]}],
            "model  | -> unnamed <a tool call must hold a function, got null>",
        ),
        ([{"content": "x"}], "None   | x"),
        (WHOLE[2:], 'tool   | {"ok": true, "kind": "result", "content": 1}'),
        ([{"role": "tool", "content": [{"type": "text", "text": "x"}]}], "tool   | x"),
        ([{"role": "tool", "content": "[" * 100_000}], "tool   | " + "[" * 100_000),
    ],
)
def test_the_views_show_any_transcript(messages, line):
    state = RunState(messages)
    assert str(Transcript(state)).splitlines()[-1:] == [line][: len(messages)]
    assert "<b><b>" not in Transcript(state)._repr_html_()
    assert sequence_diagram(state).startswith("sequenceDiagram\n")


def test_the_diagram_is_drawn_from_the_transcript_also_when_it_was_cut():
    state = RunState(WHOLE, [Observation("old", False, "denied", "no"), Observation("a", True, "result", 1)])
    assert "T-->>L: result" in sequence_diagram(state)
    assert "denied" not in sequence_diagram(state)


def test_the_diagram_shows_how_far_each_call_came(desk):
    tools, _ = desk
    script = ScriptedModel(
        [
            tool_call_message("a", "nobody", {}),
            tool_call_message("b", "read_policy", {}),
            tool_call_message("c", "refund_order", {"order_id": "A-17", "amount_cents": 1}),
        ]
    )
    state = run_agent(TASK, script, tools, lambda call: (call.name == "read_policy", "no")).state
    source = sequence_diagram(state)
    assert source.startswith("sequenceDiagram\n")
    assert source.count("L->>T: ") == 1
    assert source.count("G-->>L: denied") == 1
    assert source.count("G-->>L: invalid") == 1


def test_the_diagram_shows_that_a_call_behind_one_that_waits_was_not_judged(desk):
    asked = tool_call_message("a", "read_policy", {})
    asked["tool_calls"] += tool_call_message("b", "lookup_order", {"order_id": "A-17"})["tool_calls"]
    state = run_agent(TASK, ScriptedModel([asked]), desk[0], lambda call: Decision("ask", "wait")).state
    source = sequence_diagram(state)
    assert source.count("G-->>L: pending") == 1
    assert "L->>G: lookup_order" not in source
    assert "Note over L: lookup_order not run" in source


def test_the_diagram_draws_no_further_than_is_known_of_a_call_that_was_cut_off(desk):
    def interrupted(call: ToolCall) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        run_agent(TASK, happy_script(), desk[0], interrupted)
    source = sequence_diagram(caught.value.state)
    assert "Note over L: lookup_order cut off" in source
    assert "->>T" not in source


@pytest.mark.parametrize("text", ["a;b", "# x", "`$$`", "<b>", "x\ny", "", "%%{init}%%", "\u202e\U0001f600"])
def test_the_diagram_spells_mermaids_own_signs_as_entities(text):
    source = sequence_diagram(RunState([{"role": "user", "content": text}]))
    assert len(source.splitlines()) == 6
    last = source.splitlines()[-1].removeprefix("  L->>M: user:")
    assert not set("`$<>%;#") & set(re.sub(r"#\d+;|<br/>", "", last))


def test_mermaid_draws_the_diagram_of_a_run(desk):
    diagram = pytest.importorskip("bookkit.diagram")
    state = run_agent("Say <hi>; #1 `x` $$y$$", happy_script(), desk[0], allow_all).state
    assert "lookup_order" in diagram.draw(sequence_diagram(state), "fig-test")


# The forty-line loop


class Client:
    """A client as the forty lines expect one: a script behind `chat(model, messages, tools)`."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = [*replies]
        self.calls = 0

    def chat(self, *, model: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Reply:
        self.calls += 1
        return self.replies.pop(0)


IMPLS = {
    "get_time": lambda: {"now": "2026-03-01T12:00:00+00:00"},
    "calculate": lambda expression: {"result": safe_calculate(expression)},
}


def test_the_forty_lines_tell_the_time_and_calculate_403(capsys):
    client = Client(
        Reply(tool_call_message("c1", "get_time", {})),
        Reply(tool_call_message("c2", "calculate", {"expression": "17 * 23 + sqrt(144)"})),
        Reply(answer_message("It is noon, and the result is 403.")),
    )
    answer = minimal_agent("What time is it, and what is 17 * 23 + sqrt(144)?", [], IMPLS, client, "scripted")
    assert answer == "It is noon, and the result is 403."
    assert safe_calculate("17 * 23 + sqrt(144)") == 403
    assert capsys.readouterr().out.splitlines() == [
        "  step 0: calling get_time({})",
        "  step 1: calling calculate({'expression': '17 * 23 + sqrt(144)'})",
    ]


def test_the_forty_lines_stop_at_their_step_limit():
    client = Client(*[Reply(tool_call_message("c", "get_time", {}))] * 3)
    assert (
        minimal_agent("Loop.", [], IMPLS, client, "scripted", max_steps=3) == "Stopped: step limit reached."
    )


def test_the_forty_lines_pay_for_the_call_that_breaks_their_budget():
    dear = Usage(prompt_tokens=60_000)
    client = Client(*[Reply(tool_call_message("c", "get_time", {}), "tool_use", dear)] * 3)
    answer = minimal_agent("Loop.", [], IMPLS, client, "scripted", max_cost_usd=0.50)
    assert answer == "Stopped: cost limit reached."
    assert client.calls == 3
    assert 3 * estimate_cost(dear) > 0.50


def test_a_reply_costs_what_its_usage_says():
    assert estimate_cost(None) == 0.0
    assert estimate_cost(Usage(1_000_000, 1_000_000)) == 18.0


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("calculate", {"expression": "2 + 2"}, {"result": 4}),
        ("nobody", {}, {"error": "unknown tool nobody"}),
    ],
)
def test_run_tool_answers_or_says_why_not(name, arguments, result):
    assert run_tool(name, arguments, IMPLS) == result


def test_run_tool_turns_even_a_bug_into_a_polite_result():
    assert "error" in run_tool("calculate", {"typo": "2 + 2"}, IMPLS)


# The module


def test_importing_the_kernel_loads_neither_network_nor_asyncio():
    code = "import sys, agentkit.loop; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"httpx", "asyncio", "socket", "ssl"} & {*modules}


def test_the_loop_fits_a_screen_and_no_function_is_long():
    tree = ast.parse(Path(loop.__file__).read_text(encoding="utf-8"))
    sizes = [
        node.end_lineno - node.lineno + 1 for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    assert max(sizes) <= 60
    assert sorted(sizes)[len(sizes) // 2] < 12
