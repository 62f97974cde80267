"""The wire: messages, parsing that never raises, replies, and both providers' forms."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anthropic.types
import openai.types.chat
import pytest
from cases import load
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agentkit.tools import Registry, ToolCall, ToolSpec, make_environment, validate_call
from agentkit.wire import (
    MAX_DEPTH,
    UNREAD,
    NotJSON,
    Reply,
    ScriptedModel,
    TextBlock,
    ToolUseBlock,
    Usage,
    answer_message,
    check_messages,
    content_blocks,
    encode,
    from_anthropic,
    normalise_reply,
    parse_json,
    parse_tool_calls,
    reply_from_anthropic,
    reply_from_openai,
    to_anthropic,
    to_openai,
    tool_call_message,
    tool_message,
)

OPENAI_MESSAGE = TypeAdapter(openai.types.chat.ChatCompletionMessageParam)
ANTHROPIC_MESSAGE = TypeAdapter(anthropic.types.MessageParam)


def proposing(*entries: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(entries)}


def entry(arguments: Any, name: Any = "pay", call_id: Any = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def parsed(arguments: Any) -> ToolCall:
    return parse_tool_calls(proposing(entry(arguments)))[0]


# --- message shapes -----------------------------------------------------------------------------
def test_a_proposal_travels_with_its_arguments_as_a_string() -> None:
    message = tool_call_message("call_1", "lookup_order", {"order_id": "A-17"})
    assert message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "lookup_order", "arguments": '{"order_id": "A-17"}'}}
        ],
    }  # fmt: skip
    assert tool_call_message("c", "t", {}, thought="First, look.")["content"] == "First, look."


def test_a_result_travels_as_ok_kind_content_in_this_order() -> None:
    assert tool_message("call_1", False, "denied", "too much") == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": '{"ok": false, "kind": "denied", "content": "too much"}',
    }


def test_what_the_helpers_build_satisfies_the_official_openai_types() -> None:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        tool_call_message("call_1", "pay", {"cents": 1}, thought="t"),
        tool_message("call_1", True, "result", {"paid": 1}),
        answer_message("done"),
    ]
    for message in messages:
        OPENAI_MESSAGE.validate_python(message)
    assert check_messages(messages) == []


# --- writing ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value", [{"a": [1, 2.5, None, True, "é\ud800"]}, [], "", {"ok": True, "content": {"x": 1e300}}]
)
def test_encode_writes_what_the_standard_library_writes(value: Any) -> None:
    assert encode(value) == json.dumps(value)


def test_encode_refuses_what_json_cannot_hold() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value, error in ((float("nan"), ValueError), ({1, 2}, TypeError), (cycle, RecursionError)):
        with pytest.raises(error):
            encode({"content": value})


# --- arguments ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"order_id": A-17}', "arguments were not valid JSON: Expecting value at character 13"),
        ("5", "arguments must be a JSON object, got integer"),
        ("[[1]]", "arguments must be a JSON object, got array"),
        ("[]", "arguments must be a JSON object, got array"),
        ('"{}"', "arguments must be a JSON object, got string"),
        (5, "arguments must be a JSON object, got integer"),
        ([[1]], "arguments must be a JSON object, got array"),
        (True, "arguments must be a JSON object, got boolean"),
        ('{"a": NaN}', "arguments were not valid JSON: NaN is not JSON"),
        ('{"a": -Infinity}', "arguments were not valid JSON: -Infinity is not JSON"),
        ('{"a": 1e999}', "arguments were not valid JSON: the number '1e999' is too large"),
        ('{"a": 1, "a": 2}', "arguments were not valid JSON: the key 'a' occurs twice in one object"),
        (
            '{"x": {"a": 1, "b": 2, "a": 1}}',
            "arguments were not valid JSON: the key 'a' occurs twice in one object",
        ),
        ("[" * 100_000, "arguments were not valid JSON: nested more than 100 levels deep"),
        ("[" * 101 + "]" * 101, "arguments were not valid JSON: nested more than 100 levels deep"),
        ('{"a": ' + "9" * 5000 + "}", "arguments were not valid JSON: a number has too many digits"),
        ("{} {}", "arguments were not valid JSON: extra text at character 2"),
        (
            "{'a': 1}",
            "arguments were not valid JSON: Expecting property name enclosed in double quotes at character 1",
        ),
        (" ", "arguments were not valid JSON: Expecting value at character 1"),
        ("pay now", "arguments were not valid JSON: Expecting value at character 0"),
        ("\ufeff{}", "arguments were not valid JSON: Expecting value at character 0"),
        (
            {"a": float("nan")},
            "arguments were not valid JSON: Expecting value at character 0",
        ),
        ({"a": {1, 2}}, "arguments were not valid JSON: Expecting value at character 0"),
        (b"{}", "arguments were not valid JSON: Expecting value at character 0"),
    ],
)
def test_arguments_that_cannot_be_read_give_a_call_with_a_problem(arguments: Any, problem: str) -> None:
    call = parsed(arguments)
    assert (call.call_id, call.name, call.arguments, call.problem) == ("c1", "pay", None, problem)
    assert validate_call(call, {"pay": ToolSpec("Pays.", {}, print)}) == problem


@pytest.mark.parametrize("arguments", ["", "null", None, " null\n", "{}", {}])
def test_no_arguments_are_fine_for_a_tool_that_takes_none_and_invalid_for_one_that_takes_some(
    arguments: Any,
) -> None:
    call = parsed(arguments)
    assert (call.arguments, call.problem) == ({}, None)
    assert validate_call(call, {"pay": ToolSpec("Pays.", {}, print)}) is None
    reason = validate_call(call, {"pay": ToolSpec("Pays.", {"cents": int}, print)})
    assert reason == 'missing required parameter "cents" (integer) for pay.'


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"a": 1}, {"a": 1}),  # already parsed, as some servers send it
        (' {"a": 1.0}\n', {"a": 1.0}),
        ('{"a": "\\ud800"}', {"a": "\ud800"}),
        ('{"a": "\U0001f432"}', {"a": "\U0001f432"}),
        ('{"a": "' + "x" * 1_000_000 + '"}', {"a": "x" * 1_000_000}),
        ("[" * 99 + "]" * 99, None),
        ('{"a": 1e-999}', {"a": 0.0}),
    ],
)
def test_arguments_that_can_be_read_are_read(arguments: Any, value: Any) -> None:
    call = parsed(arguments)
    assert call.arguments == value
    if value is not None:
        assert call.problem is None


def test_arguments_that_arrive_parsed_are_copied() -> None:
    given = {"a": [1]}
    call = parsed(given)
    given["a"].append(2)
    assert call.arguments == {"a": [1]}


# --- the public parsing suite, as arguments text --------------------------------------------------
# The suite accepts texts with a key that occurs twice, and this book refuses them: whichever value a parser
# keeps, the one that was judged and the one that is used need not be the same.
def test_every_text_of_the_public_json_suite_is_read_or_refused_as_it_should_be() -> None:
    records = load("json_parsing")
    seen: Counter[str] = Counter()
    for case in records:
        call = parsed(case["text"] if case["text"] is not None else case["b64"].encode())
        if case["expect"] == "accept" and case["text"] is not None:
            twice = "duplicated" in case["name"]
            value = json.loads(case["text"])
            assert (call.arguments == value) is (isinstance(value, dict) and not twice), case["name"]
            assert (call.problem is None) is (value is None or (isinstance(value, dict) and not twice)), case[
                "name"
            ]
            seen["twice" if twice else "accept"] += 1
        elif case["expect"] == "reject" and case["text"] != "":  # no text at all means: no arguments
            assert call.problem is not None and call.arguments is None, case["name"]
            seen["reject"] += 1
    assert seen["accept"] + seen["twice"] >= 56 and seen["reject"] >= 80


@given(st.text() | st.text(alphabet='{}[]",:0123456789.eE+-nulltrefasNI \n'))
def test_any_text_is_read_as_the_standard_library_reads_it_or_refused(text: str) -> None:
    try:
        value = parse_json(text)
    except NotJSON as error:
        assert "\n" not in str(error) or "\n" in text
    else:
        assert repr(value) == repr(json.loads(text))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_every_json_value_survives_its_text(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1)) == value


def test_depth_is_counted_in_containers_and_not_in_brackets() -> None:
    assert parse_json(json.dumps([[]] * 5000)) == [[]] * 5000
    assert parse_json('["' + "[" * 5000 + '"]') == ["[" * 5000]
    with pytest.raises(NotJSON, match=f"more than {MAX_DEPTH}"):
        parse_json('{"a":' * 101 + "1" + "}" * 101)


# --- envelopes ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("pay", "a tool call must hold a function, got null"),
        (None, "a tool call must hold a function, got null"),
        ({}, "a tool call must hold a function, got null"),
        ({"id": "c1", "type": "function"}, "a tool call must hold a function, got null"),
        ({"id": "c1", "function": "pay"}, "a tool call must hold a function, got string"),
        (entry("{}", name=["pay"]), "the name of the tool must be a string, got array"),
        (entry("{}", name=7), "the name of the tool must be a string, got integer"),
        (entry("{}", name=None), "the name of the tool must be a string, got null"),
        (entry("{}", name=""), "the name of the tool is empty"),
        (
            {"id": "c1", "type": "function", "function": {"arguments": "{}"}},
            "the name of the tool must be a string, got null",
        ),
    ],
)
def test_an_entry_that_is_no_call_becomes_a_call_with_a_problem(item: Any, problem: str) -> None:
    call = parse_tool_calls(proposing(item))[0]
    assert (call.arguments, call.problem) == (None, problem)
    assert call.call_id
    again = parse_tool_calls(normalise_reply(proposing(item))[0].message)[0]
    assert again == call, "it cannot run later either, and the model is told the same"


@pytest.mark.parametrize("calls", ["pay", {"id": "c1"}, 7, True])
def test_tool_calls_that_are_no_list_are_one_broken_call(calls: Any) -> None:
    found = parse_tool_calls({"role": "assistant", "tool_calls": calls})
    assert len(found) == 1 and found[0].problem is not None


@pytest.mark.parametrize(
    "message", [None, 7, "hi", [], {}, {"tool_calls": None}, {"tool_calls": []}, answer_message("x")]
)
def test_a_message_without_calls_proposes_nothing(message: Any) -> None:
    assert parse_tool_calls(message) == []


def test_a_name_with_spaces_stays_as_it_is_and_is_unknown() -> None:
    call = parse_tool_calls(proposing(entry("{}", name=" pay ")))[0]
    assert call.name == " pay "
    assert (
        validate_call(call, {"pay": ToolSpec("Pays.", {}, print)}) == "unknown tool: ' pay '. Available: pay"
    )


@pytest.mark.parametrize(
    ("given_ids", "ids"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a"], ["a", "a_2"]),
        (["", ""], ["call_1", "call_2"]),
        ([None], ["call_1"]),
        ([7, {"x": 1}], ["call_1", "call_2"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["", "call_1"], ["call_1_2", "call_1"]),
        (["a", "a", "a", "a"], ["a", "a_2", "a_3", "a_4"]),
    ],
)
def test_ids_are_made_unique_once_and_the_same_way_every_time(given_ids: list[Any], ids: list[str]) -> None:
    message = proposing(*(entry("{}", call_id=each) for each in given_ids))
    reply, calls = normalise_reply(message)
    assert [call.call_id for call in calls] == [call.call_id for call in parse_tool_calls(message)] == ids
    assert [item["id"] for item in reply.message["tool_calls"]] == ids
    assert [call.call_id for call in parse_tool_calls(reply.message)] == ids


# --- the length of what a model sends -----------------------------------------------------------
# Each of these takes about a second when every step is linear, and minutes when one is quadratic.
MANY = 50_000


def test_a_key_that_occurs_twice_among_many_is_found_in_one_pass() -> None:
    count = 4 * MANY
    members = ", ".join(f'"k{n}": 0' for n in range(count))
    call = parsed("{" + members + f', "k{count - 1}": 1' + "}")
    assert call.problem == f"arguments were not valid JSON: the key 'k{count - 1}' occurs twice in one object"


@pytest.mark.parametrize(
    ("given_ids", "last"),
    [
        (["a"] * MANY, f"a_{MANY}"),
        ([""] * MANY, f"call_{MANY}"),
        ([f"a_{n}" for n in range(2, MANY)] + ["a"] * MANY, f"a_{2 * MANY - 2}"),
        ([f"call_{n}" for n in range(1, MANY + 1)] + [""] * MANY, f"call_{2 * MANY}"),
    ],
)
def test_many_calls_under_one_id_cost_no_more_each_than_two(given_ids: list[str], last: str) -> None:
    calls = parse_tool_calls(proposing(*(entry("{}", call_id=each) for each in given_ids)))
    assert calls[-1].call_id == last
    assert len({call.call_id for call in calls}) == len(calls)


def many_calls(*ids: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "go"},
        proposing(*(entry("{}", call_id=each) for each in ids)),
        *(tool_message(each, True, "result", 1) for each in ids),
    ]


def test_many_calls_in_one_turn_are_converted_and_checked_in_one_pass() -> None:
    transcript = many_calls(*(f"c{number}" for number in range(MANY)))
    assert check_messages(transcript) == []
    converted = to_anthropic(transcript)["messages"]
    assert check_messages(converted) == []
    assert from_anthropic(converted) == transcript
    assert to_openai(transcript)[-1] == transcript[-1]


def test_many_loose_ends_are_reported_in_one_pass() -> None:
    same = check_messages(many_calls(*["c"] * (MANY)))
    assert len(same) == MANY and "repeated: c" in same[0]
    unanswered = check_messages(many_calls(*(f"c{number}" for number in range(MANY)))[:2])
    assert len(unanswered) == 1 and unanswered[0].endswith(f"c{MANY - 1}")


def test_many_parts_behind_a_result_join_it_in_one_pass() -> None:
    part = {"role": "user", "content": [{"type": "text", "text": "more"}]}
    converted = to_anthropic([*many_calls("c"), *[part] * MANY])["messages"]
    assert len(converted) == 3 and len(converted[2]["content"]) == MANY + 1
    assert part == {"role": "user", "content": [{"type": "text", "text": "more"}]}


@pytest.mark.parametrize(
    "text", ["0." + "1" * MANY, "[" + "[]," * MANY + "[]]", " " * MANY, '"' + "\\\\" * MANY]
)
def test_long_texts_are_read_in_one_pass(text: str) -> None:
    assert parsed(text).problem is not None


# --- replies ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "content"),
    [
        (answer_message("hi"), "hi"),
        ({"role": "assistant", "content": None}, ""),
        ({"role": "assistant", "content": []}, ""),
        ({"role": "assistant"}, ""),
        ({"content": "no role"}, "no role"),
        ({"role": "assistant", "content": "x", "tool_calls": []}, "x"),
        (
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}, 7],
            },
            "ab",
        ),
    ],
)
def test_an_answer_enters_the_transcript_as_a_string(message: Any, content: str) -> None:
    reply, calls = normalise_reply(message)
    assert (reply.message, reply.stop_reason, calls) == ({"role": "assistant", "content": content}, None, [])


@pytest.mark.parametrize(
    "reply",
    [None, 7, "hi", [], {}, {"error": "x"}, {"role": "user", "content": "hi"},
     {"role": "assistant", "content": 5},
     {"role": "tool", "content": "x"}, Reply("hi"), Reply({"role": "assistant", "content": "x"}, 7)],  # type: ignore[arg-type]
)  # fmt: skip
def test_something_that_is_no_reply_is_malformed_and_leaves_a_message_that_can_be_replayed(
    reply: Any,
) -> None:
    normal, calls = normalise_reply(reply)
    assert normal.stop_reason == "malformed" and calls == []
    OPENAI_MESSAGE.validate_python(normal.message)


def test_a_well_formed_message_is_kept_as_the_same_object() -> None:
    for message in (tool_call_message("c1", "pay", {"a": 1}), answer_message("hi")):
        assert normalise_reply(message)[0].message is message


def test_reply_keeps_stop_reason_and_usage_outside_the_message() -> None:
    usage = Usage(10, 2, 4)
    reply, _ = normalise_reply(Reply(answer_message("hi"), "max_tokens", usage))
    assert reply == Reply(answer_message("hi"), "max_tokens", usage)


garbage = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=3)
    | st.sampled_from([{1}, (1, 2), ({"a": (1,)},)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "function", "name", "arguments", "role", "content", "text", "x"]),
            inner,
        )
    ),
    max_leaves=10,
)
functions = st.fixed_dictionaries(
    {},
    optional={
        "name": garbage | st.just("pay"),
        "arguments": garbage | st.sampled_from(["{}", '{"a":1}', "NaN"]),
    },
)
call_entries = st.fixed_dictionaries(
    {},
    optional={
        "id": garbage | st.sampled_from(["a", "b", ""]),
        "type": garbage,
        "function": functions | garbage,
        "x": garbage,
    },
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant") | garbage,
        "content": garbage,
        "tool_calls": st.lists(call_entries | garbage, max_size=4) | garbage,
        "x": garbage,
    },
)


@settings(max_examples=200)
@given(messages | garbage)
def test_whatever_a_model_returns_leaves_a_message_that_the_official_types_accept(message: Any) -> None:
    reply, calls = normalise_reply(message)
    json.dumps(reply.message, allow_nan=False)
    OPENAI_MESSAGE.validate_python(reply.message)
    ids = [call.call_id for call in calls]
    assert len(set(ids)) == len(ids) and all(ids)
    assert [call.call_id for call in parse_tool_calls(message)] == (
        ids if reply.stop_reason != "malformed" else ids or [c.call_id for c in parse_tool_calls(message)]
    )
    again, calls_again = normalise_reply(reply.message)
    assert again.message == reply.message
    assert calls_again == calls


# --- the scripted model -------------------------------------------------------------------------
def converse(model: ScriptedModel, results: list[str]) -> list[Any]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    replies = []
    for result in [*results, None]:
        reply = model.chat(history)
        replies.append(reply)
        history.append(reply)
        if result is not None:
            history.append({"role": "tool", "tool_call_id": "c", "content": result})
    return replies


def test_a_script_plays_its_turns_and_reacts_to_what_it_reads() -> None:
    first, second, retry = (tool_call_message("c", name, {}) for name in ("first", "second", "retry"))
    model = ScriptedModel([first, second, answer_message("done")], {"denied": retry})
    assert converse(model, ["ok", "denied", "ok"]) == [first, second, retry, answer_message("done")]
    assert converse(model, ["ok", "denied", "ok"]) == [first, second, retry, answer_message("done")], (
        "no hidden state"
    )
    assert converse(ScriptedModel([]), []) == [answer_message("I have nothing further to add.")]


@given(st.lists(st.sampled_from(["ok", "denied", "lost"]), max_size=8))
def test_what_a_script_says_depends_on_the_transcript_alone(results: list[str]) -> None:
    turns = [tool_call_message("c", f"turn_{n}", {}) for n in range(4)]
    reactions = {"denied": tool_call_message("c", "retry", {}), "lost": tool_call_message("c", "again", {})}
    model = ScriptedModel(turns, reactions)
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for result in results:
        fresh = ScriptedModel(turns, reactions).chat(json.loads(json.dumps(history)))
        reply = model.chat(history)
        assert reply == fresh == model.chat(list(history)) == model.chat(history)
        history += [reply, {"role": "tool", "tool_call_id": "c", "content": result}]


def test_a_turn_reads_only_the_messages_that_are_new() -> None:
    read: list[int] = []

    class Watched(list[dict[str, Any]]):
        def __getitem__(self, at: Any) -> Any:
            read.append(at)
            return super().__getitem__(at)

    model = ScriptedModel([answer_message("x")] * 500)
    history = Watched([{"role": "user", "content": "go"}])
    for _ in range(400):
        history.append(model.chat(history))
    read.clear()
    model.chat(history)
    assert len(read) < 10


# --- content blocks -----------------------------------------------------------------------------
EIFFEL = [
    {"role": "user", "content": "What's the weather where the Eiffel Tower is?"},
    {"role": "assistant", "content": [
        {"type": "text", "text": "I'll look up the weather in Paris."},
        {"type": "tool_use", "id": "toolu_01A", "name": "get_weather", "input": {"city": "Paris"}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "18C and raining in Paris"},
    ]},
]  # fmt: skip


def test_the_two_blocks_of_the_worked_trace() -> None:
    message = from_anthropic(EIFFEL)[1]
    assert content_blocks(message) == [
        TextBlock(text="I'll look up the weather in Paris."),
        ToolUseBlock(id="toolu_01A", name="get_weather", input={"city": "Paris"}),
    ]
    assert [block.type for block in content_blocks(message)] == ["text", "tool_use"]


def test_the_worked_trace_is_accepted_and_converts_there_and_back() -> None:
    assert check_messages(EIFFEL) == []
    transcript = from_anthropic(EIFFEL, system="Be brief.")
    assert [message["role"] for message in transcript] == ["system", "user", "assistant", "tool"]
    assert check_messages(transcript) == []
    assert to_anthropic(transcript) == {"system": "Be brief.", "messages": EIFFEL}


PARALLEL = [
    {"role": "user", "content": "Weather in Paris, Berlin, and Tokyo?"},
    {"role": "assistant", "content": [
        {"type": "tool_use", "id": f"toolu_01{letter}", "name": "get_weather", "input": {"city": city}}
        for letter, city in (("A", "Paris"), ("B", "Berlin"), ("C", "Tokyo"))
    ]},
]  # fmt: skip


def result(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x", **more}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [result(each) for each in ids]}


UNANSWERED = "400 — messages.2: tool_use ids were found without tool_result blocks immediately after:"
TEXT_ONLY = [EIFFEL[0], {"role": "assistant", "content": "I'll look up the weather in Paris."}, EIFFEL[2]]


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        (TEXT_ONLY,
         ["400 — tool_result block(s) provided when previous message does not contain any tool_use blocks"]),
        ([*PARALLEL, results("toolu_01A", "toolu_01B")],
         [f"{UNANSWERED} toolu_01C"]),
        ([*PARALLEL, results("toolu_01A"), results("toolu_01B"), results("toolu_01C")],
         ["accepted, but the results of one turn are split over messages 2, 3, 4: "
          "expect 3 requests instead of 1"]),
        ([*PARALLEL, results("toolu_01A", "toolu_01B", "toolu_01C")], []),
        ([*PARALLEL, results("toolu_01A", "toolu_01B", "toolu_01C", "toolu_01A")],
         ["400 — messages.2: unexpected tool_use_id found in tool_result blocks: toolu_01A"]),
        ([results("toolu_01A")],
         ["400 — tool_result block(s) provided when previous message does not contain any tool_use blocks"]),
        ([*PARALLEL, results("toolu_01A", "toolu_01B", "toolu_01C", "toolu_01D")],
         ["400 — messages.2: unexpected tool_use_id found in tool_result blocks: toolu_01D"]),
        (PARALLEL, [f"{UNANSWERED} toolu_01A, toolu_01B, toolu_01C"]),
        ([EIFFEL[0], {"role": "assistant", "content": ""}, EIFFEL[0]],
         ["400 — messages.1: all messages must have non-empty content "
          "except for the last one of the assistant"]),
        ([], ["400 — messages: at least one message is required"]),
        ([{"role": "robot", "content": "x"}],
         ["400 — messages.0.role: must be one of system, developer, user, assistant, tool, got 'robot'"]),
        (["hi"],
         ["400 — messages.0.role: must be one of system, developer, user, assistant, tool, got None"]),
    ],
)  # fmt: skip
def test_a_corrupted_array_is_answered_as_the_provider_answers_it(messages: Any, problems: list[str]) -> None:
    assert check_messages(messages) == problems


CALL = tool_call_message("c1", "pay", {})


@pytest.mark.parametrize(
    ("messages", "word"),
    [
        ([CALL], "did not have response messages: c1"),
        ([CALL, answer_message("x")], "did not have response messages: c1"),
        ([CALL, tool_message("c2", True, "result", 1)], "'c2' is none"),
        (
            [answer_message("x"), tool_message("c1", True, "result", 1)],
            "must be a response to a preceding message",
        ),
        (
            [CALL, tool_message("c1", True, "result", 1), tool_message("c1", True, "result", 1)],
            "'c1' is none",
        ),
        (
            [proposing(entry("{}"), entry("{}")), tool_message("c1", True, "result", 1)],
            "ids must be unique; repeated: c1",
        ),
        (
            [CALL, tool_message("c1", True, "result", 1), {"role": "assistant", "content": None}],
            "expected a string, got null",
        ),
    ],
)
def test_an_openai_array_with_loose_ends_is_rejected(messages: Any, word: str) -> None:
    problems = check_messages([{"role": "user", "content": "go"}, *messages])
    assert any(problem.startswith("400") and word in problem for problem in problems)


def test_ids_may_be_used_again_in_a_later_turn() -> None:
    turn = [CALL, tool_message("c1", True, "result", 1)]
    assert check_messages([{"role": "user", "content": "go"}, *turn, *turn]) == []
    assert check_messages(to_anthropic([{"role": "user", "content": "go"}, *turn, *turn])["messages"]) == []


# --- both providers -----------------------------------------------------------------------------
words = st.text(min_size=1, max_size=12)
plain_objects = st.dictionaries(words, json_values, max_size=3)


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(0, 3))
    if count == 0:
        return [answer_message(draw(st.text(max_size=12)))]
    message = tool_call_message("c0", draw(words), draw(plain_objects), draw(st.none() | words))
    for number in range(1, count):
        message["tool_calls"] += tool_call_message(f"c{number}", draw(words), draw(plain_objects))[
            "tool_calls"
        ]
    if draw(st.booleans()):
        message["tool_calls"][0]["function"]["arguments"] = draw(st.sampled_from(["{broken", "[1]", "NaN"]))
    kinds = st.sampled_from([(True, "result"), (False, "error"), (False, "denied")])
    return [
        message,
        *(tool_message(f"c{number}", *draw(kinds), draw(json_values)) for number in range(count)),
    ]


transcripts = st.tuples(
    st.lists(st.builds(lambda text: {"role": "system", "content": text}, words), max_size=1),
    st.lists(st.builds(lambda text: [{"role": "user", "content": text}], words) | turns(), max_size=5),
).map(lambda pair: [*pair[0], *(message for turn in pair[1] for message in turn)])


@settings(max_examples=100, deadline=None)
@given(transcripts)
def test_a_transcript_survives_the_way_to_anthropic_and_back(transcript: list[dict[str, Any]]) -> None:
    converted = to_anthropic(transcript)
    for message in converted["messages"]:
        ANTHROPIC_MESSAGE.validate_python(message)
    assert from_anthropic(**converted) == [message for message in transcript if message != answer_message("")]
    assert to_anthropic(from_anthropic(**converted)) == converted


def test_errors_are_flagged_and_parallel_results_share_one_message() -> None:
    transcript = [
        {"role": "user", "content": "go"},
        proposing(entry("{}", call_id="a"), entry("{}", call_id="b")),
        tool_message("a", True, "result", 1),
        tool_message("b", False, "error", "lost"),
    ]
    content = to_anthropic(transcript)["messages"][2]["content"]
    assert [block.get("is_error") for block in content] == [None, True]
    assert [block["tool_use_id"] for block in content] == ["a", "b"]


UNREADABLE = ['{"order_id": A-17}', '{"a": 1, "a": 2}', '{"a": NaN}', "[1]", "5", "{", "[" * 5000, "\ud800{"]


def test_arguments_that_nobody_can_read_are_sent_as_an_object_and_kept_as_they_were() -> None:
    for raw in UNREADABLE:
        refused = tool_message("c1", False, "invalid", "arguments were not valid JSON")
        kept = normalise_reply(proposing(entry(raw), entry('{"cents": 1}', call_id="c2")))[0].message
        transcript = [{"role": "user", "content": "go"}, kept, refused, tool_message("c2", True, "result", 1)]
        before = json.dumps(transcript)

        sent = to_openai(transcript)
        texts = [item["function"]["arguments"] for item in sent[1]["tool_calls"]]
        assert json.loads(texts[0]) == {UNREAD: raw} and texts[1] == '{"cents": 1}'
        for message in sent:
            OPENAI_MESSAGE.validate_python(message)
        assert check_messages(sent) == []

        converted = to_anthropic(transcript)
        assert [use["input"] for use in converted["messages"][1]["content"]] == [{UNREAD: raw}, {"cents": 1}]
        for message in converted["messages"]:
            ANTHROPIC_MESSAGE.validate_python(message)
        assert from_anthropic(**converted) == transcript
        assert json.dumps(transcript) == before


@pytest.mark.parametrize("arguments", ["", "null", " null ", "{}", None, {}])
def test_no_arguments_are_sent_as_an_empty_object(arguments: Any) -> None:
    (sent,) = to_openai([normalise_reply(proposing(entry(arguments)))[0].message])
    assert sent["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_that_can_be_read_are_sent_with_every_character_as_it_was() -> None:
    message = proposing(entry(' {"a":1.0,  "b":"\\u00e9"}'))
    assert to_openai([message]) == [message]


def test_whatever_was_normalised_can_be_sent_to_a_server_that_reads_the_arguments_again() -> None:
    for broken in ("pay", None, {}, {"function": {"name": 7}}, entry("{}", name=""), entry({"a": {1}})):
        (sent,) = to_openai([normalise_reply(proposing(broken))[0].message])
        assert sent["tool_calls"][0].keys() == {"id", "type", "function"}
        assert json.loads(sent["tool_calls"][0]["function"]["arguments"]).keys() == {UNREAD}


def test_a_kept_block_whose_input_is_no_object_is_replayed_as_one() -> None:
    blocks = [BLOCKS[0], {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": "{cents: 1}"}]
    message = normalise_reply(reply_from_anthropic({"content": blocks, "stop_reason": "tool_use"}))[0].message
    (replay,) = to_anthropic([message])["messages"]
    ANTHROPIC_MESSAGE.validate_python(replay)
    assert replay["content"][0] == BLOCKS[0]
    assert replay["content"][1]["input"] == {UNREAD: '"{cents: 1}"'}


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ('{"ok": false, "kind": "error", "content": "lost"}', True),
        ('{"kind":"error","content":"lost","ok":false}', True),  # the same, by another writer
        ('{"ok": false, "reason": "a foreign tool\'s own words"}', False),
        ('{"ok": false, "kind": "error", "content": "cut o', False),
        ('{"ok": true, "kind": "result", "content": "{\\"ok\\": false}"}', False),
        ([{"type": "text", "text": '{"ok": false, "kind": "error", "content": "lost"}'}], False),
    ],
)
def test_a_failure_is_known_by_its_envelope_and_not_by_its_start(content: Any, failed: bool) -> None:
    transcript = [*many_calls("c")[:2], {"role": "tool", "tool_call_id": "c", "content": content}]
    converted = to_anthropic(transcript)
    assert converted["messages"][2]["content"][0].get("is_error", False) is failed
    assert from_anthropic(**converted) == transcript


BLOCKS = [
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    {"type": "text", "text": "Looking."},
    {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"a": 1}, "caller": {"type": "direct"}},
    {"type": "text", "text": "And more."},
]


def test_blocks_that_this_form_has_no_place_for_are_kept_and_replayed() -> None:
    reply = reply_from_anthropic({"role": "assistant", "content": BLOCKS, "stop_reason": "tool_use"})
    normal, calls = normalise_reply(reply)
    assert normal.message["content"] == "Looking.And more."
    assert calls == [ToolCall("toolu_1", "pay", {"a": 1})]
    history = [{"role": "user", "content": "go"}, normal.message, tool_message("toolu_1", True, "result", 1)]
    assert to_anthropic(history)["messages"][1]["content"] == BLOCKS
    assert "blocks" not in to_openai(history)[1]
    OPENAI_MESSAGE.validate_python(to_openai(history)[1])


def test_a_flag_on_a_foreign_result_is_kept() -> None:
    messages = [
        *EIFFEL[:2],
        {
            "role": "user",
            "content": [
                result("toolu_01A", is_error=True, cache_control={"type": "ephemeral"}),
                {"type": "text", "text": "Go on."},
            ],
        },
    ]
    assert to_anthropic(from_anthropic(messages))["messages"] == messages
    quiet = [*EIFFEL[:2], {"role": "user", "content": [result("toolu_01A", is_error=False)]}]
    assert to_anthropic(from_anthropic(quiet))["messages"] == quiet


def test_a_system_message_in_the_middle_has_no_place_at_anthropic() -> None:
    with pytest.raises(ValueError, match="can only be the first"):
        to_anthropic([{"role": "user", "content": "x"}, {"role": "system", "content": "y"}])
    with pytest.raises(ValueError, match="no role 'developer'"):
        to_anthropic([{"role": "developer", "content": "y"}])


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "end_turn"), ("tool_calls", "tool_use"), ("function_call", "tool_use"),
     ("length", "max_tokens"), ("content_filter", "refusal"), ("", None), (None, None), ("eos", "eos"),
     (7, "malformed")],
)  # fmt: skip
def test_openai_finish_reasons_are_told_in_one_vocabulary(finish: Any, stop: str | None) -> None:
    assert (
        reply_from_openai(
            {"choices": [{"finish_reason": finish, "message": answer_message("x")}]}
        ).stop_reason
        == stop
    )


@pytest.mark.parametrize(
    "stop", ["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "stop_sequence"]
)
def test_anthropic_stop_reasons_keep_their_names(stop: str) -> None:
    assert reply_from_anthropic({"content": [], "stop_reason": stop}).stop_reason == stop
    assert (
        reply_from_anthropic({"content": [], "stop_reason": "model_context_window_exceeded"}).stop_reason
        == "max_tokens"
    )


NO_MESSAGE = [
    None, 7, "oops", [], {}, {"error": {"message": "x"}}, {"choices": []}, {"choices": [None]},
    {"choices": [{"message": "x"}]}, {"content": "x"}, {"content": None},
]  # fmt: skip


@pytest.mark.parametrize("body", NO_MESSAGE)
def test_a_body_without_a_message_is_malformed(body: Any) -> None:
    for reply in (reply_from_openai(body), reply_from_anthropic(body)):
        assert reply.stop_reason == "malformed"
        assert normalise_reply(reply)[0].stop_reason == "malformed"


def test_a_refusal_of_openai_is_a_refusal_and_a_legacy_call_is_a_call() -> None:
    refused = {
        "choices": [
            {"finish_reason": "stop", "message": {"role": "assistant", "content": None, "refusal": "No."}}
        ]
    }
    assert reply_from_openai(refused).stop_reason == "refusal"
    message = {"role": "assistant", "content": None, "function_call": {"name": "pay", "arguments": "{}"}}
    legacy = reply_from_openai({"choices": [{"finish_reason": "function_call", "message": message}]})
    assert normalise_reply(legacy)[1] == [ToolCall("call_1", "pay", {})]


def test_cached_tokens_are_part_of_the_prompt_with_both_providers() -> None:
    counted = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}}
    apart = {
        "input_tokens": 15,
        "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": 5,
        "output_tokens": 5,
    }
    openai_body = {"choices": [{"message": answer_message("x")}], "usage": counted}
    anthropic_body = {"content": [], "usage": apart}
    assert reply_from_openai(openai_body).usage == Usage(100, 5, 80)
    assert reply_from_anthropic(anthropic_body).usage == Usage(100, 5, 80)
    assert reply_from_openai({**openai_body, "usage": {"prompt_tokens": "many"}}).usage == Usage()


# --- recorded traffic ---------------------------------------------------------------------------
def found(calls: list[ToolCall]) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


# One recorded call has an empty id; it gets one, since a result must be able to name its call.
def test_recorded_openai_replies_give_the_expected_text_calls_and_stop() -> None:
    records = load("wire_openai")
    for case in records:
        expected = case["expected"]
        reply = reply_from_openai(case["response"])
        normal, calls = normalise_reply(reply)
        assert found(calls) == [(each["name"], each["arguments"]) for each in expected["calls"]], case["id"]
        assert [call.call_id for call in calls] == [each["id"] or "call_1" for each in expected["calls"]]
        assert (normal.message["content"] or "") == (expected["text"] or "")
        stop = {"stop": "end_turn", "tool_calls": "tool_use", "": None}[expected["stop"]]
        assert normal.stop_reason == stop
        assert (
            normal.usage is not None
            and normal.usage.prompt_tokens == case["response"]["usage"]["prompt_tokens"]
        )
        OPENAI_MESSAGE.validate_python(to_openai([normal.message])[0])
    assert len(records) >= 110


def test_recorded_anthropic_replies_give_the_expected_text_calls_and_stop_and_replay_unchanged() -> None:
    records = load("wire_anthropic")
    for case in records:
        expected = case["expected"]
        normal, calls = normalise_reply(reply_from_anthropic(case["response"]))
        assert found(calls) == [(each["name"], each["arguments"]) for each in expected["calls"]], case["id"]
        assert [call.call_id for call in calls] == [each["id"] for each in expected["calls"]]
        assert (normal.message["content"] or "") == (expected["text"] or "")
        assert normal.stop_reason == expected["stop"]
        replay = to_anthropic([normal.message])["messages"][0]
        assert replay["content"] == case["response"]["content"], case["id"]
        ANTHROPIC_MESSAGE.validate_python(replay)
        OPENAI_MESSAGE.validate_python(to_openai([normal.message])[0])
    assert len(records) >= 90


def test_every_recorded_call_passes_the_registry_it_was_made_for() -> None:
    for case in load("wire_openai"):
        _, calls = normalise_reply(reply_from_openai(case["response"]))
        for call in calls:
            spec = ToolSpec("", {"type": "object", "additionalProperties": True}, print)
            assert validate_call(call, Registry({call.name: spec})) is None


def test_the_broken_refund_of_the_chapter_is_invalid_and_runs_nothing() -> None:
    tools, effects = make_environment()
    call = parse_tool_calls(proposing(entry('{"order_id": A-17}', "refund_order")))[0]
    assert call.arguments is None
    assert validate_call(call, tools) == "arguments were not valid JSON: Expecting value at character 13"
    assert effects == []


def test_a_refusal_of_anthropic_may_come_without_content() -> None:
    for content in (None, []):
        reply = reply_from_anthropic({"role": "assistant", "content": content, "stop_reason": "refusal"})
        assert (reply.stop_reason, reply.message["content"]) == ("refusal", "")
    assert reply_from_anthropic({"role": "assistant", "content": None}).stop_reason == "malformed"


def test_the_place_of_a_streamed_call_is_not_sent_back() -> None:
    message = tool_call_message("a", "lookup_order", {"order_id": "A-17"})
    streamed = {**message, "tool_calls": [{"index": 0, **message["tool_calls"][0]}]}
    assert to_openai([streamed]) == [message]


def test_a_turn_that_says_nothing_stays_in_the_transcript_and_is_not_sent_to_anthropic() -> None:
    silent, call = answer_message(""), tool_call_message("c", "pay", {})
    task, ending = {"role": "user", "content": "Go."}, answer_message("Done.")
    transcript = [
        {"role": "system", "content": "Be brief."},
        *(task, silent, silent, call, tool_message("c", True, "result", 1), silent, ending),
    ]
    assert check_messages(transcript) == []
    sent = to_anthropic(transcript)["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant"]
    assert check_messages(sent) == []


def test_an_array_with_a_system_message_is_read_in_the_form_that_has_one() -> None:
    silent = [{"role": "user", "content": "Go."}, answer_message(""), answer_message("Done.")]
    assert check_messages([{"role": "system", "content": "Be brief."}, *silent]) == []
    assert check_messages(silent)[0].startswith("400 — messages.1: all messages must have non-empty content")


def test_a_turn_that_holds_only_kept_blocks_is_sent() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    silent = {"role": "assistant", "content": "", "blocks": [thinking]}
    assert to_anthropic([silent])["messages"] == [{"role": "assistant", "content": [thinking]}]
