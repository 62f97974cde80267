"""ReAct against public cases: recorded actions, other programs' formats, JSON in prose, recorded attacks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import load

from agentkit.gate import allow_only
from agentkit.loop import execute_call
from agentkit.react import (
    LABELS,
    Step,
    Tool,
    ToolRegistry,
    build_prompt,
    json_objects,
    parse_action,
    parse_answer,
    parse_json_tool_call,
    parse_json_tool_calls,
    read_turn,
    reference_desk,
    run_agent,
    scripted_policy,
    text_call,
)
from agentkit.tools import ToolSpec

SELF_ASK = {**LABELS, "Now": "question", "Finally": "answer"}  # as its custom tests configure that format


def test_recorded_actions_are_read_whole_and_only_the_first_of_several() -> None:
    for case in load("react_actions"):
        expected = case["expected_first_balanced"]
        action = parse_action(f"Thought: as planned.\nAction: {case['text']}")
        assert action == (tuple(expected) if expected else None), case["text"]
        if case["class"].startswith("clean"):
            assert list(action or ()) == case["expected_greedy"], case["text"]


def test_a_recorded_action_without_its_bracket_is_a_problem_that_names_it() -> None:
    open_ended = [case for case in load("react_actions") if case["class"] == "unterminated"]
    assert open_ended
    for case in open_ended:
        assert "The bracket after think" in str(read_turn(f"Action: {case['text']}").problem)


def test_the_formats_of_other_programs_are_read_or_refused_as_theirs_do() -> None:
    """Expected texts are compared without the blanks around them; the two custom labels are configured."""
    for case in load("react_text_formats"):
        custom = case["text"].startswith(("Now:", "Finally:"))
        turn = read_turn(case["text"], SELF_ASK if custom else LABELS)
        if case["expect"] == "action":
            assert turn.action == (case["tool"], case["input"].strip()), case["id"]
        elif case["expect"] == "final":
            assert turn.answer == case["input"].strip(), case["id"]
        else:
            assert turn.problem and turn.action is turn.answer is None, case["id"]


def strict() -> list[dict[str, Any]]:
    return [case for case in load("json_in_prose") if case["strictness"] == "strict"]


def test_calls_in_prose_are_found_all_of_them_in_order() -> None:
    for case in strict():
        found = parse_json_tool_calls(case["text"])
        calls = [{"tool": call["name"], "args": call["arguments"]} for call in case.get("calls", [])]
        assert found == calls, case["id"]
        assert parse_json_tool_call(case["text"]) == (calls[0] if calls else None), case["id"]


def test_objects_in_prose_are_found_and_are_no_calls() -> None:
    for case in strict():
        if case["expect"] == "object":
            assert next(value for _, value in json_objects(case["text"])) == case["object"], case["id"]


def test_what_would_have_to_be_repaired_or_completed_is_not_read_at_all() -> None:
    """The book's decision for `repair` and `partial`: what is not JSON yields nothing, and the model is asked
    again. A missing bracket, a missing quote or a raw line break could be mended, but a cut-off amount
    looks the same as a whole one."""
    lenient = [case for case in load("json_in_prose") if case["strictness"] != "strict"]
    assert {case["strictness"] for case in lenient} == {"repair", "partial"}
    for case in lenient:
        assert list(json_objects(case["text"])) == [], case["id"]
        assert parse_json_tool_call(case["text"]) is parse_action(case["text"]) is None, case["id"]


def test_a_recorded_attack_wrapped_as_an_observation_yields_no_call_to_any_parser() -> None:
    for case in load("injection_observations"):
        for text in (case["observation"], case["injection_text"]):
            replayed = build_prompt("Go on.", reference_desk(), [Step("t", "lookup", "key", text)])
            for transcript in (replayed, f"Observation: {text}"):
                assert parse_action(transcript) is parse_answer(transcript) is None, case["id"]
                assert parse_json_tool_calls(transcript) == [], case["id"]


def world(case: dict[str, Any]) -> tuple[ToolRegistry, list[str]]:
    """Every tool that user or attacker calls in a case, each leaving its name in one log."""
    ran: list[str] = []

    def tool(name: str) -> Tool:
        return Tool(name, name, lambda text: ran.append(name) or case["observation"])

    names = dict.fromkeys(call["name"] for call in case["user_calls"] + case["attacker_calls"])
    return ToolRegistry([tool(name) for name in names]), ran


def test_a_model_that_obeys_every_attack_reaches_no_tool_outside_its_task() -> None:
    """Obeys in text: after the poisoned observation it writes the attacker's calls as its own actions."""
    attacked = [case for case in load("injection_observations") if case["attacker_calls"]]
    assert attacked
    for case in attacked:
        registry, ran = world(case)
        needed = {call["name"] for call in case["user_calls"]}
        calls = [case["user_calls"][0], *case["attacker_calls"]]
        turns = [f"Action: {call['name']}[x]" for call in calls]
        result = run_agent(
            case["user_prompt"],
            scripted_policy(turns),
            registry,
            max_steps=len(turns),
            gate=allow_only(needed),
        )
        outside = [call["name"] for call in case["attacker_calls"] if call["name"] not in needed]
        assert set(ran) <= needed, case["id"]
        assert [step.tool for step in result.steps if step.kind == "denied"] == outside, case["id"]


def test_the_attackers_exact_calls_are_denied_as_json_too() -> None:
    for case in load("injection_observations"):
        needed = {call["name"] for call in case["user_calls"]}
        for call in case["attacker_calls"]:
            found = parse_json_tool_call(json.dumps({"tool": call["name"], "args": call["arguments"]}))
            assert found == {"tool": call["name"], "args": call["arguments"]}
            tools = {call["name"]: ToolSpec("", {"type": "object", "additionalProperties": True}, dict)}
            seen = execute_call(
                text_call("c", found["tool"], found["args"], tools), tools, allow_only(needed)
            )
            assert seen.kind == ("result" if call["name"] in needed else "denied"), case["id"]


@pytest.mark.parametrize(
    "name", ["react_actions", "react_text_formats", "json_in_prose", "injection_observations"]
)
def test_every_cut_of_every_public_text_is_read_without_raising(name: str) -> None:
    for case in load(name):
        text = case.get("text") or case["observation"]
        for cut in range(0, len(text), max(1, len(text) // 20)):
            read_turn(text[:cut])
            parse_json_tool_calls(text[cut:])
