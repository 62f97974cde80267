"""Providers: what is sent, what is sent again, what comes back whole or in pieces, and what is recorded."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

httpx = pytest.importorskip("httpx", reason="agentkit.providers needs httpx")

from cases import load  # noqa: E402
from strict_server import StrictServer, strict_server  # noqa: E402
from strict_server import anthropic_stream as stream_as_anthropic  # noqa: E402
from strict_server import openai_stream as stream_as_openai  # noqa: E402

from agentkit.gate import refund_gate  # noqa: E402
from agentkit.loop import RunCrash, allow_all, decide, execute_call, resume_agent, run_agent  # noqa: E402
from agentkit.providers import (  # noqa: E402
    MODES,
    TRIAL_GATES,
    TRIAL_LIMITS,
    AnthropicModel,
    JSONTurns,
    NotRecorded,
    OpenAIModel,
    Patience,
    ProviderError,
    RecordingTransport,
    ReplayTransport,
    RequestRejected,
    Retries,
    Secret,
    anthropic_body,
    anthropic_from_stream,
    bounded_desk,
    call_schema,
    handle_refusal,
    load_recording,
    main,
    once_gate,
    openai_body,
    openai_from_stream,
    paid_gate,
    readable,
    request_key,
    run_trial,
    sse_events,
    trial_model,
)
from agentkit.tools import (  # noqa: E402
    Registry,
    ToolCall,
    ToolSpec,
    compile_schema,
    make_environment,
    validate_call,
)
from agentkit.wire import (  # noqa: E402
    Usage,
    answer_message,
    normalise_reply,
    parse_tool_calls,
    reply_from_anthropic,
    reply_from_openai,
    tool_call_message,
    tool_message,
)

KEY = "sk-test-0123456789abcdef"
USER = {"role": "user", "content": "Order A-17 arrived damaged."}
SYSTEM = {"role": "system", "content": "You work at a support desk."}
ADAPTERS = [OpenAIModel, AnthropicModel]


def completion(
    content: str | None, *calls: dict[str, Any], finish: str = "stop", **more: Any
) -> dict[str, Any]:
    message = {"role": "assistant", "content": content} | ({"tool_calls": list(calls)} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice], "usage": usage, **more}


def call_entry(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def anthropic_message(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {
        **head,
        "content": list(blocks),
        "stop_reason": stop,
        "usage": {"input_tokens": 100, "output_tokens": 30},
    }


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use_block(call_id: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


ANSWER = {OpenAIModel: completion("Done."), AnthropicModel: anthropic_message(text_block("Done."))}


def answering(*answers: Any) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """A transport that gives these answers in order (body, response or exception), and what it saw."""
    queue, seen = iter(answers), []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = next(queue)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    return httpx.MockTransport(handle), seen


def model_on(adapter: Any, *answers: Any, **more: Any) -> tuple[Any, list[httpx.Request], list[float]]:
    transport, seen = answering(*answers)
    waits: list[float] = []
    more.setdefault("key", KEY)
    return adapter("m", transport=transport, sleep=waits.append, **more), seen, waits


def status(code: int, body: Any = None, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(
        code, json=body if body is not None else {"error": {"message": "no"}}, headers=named
    )


@pytest.fixture(scope="module")
def running() -> Iterator[StrictServer]:
    with strict_server() as server:
        yield server


@pytest.fixture
def server(running: StrictServer) -> StrictServer:
    running.replies.clear()
    running.seen.clear()
    running.headers.clear()
    return running


def reach(adapter: Any, server: StrictServer) -> str:
    return f"{server.url}/v1" if adapter is OpenAIModel else server.url


# --- requests ------------------------------------------------------------------------------------
def test_both_bodies_hold_the_transcript_the_tools_and_the_system_prompt() -> None:
    tools, _ = make_environment()
    first = openai_body([SYSTEM, USER], tools, "m")
    assert first["messages"] == [SYSTEM, USER]
    assert [tool["function"]["name"] for tool in first["tools"]] == list(tools)
    second = anthropic_body([SYSTEM, USER], tools, "m")
    assert (second["system"], second["messages"], second["max_tokens"]) == (SYSTEM["content"], [USER], 4096)
    assert [tool["name"] for tool in second["tools"]] == list(tools)
    assert second["tools"][0]["input_schema"] == first["tools"][0]["function"]["parameters"]


def test_without_tools_and_system_prompt_neither_key_is_sent() -> None:
    assert openai_body([USER], {}, "m").keys() == {"model", "messages"}
    assert anthropic_body([USER], {}, "m").keys() == {"model", "messages", "max_tokens"}


def test_tools_travel_under_their_wire_safe_names() -> None:
    tools = Registry({"math.add": ToolSpec("Add.", {"a": int}, print)})
    assert openai_body([USER], tools, "m")["tools"][0]["function"]["name"] == "math_add"
    assert anthropic_body([USER], tools, "m")["tools"][0]["name"] == "math_add"


def test_a_cache_marker_stands_on_the_system_prompt() -> None:
    body = anthropic_body([SYSTEM, USER], {}, "m", cache=True)
    assert body["system"] == [
        {"type": "text", "text": SYSTEM["content"], "cache_control": {"type": "ephemeral"}}
    ]


def test_options_go_into_the_body_and_overrule_it() -> None:
    model, seen, _ = model_on(AnthropicModel, ANSWER[AnthropicModel], options={"max_tokens": 7, "top_k": 1})
    model.chat([USER])
    sent = json.loads(seen[0].content)
    assert (sent["max_tokens"], sent["top_k"]) == (7, 1)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_chat_changes_no_message(adapter: Any) -> None:
    messages = [SYSTEM, USER, tool_call_message("c1", "pay", {}), tool_message("c1", True, "result", 1)]
    before = copy.deepcopy(messages)
    model, _, _ = model_on(adapter, ANSWER[adapter])
    model.chat(messages)
    assert messages == before


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_reply_keeps_stop_reason_and_usage(adapter: Any) -> None:
    model, _, _ = model_on(adapter, ANSWER[adapter])
    reply = model.chat([USER])
    assert reply.message == answer_message("Done.")
    assert (reply.stop_reason, reply.usage) == ("end_turn", Usage(100, 30))


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (anthropic_message(stop="refusal"), "refused"),
        (anthropic_message(text_block("half an ans"), stop="max_tokens"), "truncated"),
        (anthropic_message(stop="end_turn"), "answered"),
    ],
)
def test_endings_that_look_like_success_are_typed(body: dict[str, Any], stop: str) -> None:
    model, _, _ = model_on(AnthropicModel, body)
    assert run_agent("x", model, {}, allow_all).stop.value == stop


def test_a_pause_is_sent_again_without_a_user_message() -> None:
    server_use = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    paused = anthropic_message(server_use, stop="pause_turn")
    model, seen, _ = model_on(AnthropicModel, paused, ANSWER[AnthropicModel])
    result = run_agent("x", model, {}, allow_all)
    assert (result.answer, result.state.turns, result.state.pauses) == ("Done.", 1, 1)
    again = json.loads(seen[1].content)["messages"]
    assert [message["role"] for message in again] == ["user", "assistant"]
    assert again[1]["content"] == [server_use]


def test_a_refusal_is_told_whatever_the_details_are() -> None:
    assert handle_refusal({"category": "cyber"}).startswith("Declined (cyber)")
    assert handle_refusal(None).startswith("Declined (no category given)")


# --- the strict server and the official clients --------------------------------------------------
def key_sent(headers: dict[str, str]) -> str:
    """The key of a request. Anthropic documents `x-api-key`; newer clients send it as a bearer token."""
    return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")


SDK_CALLS: dict[Any, Callable[[StrictServer, dict[str, Any]], Any]] = {
    OpenAIModel: lambda server, body: openai.OpenAI(
        api_key=KEY, base_url=f"{server.url}/v1", max_retries=0
    ).chat.completions.create(**body),
    AnthropicModel: lambda server, body: anthropic.Anthropic(
        api_key=KEY, base_url=server.url, max_retries=0
    ).messages.create(**body),
}
CALLING = {
    OpenAIModel: completion(
        None,
        call_entry("c1", "lookup_order", '{"order_id": "A-17"}'),
        call_entry("c2", "read_policy", "{}"),
    ),
    AnthropicModel: anthropic_message(
        text_block("Both."),
        use_block("c1", "lookup_order", {"order_id": "A-17"}),
        use_block("c2", "read_policy", {}),
        stop="tool_use",
    ),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_whole_run_is_accepted_by_a_strict_provider(adapter: Any, server: StrictServer) -> None:
    tools, _ = make_environment()
    server.replies += [CALLING[adapter], ANSWER[adapter]]
    with adapter("m", tools, key=KEY, base_url=reach(adapter, server)) as model:
        result = run_agent("Order A-17 arrived damaged.", model, tools, refund_gate)
    assert (result.stop.value, result.answer) == ("answered", "Done.")
    assert [seen.kind for seen in result.state.observations] == ["result", "result"]
    assert result.state.usage_log == [Usage(100, 30), Usage(100, 30)]
    checked = TypeAdapter(ChatCompletionMessageParam if adapter is OpenAIModel else MessageParam)
    for body in server.seen:
        for message in body["messages"]:
            checked.validate_python(message)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_official_client_sends_and_accepts_what_the_adapter_does(
    adapter: Any, stream: bool, server: StrictServer
) -> None:
    tools, _ = make_environment()
    transcript = [
        SYSTEM,
        USER,
        tool_call_message("c0", "read_policy", {}),
        tool_message("c0", True, "result", "x"),
    ]
    server.replies += [CALLING[adapter], CALLING[adapter]]
    with adapter("m", tools, key=KEY, base_url=reach(adapter, server), stream=stream) as model:
        ours = model.chat(transcript)
        body = model.body(transcript)
    theirs = SDK_CALLS[adapter](server, body)
    assert server.seen[0] == server.seen[1] == body
    assert [key_sent(headers) for headers in server.headers] == [KEY, KEY]
    if not stream:
        read = reply_from_openai if adapter is OpenAIModel else reply_from_anthropic
        assert normalise_reply(read(theirs.to_dict()))[0] == ours
    elif adapter is OpenAIModel:
        parts = [
            part for chunk in theirs for choice in chunk.choices for part in choice.delta.tool_calls or []
        ]
        assert "".join(part.function.arguments or "" for part in parts) == '{"order_id": "A-17"}{}'
    else:
        assert [event.type for event in theirs][-1] == "message_stop"
    assert [call.arguments for call in parse_tool_calls(ours.message)] == [{"order_id": "A-17"}, {}]


def calls(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [call_entry(each, "get_weather", "{}") for each in ids],
    }


def done(call_id: str) -> dict[str, Any]:
    return tool_message(call_id, True, "result", "18C")


CORRUPTED = [
    ("only the text was kept", [USER, answer_message("I'll look."), done("toolu_01A")], "toolu_01A"),
    ("a result is missing", [USER, calls("toolu_01A", "toolu_01C"), done("toolu_01A")], "toolu_01C"),
    ("no result at all", [USER, calls("toolu_01A"), USER], "toolu_01A"),
    ("a result for nobody", [USER, calls("toolu_01A"), done("toolu_01A"), done("toolu_01D")], "toolu_01D"),
]


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("name", "messages", "culprit"), CORRUPTED, ids=[case[0] for case in CORRUPTED])
def test_a_corrupted_array_is_a_400_that_shows_the_message_at_fault(
    adapter: Any, name: str, messages: list[Any], culprit: str, server: StrictServer
) -> None:
    with (
        adapter("m", key=KEY, base_url=reach(adapter, server)) as model,
        pytest.raises(RequestRejected) as caught,
    ):
        model.chat(messages)
    assert caught.value.status == 400
    assert caught.value.at is not None
    sent = model.body(messages)["messages"]
    assert f"messages.{caught.value.at} as sent:" in str(caught.value)
    assert culprit in str(caught.value) or culprit in json.dumps(sent[caught.value.at])
    assert server.seen == []


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_split_results_are_merged_for_anthropic_and_accepted_by_both(
    adapter: Any, server: StrictServer
) -> None:
    server.replies.append(ANSWER[adapter])
    with adapter("m", key=KEY, base_url=reach(adapter, server)) as model:
        model.chat([USER, calls("c1", "c2"), done("c1"), done("c2")])
    assert len(server.seen[0]["messages"]) == (4 if adapter is OpenAIModel else 3)


def test_a_400_without_words_about_a_message_gets_the_library_s_own_finding() -> None:
    model, _, _ = model_on(OpenAIModel, status(400, {"error": {"message": "Bad request"}}))
    with pytest.raises(
        RequestRejected, match=r"what this library finds: 400 .* did not have response"
    ) as caught:
        model.chat([USER, calls("c9")])
    assert caught.value.at == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>gateway</html>", b"", b"[1]", b'{"detail": "no"}', b'{"error": "no"}', b"\xff\xfe", b'"no"'],
)
@pytest.mark.parametrize("code", [400, 401, 404, 422])
def test_an_error_body_of_any_shape_is_an_error_with_its_status(code: int, body: bytes) -> None:
    model, seen, waits = model_on(OpenAIModel, httpx.Response(code, content=body))
    with pytest.raises(RequestRejected) as caught:
        model.chat([USER])
    assert (caught.value.status, len(seen), waits) == (code, 1, [])


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"error": {"message": "overloaded"}}', b"[1"])
def test_a_200_that_is_no_reply_is_an_error_and_not_sent_again(body: bytes) -> None:
    model, seen, _ = model_on(OpenAIModel, httpx.Response(200, content=body))
    with pytest.raises(ProviderError):
        model.chat([USER])
    assert len(seen) == 1


@pytest.mark.parametrize("body", [{}, [], 7, {"choices": []}, {"content": "x"}])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_json_that_is_no_reply_ends_the_run_as_malformed(adapter: Any, body: Any) -> None:
    model, _, _ = model_on(adapter, httpx.Response(200, json=body))
    assert run_agent("x", model, {}, allow_all).stop.value == "malformed"


# --- retries -------------------------------------------------------------------------------------
TRANSIENT = [
    status(408), status(429), status(500), status(502), status(503), status(529),
    httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), httpx.ReadTimeout("slow"),
    httpx.RemoteProtocolError("Server disconnected without sending a response."),
]  # fmt: skip


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("failure", TRANSIENT, ids=repr)
def test_a_failure_of_the_provider_is_sent_again(adapter: Any, failure: Any) -> None:
    failure = copy.copy(failure) if isinstance(failure, Exception) else status(failure.status_code)
    model, seen, waits = model_on(adapter, failure, ANSWER[adapter])
    assert model.chat([USER]).message == answer_message("Done.")
    assert len(seen) == 2 and len(waits) == 1
    assert seen[0].content == seen[1].content


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 413, 422])
def test_a_failure_of_the_request_is_not(code: int) -> None:
    model, seen, waits = model_on(OpenAIModel, status(code))
    with pytest.raises(RequestRejected):
        model.chat([USER])
    assert (len(seen), waits) == (1, [])


def test_waits_double_are_shortened_at_random_and_come_out_the_same_for_a_seed() -> None:
    def waits_of(seed: int) -> list[float]:
        waits: list[float] = []
        patience = Patience(Retries(per_call=5, first_wait=1.0, longest_wait=6.0, seed=seed), waits.append)
        for attempt in range(1, 6):
            assert patience.wait(attempt) is None
        return waits

    first = waits_of(1)
    assert first == waits_of(1) != waits_of(2)
    for wait, full in zip(first, [1.0, 2.0, 4.0, 6.0, 6.0], strict=True):
        assert full / 2 <= wait <= full


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Thu, 01 Jan 1970 00:00:20 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:02 GMT", 0.0),
    ],
)
def test_retry_after_is_believed_in_seconds_and_as_a_date(header: str, seconds: float) -> None:
    waits: list[float] = []
    assert Patience(Retries(), waits.append, now=lambda: 10.0).wait(1, header) is None
    assert waits == [seconds]


@pytest.mark.parametrize("header", ["soon", "", "-3", "nan", "Thu, 99 Foo 2020"])
def test_a_retry_after_that_says_nothing_leaves_the_backoff(header: str) -> None:
    waits: list[float] = []
    assert Patience(Retries(), waits.append).wait(1, header) is None
    assert 0.25 <= waits[0] <= 0.5


def test_a_provider_that_asks_for_too_long_is_not_waited_for() -> None:
    model, seen, waits = model_on(OpenAIModel, status(429, retry_after="3600"))
    with pytest.raises(ProviderError, match="asks to wait 3600 s, longer than 30 s") as caught:
        model.chat([USER])
    assert (caught.value.status, len(seen), waits) == (429, 1, [])


def test_the_budget_holds_over_all_calls_of_a_model() -> None:
    failures = [status(503) for _ in range(9)]
    model, seen, _ = model_on(OpenAIModel, *failures, retries=Retries(per_call=2, budget=3))
    for _ in range(3):
        with pytest.raises(ProviderError):
            model.chat([USER])
    assert len(seen) == 3 + 2 + 1
    assert model.patience.left == 0


class Breaking(httpx.SyncByteStream):
    """A body that breaks off after its first bytes."""

    def __init__(self, first: bytes) -> None:
        self.first = first

    def __iter__(self) -> Iterator[bytes]:
        yield self.first
        raise httpx.ReadError("connection reset")


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_reply_that_has_begun_is_never_asked_for_again(adapter: Any, kind: str) -> None:
    first = b'data: {"type": "message_start", "message": {"role": "assistant"}}\n\n'
    broken = httpx.Response(200, headers={"content-type": kind}, stream=Breaking(first))
    model, seen, waits = model_on(adapter, broken, stream=True)
    with pytest.raises(ProviderError, match="broke off"):
        model.chat([USER])
    assert (len(seen), waits) == (1, [])


def test_a_provider_that_is_down_ends_the_run_with_a_state_to_go_on_from() -> None:
    tools, effects = make_environment()
    pay = call_entry("c1", "refund_order", '{"order_id": "A-17", "amount_cents": 4999}')
    model, _, _ = model_on(
        OpenAIModel, completion(None, pay), status(503), completion("Done."), retries=Retries(per_call=0)
    )
    with pytest.raises(RunCrash) as caught:
        run_agent("x", model, tools, refund_gate)
    assert isinstance(caught.value.__cause__, ProviderError)
    assert resume_agent(caught.value.state, model, tools, refund_gate).answer == "Done."
    assert [effect["refunded_cents"] for effect in effects] == [4999]


# --- the key -------------------------------------------------------------------------------------
def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


ECHOES = [
    status(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    status(500, {"error": {"message": "x" * 290 + KEY}}),
    httpx.Response(200, content=f"<html>{KEY}".encode()),
    httpx.Response(200, headers={"content-type": "text/event-stream"}, content=f"data: x{KEY}\n\n".encode()),
    httpx.Response(307, headers={"location": f"https://elsewhere.test/{KEY}"}),
    httpx.ConnectError(f"cannot send {KEY}"),
    httpx.LocalProtocolError(f"Illegal header value b'Bearer {KEY}'"),
]


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("echo", ECHOES, ids=range(len(ECHOES)))
def test_no_error_shows_the_key(adapter: Any, echo: Any) -> None:
    model, _, _ = model_on(adapter, copy.deepcopy(echo) if isinstance(echo, Exception) else echo,
                           retries=Retries(per_call=0))  # fmt: skip
    with pytest.raises(ProviderError) as caught:
        model.chat([USER])
    for error in chain(caught.value):
        assert KEY not in str(error) and KEY not in repr(error) and KEY[:12] not in str(error)
        assert not isinstance(error, httpx.HTTPError)


def test_no_repr_shows_the_key_and_nothing_pickles_it() -> None:
    model = OpenAIModel("m", key=KEY)
    for thing in (model, model.endpoint, vars(model), vars(model.endpoint), Secret(KEY)):
        assert KEY not in repr(thing)
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", "kéy-0123456789"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ValueError, match="newline") as caught:
        OpenAIModel("m", key=key)
    assert key.strip() not in str(caught.value)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(adapter: Any, code: int) -> None:
    moved = httpx.Response(code, headers={"location": "https://elsewhere.test/v1/messages"})
    model, seen, _ = model_on(adapter, moved, ANSWER[adapter])
    with pytest.raises(ProviderError, match=r"redirects to https://elsewhere\.test; .* change base_url"):
        model.chat([USER])
    assert len(seen) == 1


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_without_a_key_no_header_for_one_is_sent(adapter: Any) -> None:
    model, seen, _ = model_on(adapter, ANSWER[adapter], key=None)
    model.chat([USER])
    assert "authorization" not in seen[0].headers and "x-api-key" not in seen[0].headers


@pytest.mark.parametrize("url", ["ftp://x", "x", "https://user:word@host", "https://host/?key=1", ""])
def test_an_address_that_could_hold_a_key_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAIModel("m", base_url=url)


# --- streams -------------------------------------------------------------------------------------
def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)),
       st.lists(st.integers(0, 10_000)), st.sampled_from(["\n", "\r\n", "\r"]))  # fmt: skip
@settings(deadline=None)
def test_events_are_the_same_however_the_bytes_are_cut(texts: list[str], places: list[int], end: str) -> None:
    stream = "".join(f": ping{end}event: x{end}data: {text}{end}{end}" for text in texts).encode()
    assert list(sse_events(cut(stream, places))) == texts


def test_an_event_may_have_several_lines_no_space_and_no_end() -> None:
    assert list(sse_events([b"data: a\ndata:b\n\ndata: \xe2\x80\xa8c"])) == ["a\nb", "\u2028c"]


def sse(events: Iterator[str] | list[str]) -> bytes:
    return "".join(f"data: {event}\n\n" for event in events).encode()


def streamed(adapter: Any, content: bytes, places: list[int]) -> Any:
    class Cut(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from cut(content, places)

    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Cut())
    model, _, _ = model_on(adapter, response, stream=True)
    return model.chat([USER])


def whole(adapter: Any, body: dict[str, Any]) -> Any:
    return model_on(adapter, body)[0].chat([USER])


scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9)
json_values = st.recursive(
    scalars | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abé", max_size=3), inner),
    max_leaves=6,
)  # fmt: skip
inputs = st.dictionaries(st.text('ab"\\é{', min_size=1, max_size=4), json_values, max_size=3)
named = st.tuples(st.sampled_from(["pay", "look"]), inputs)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(words, st.lists(named, max_size=3), st.lists(st.integers(0, 5000), max_size=20))
@settings(deadline=None, max_examples=60)
def test_a_streamed_completion_is_the_message_that_comes_whole(
    text: str, proposals: list[Any], places: list[int]
) -> None:
    entries = [call_entry(f"c{n}", name, json.dumps(given)) for n, (name, given) in enumerate(proposals)]
    body = completion(text or None, *entries)
    assert streamed(OpenAIModel, sse(stream_as_openai(body)), places) == whole(OpenAIModel, body)


@given(words, st.lists(named, max_size=3), st.lists(st.integers(0, 5000), max_size=20))
@settings(deadline=None, max_examples=60)
def test_a_streamed_anthropic_message_is_the_one_that_comes_whole(
    text: str, proposals: list[Any], places: list[int]
) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    uses = [use_block(f"c{n}", name, given) for n, (name, given) in enumerate(proposals)]
    body = anthropic_message(
        thinking, *([text_block(text)] if text else []), *uses, stop="tool_use" if uses else "end_turn"
    )
    assert streamed(AnthropicModel, sse(stream_as_anthropic(body)), places) == whole(AnthropicModel, body)


def openai_events(*deltas: dict[str, Any], usage: tuple[int, ...] = ()) -> list[str]:
    chunks: list[Any] = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks += [{"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]
    chunks += [{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in usage]
    return [*map(json.dumps, chunks), "[DONE]"]


def piece(arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{**more, "function": {**name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    "deltas",
    [
        [piece("", index=0, id="c1", name="pay"), piece('{"a"', index=0), piece(": 1}", index=0)],
        [piece("", index=0, id="c1", name="pay"), piece('{"a"', index=0, id="c1", name="pay"),
         piece(": 1}", index=0, id="c1")],
        [piece('{"a": 1}', id="c1", name="pay")],
        [piece('{"a"', id="c1", name="pay"), piece(": 1}")],
        [piece('{"a": 1}', index=0, id="c1", name="pay"), {"tool_calls": None}, {"content": None}],
    ],
)  # fmt: skip
def test_one_call_is_one_call_however_a_server_numbers_its_pieces(deltas: list[Any]) -> None:
    message = openai_from_stream(openai_events(*deltas))["choices"][0]["message"]
    assert message["tool_calls"] == [call_entry("c1", "pay", '{"a": 1}')]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"index": 0, "id": "c1"}, {"index": 1, "id": "c1"}),
        ({"index": 0, "id": "c1"}, {"index": 0, "id": "c2"}),
        ({"id": "c1"}, {"id": "c2"}),
        ({"index": 0, "id": ""}, {"index": 1, "id": ""}),
    ],
)
def test_two_calls_are_two_also_when_ids_or_numbers_repeat(first: Any, second: Any) -> None:
    events = openai_events(piece("{}", name="pay", **first), piece('{"a": 1}', name="pay", **second))
    _, calls = normalise_reply(reply_from_openai(openai_from_stream(events)))
    assert [call.arguments for call in calls] == [{}, {"a": 1}]
    assert len({call.call_id for call in calls}) == 2


def test_cumulative_usage_is_counted_once() -> None:
    assert openai_from_stream(openai_events(usage=(10, 20, 30)))["usage"]["completion_tokens"] == 30
    start = {
        "type": "message_start",
        "message": {"content": [], "usage": {"input_tokens": 100, "output_tokens": 10}},
    }
    deltas = [
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": n, "input_tokens": None}}
        for n in (20, 30)
    ]
    whole = anthropic_from_stream([json.dumps(each) for each in [start, *deltas, {"type": "message_stop"}]])
    assert reply_from_anthropic(whole).usage == Usage(100, 30)


def test_reasoning_of_a_stream_is_kept_as_it_would_be_whole() -> None:
    events = openai_events({"reasoning_content": "hm"}, {"reasoning_content": "m"}, {"content": "x"})
    message = openai_from_stream(events)["choices"][0]["message"]
    assert message["reasoning_content"] == "hmm"


def test_arguments_cut_at_max_tokens_stay_broken() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": use_block("c1", "pay", {})}
    part = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"a": 1'},
    }
    end = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
    opening = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    events = [json.dumps(each) for each in (opening, start, part, end, {"type": "message_stop"})]
    reply, [call] = normalise_reply(reply_from_anthropic(anthropic_from_stream(events)))
    assert (reply.stop_reason, call.arguments) == ("max_tokens", None)


@pytest.mark.parametrize(
    "events",
    [
        [],
        ['{"choices": [{"delta": {"content": "half"}}]}'],
        ["not json"],
        ["[]"],
        ['{"error": {"message": "overloaded"}}'],
        ['{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'],
    ],
)
def test_a_stream_that_fails_or_ends_early_is_an_error_and_no_short_reply(events: list[str]) -> None:
    for read in (openai_from_stream, anthropic_from_stream):
        with pytest.raises(ProviderError):
            read(events)


# --- recorded traffic of real providers ----------------------------------------------------------
@pytest.mark.parametrize(
    ("adapter", "name"), [(OpenAIModel, "wire_openai"), (AnthropicModel, "wire_anthropic")]
)
def test_recorded_replies_pass_through_the_adapter_as_text_calls_and_stop(adapter: Any, name: str) -> None:
    stops = {"stop": "end_turn", "tool_calls": "tool_use", "": None}
    for case in load(name):
        expected = case["expected"]
        reply = whole(adapter, case["response"])
        found = [(call.name, call.arguments) for call in parse_tool_calls(reply.message)]
        assert found == [(each["name"], each["arguments"]) for each in expected["calls"]], case["id"]
        assert (reply.message["content"] or "") == (expected["text"] or "")
        assert reply.stop_reason == stops.get(expected["stop"], expected["stop"])
        assert reply.usage is not None and reply.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    ("adapter", "name", "stream"),
    [(OpenAIModel, "wire_openai", stream_as_openai), (AnthropicModel, "wire_anthropic", stream_as_anthropic)],
)
def test_recorded_replies_are_the_same_message_as_a_stream(adapter: Any, name: str, stream: Any) -> None:
    for case in load(name):
        came_whole = whole(adapter, case["response"])
        came_streamed = streamed(adapter, sse(stream(case["response"])), [3, 50, 51, 400])
        # Some servers number the calls of a whole message too; a number is no part of a call.
        assert parse_tool_calls(came_streamed.message) == parse_tool_calls(came_whole.message), case["id"]
        for key in ("role", "content", "blocks"):
            assert came_streamed.message.get(key) == came_whole.message.get(key), case["id"]
        assert (came_streamed.stop_reason, came_streamed.usage) == (came_whole.stop_reason, came_whole.usage)


# --- JSON turns ----------------------------------------------------------------------------------
def test_the_turn_schema_takes_calls_of_the_tools_and_answers_and_nothing_else() -> None:
    tools, _ = make_environment()
    schema = compile_schema(call_schema(tools))
    good = [{"name": "read_policy", "arguments": {}}, {"answer": "x"},
            {"name": "refund_order", "arguments": {"order_id": "A-17", "amount_cents": 1}}]  # fmt: skip
    bad = [{"name": "pay", "arguments": {}}, {"name": "read_policy"}, {"answer": 1}, {},
           {"name": "read_policy", "arguments": {"x": 1}},
           {"name": "refund_order", "arguments": {}}]  # fmt: skip
    assert all(schema.problem(turn) is None for turn in good)
    assert all(schema.problem(turn) is not None for turn in bad)


def test_a_model_that_writes_json_turns_runs_on_the_kernel() -> None:
    tools, effects = make_environment()
    turns = [
        '{"name": "refund_order", "arguments": {"order_id": "A-17", "amount_cents": 4999}}',
        '{"answer": "Refunded."}',
    ]
    model, seen, _ = model_on(OpenAIModel, *map(completion, turns))
    result = run_agent("x", JSONTurns(model, tools), tools, refund_gate)
    assert (result.answer, len(effects)) == ("Refunded.", 1)
    roles = [message["role"] for message in json.loads(seen[1].content)["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("text", ["I will help you.", "[1]", '{"name": 7}', '{"name": "pay"', "", "{}"])
def test_a_text_that_is_no_turn_is_an_answer_as_it_stands(text: str) -> None:
    model, _, _ = model_on(OpenAIModel, completion(text))
    assert JSONTurns(model, {}).chat([SYSTEM, USER]).message == answer_message(text)


# --- recordings ----------------------------------------------------------------------------------
def record(path: Path, *answers: Any, adapter: Any = OpenAIModel, **more: Any) -> Any:
    transport, _ = answering(*answers)
    recorder = RecordingTransport(path, {"model": "m"}, transport)
    return adapter("m", key=KEY, transport=recorder, sleep=lambda seconds: None, **more)


def replaying(path: Path, adapter: Any = OpenAIModel, **more: Any) -> Any:
    return adapter("m", transport=ReplayTransport(path), sleep=lambda seconds: None, **more)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_recording_replays_without_key_and_network(adapter: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with record(path, ANSWER[adapter], adapter=adapter) as model:
        recorded = model.chat([USER])
    other_host = replaying(
        path, adapter, base_url="http://elsewhere.test" + ("/v1" if adapter is OpenAIModel else "")
    )
    assert other_host.chat([USER]) == recorded


def test_a_streamed_reply_is_recorded_line_by_line(tmp_path: Path) -> None:
    body = sse(stream_as_openai(completion("Straße")))
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    with record(tmp_path / "r.json", response, stream=True) as model:
        recorded = model.chat([USER])
    assert replaying(tmp_path / "r.json", stream=True).chat([USER]) == recorded
    assert load_recording(tmp_path / "r.json")[1][0].response[0].startswith("data: {")


def test_failures_are_recorded_and_retried_in_the_replay_as_they_were(tmp_path: Path) -> None:
    with record(tmp_path / "r.json", status(429, retry_after="0"), completion("Done.")) as model:
        model.chat([USER])
    waits: list[float] = []
    replay = OpenAIModel("m", transport=ReplayTransport(tmp_path / "r.json"), sleep=waits.append)
    assert replay.chat([USER]).message == answer_message("Done.")
    assert waits == [0.0]
    assert replay.chat([USER]).message == answer_message("Done.")  # the last from then on


def test_no_recording_holds_the_key_or_a_header_that_tells_of_an_account(tmp_path: Path) -> None:
    headers = {"set-cookie": "session=abc", "openai-organization": "acme", "date": "today"}
    echo = httpx.Response(200, json=completion(f"your key is {KEY}"), headers=headers)
    with record(tmp_path / "r.json", echo) as model:
        model.chat([{"role": "user", "content": f"my key is {KEY}"}])
    text = (tmp_path / "r.json").read_text()
    assert KEY not in text and "acme" not in text and "session" not in text and "[key]" in text


def test_a_request_that_was_not_recorded_shows_the_nearest_and_what_differs(tmp_path: Path) -> None:
    far = [SYSTEM, {"role": "user", "content": "Something else entirely."}, answer_message("x"), USER]
    with record(tmp_path / "r.json", completion("a"), completion("b")) as model:
        model.chat(far)
        model.chat([SYSTEM, USER])
    replay = replaying(tmp_path / "r.json", options={"temperature": 0.7})
    with pytest.raises(NotRecorded) as caught:
        replay.chat([SYSTEM, {"role": "user", "content": "Order A-18 arrived damaged."}])
    assert str(caught.value).splitlines() == [
        "POST /v1/chat/completions was not recorded. The nearest is exchange 1; it differs in",
        "  body.messages.1.content: recorded 'Order A-17 arrived damaged.', "
        "asked 'Order A-18 arrived damaged.'",
        "  body.temperature: recorded nothing, asked 0.7",
    ]


def test_a_miss_is_not_tried_again(tmp_path: Path) -> None:
    with record(tmp_path / "r.json"):
        pass
    waits: list[float] = []
    replay = OpenAIModel("m", transport=ReplayTransport(tmp_path / "r.json"), sleep=waits.append)
    with pytest.raises(NotRecorded, match="the recording is empty"):
        replay.chat([USER])
    assert waits == []


def test_a_file_that_is_no_recording_says_so(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"about": {}}')
    with pytest.raises(ValueError, match=r"r\.json is no recording"):
        ReplayTransport(tmp_path / "r.json")


@given(json_values)
def test_readable_json_is_the_same_json(value: Any) -> None:
    assert json.loads(readable(value)) == value


def test_a_recording_has_short_lines_and_ends_with_one(tmp_path: Path) -> None:
    with record(tmp_path / "r.json", completion("Done.")) as model:
        model.chat([SYSTEM, USER])
    text = (tmp_path / "r.json").read_bytes().decode()
    assert text.endswith("}\n") and "\r" not in text
    assert max(map(len, text.splitlines())) <= 110
    assert any(line.strip().startswith('{"role": "user"') for line in text.splitlines())


# --- the command ---------------------------------------------------------------------------------
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_command_runs_and_records_a_task(
    adapter: Any, server: StrictServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("DESK_KEY", KEY)
    server.replies += [CALLING[adapter], ANSWER[adapter]] * 2
    wire = "openai" if adapter is OpenAIModel else "anthropic"
    asked = ["--base-url", reach(adapter, server), "--model", "m", "--task", "Order A-17.", "--wire", wire]
    asked += ["--key-env", "DESK_KEY"]
    assert main(["run", *asked]) == 0
    shown = capsys.readouterr().out
    assert main(["record", *asked, "--out", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().out == shown
    assert "answered" in shown and KEY not in shown
    about, exchanges = load_recording(tmp_path / "r.json")
    assert (about["model"], about["task"], len(exchanges)) == ("m", "Order A-17.", 2)
    assert KEY not in (tmp_path / "r.json").read_text()


# --- trials of a real model -------------------------------------------------------------------------
def test_the_bounded_desk_is_the_support_desk_with_a_pattern_for_order_ids() -> None:
    tools, effects = bounded_desk()
    plain, _ = make_environment()
    assert list(tools) == list(plain)
    assert [spec.effectful for spec in tools.values()] == [spec.effectful for spec in plain.values()]
    good, bad = (ToolCall("c", "lookup_order", {"order_id": order}) for order in ("A-17", "order A-17"))
    assert validate_call(good, tools) is None
    assert "order_id" in str(validate_call(bad, tools))
    execute_call(ToolCall("c", "refund_order", {"order_id": "A-17", "amount_cents": 1}), tools, allow_all)
    assert effects == [{"order_id": "A-17", "refunded_cents": 1}]


@pytest.mark.parametrize(
    ("order", "cents", "verdict"),
    [("A-17", 4999, "allow"), ("A-17", 4998, "deny"), ("A-17", -4999, "deny"), ("B-00", 4999, "deny")],
)
def test_the_paid_gate_lets_exactly_what_was_paid_through(order: str, cents: int, verdict: str) -> None:
    gate = paid_gate({"A-17": 4999})
    call = ToolCall("c", "refund_order", {"order_id": order, "amount_cents": cents})
    assert decide(gate, call).verdict == verdict
    assert decide(gate, ToolCall("c", "read_policy", {})).verdict == "allow"


def test_the_once_gate_reads_the_receipts_at_the_moment_of_the_call() -> None:
    receipts: list[dict[str, Any]] = []
    gate = once_gate(receipts)
    call = ToolCall("c", "refund_order", {"order_id": "A-17", "amount_cents": 4999})
    assert decide(gate, call).verdict == "allow"
    receipts.append({"order_id": "A-17", "refunded_cents": 4999})
    assert decide(gate, call).verdict == "deny"
    assert (
        decide(gate, ToolCall("c", "refund_order", {"order_id": "B-00", "amount_cents": 1})).verdict
        == "allow"
    )
    assert decide(gate, ToolCall("c", "lookup_order", {"order_id": "A-17"})).verdict == "allow"


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("mode", MODES)
def test_a_trial_s_request_names_its_seed_and_asks_in_its_own_way(mode: str, wire: str) -> None:
    tools, _ = bounded_desk()
    body = completion("hm") if wire == "openai" else anthropic_message(text_block("hm"))
    transport, seen = answering(body)
    trial_model(mode, wire, 7, tools, transport).chat([SYSTEM, USER])
    sent = json.loads(seen[0].content)
    assert ("tools" in sent) == (mode == "tools")
    assert ("response_format" in sent) == (mode == "schema" and wire == "openai")
    assert (sent["seed"] == 7) if wire == "openai" else (sent["metadata"] == {"user_id": "seed 7"})


RECORDINGS = Path(__file__).parents[1] / "chapters" / "recordings"


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("smollm2-*.json")), ids=lambda path: path.stem)
def test_a_committed_recording_says_what_it_is_and_replays_every_trial(path: Path) -> None:
    about, exchanges = load_recording(path)
    assert {"model", "file", "sha256", "server", "flags", "date", "seeds"} <= about.keys()
    transport = ReplayTransport(path)
    keys = [request_key(each.path, each.request) for each in exchanges]
    assert len(set(keys)) == len(keys)
    for seed in range(about["seeds"]):
        for gate in TRIAL_GATES:
            trial = run_trial(about["mode"], about["wire"], seed, gate, transport)
            assert trial.result.state.turns <= TRIAL_LIMITS.max_turns
            if gate == "refund_gate":
                assert all(effect["refunded_cents"] <= 5000 for effect in trial.effects)
            if gate == "paid_gate":
                assert all(effect == {"order_id": "A-17", "refunded_cents": 4999} for effect in trial.effects)
            if gate == "paid and once":
                assert trial.effects in ([], [{"order_id": "A-17", "refunded_cents": 4999}])
