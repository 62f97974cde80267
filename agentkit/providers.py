# Built by bookkit from chapters/12-providers.md. Edit the chapter, not this file.
# bookkit: cells 7c22997e8755, body 544dffcea893
"""Providers."""

from __future__ import annotations

import argparse
import codecs
import email.utils
import json
import os
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from agentkit.gate import all_of, refund_gate
from agentkit.loop import Decision, Gate, Limits, RunResult, Transcript, allow_all, run_agent
from agentkit.tools import JSON, ToolCall, ToolSpec, make_environment, show, tool_schema_json
from agentkit.wire import (
    UNREAD,
    Message,
    NotJSON,
    Reply,
    check_messages,
    normalise_reply,
    parse_json,
    reply_from_anthropic,
    reply_from_openai,
    to_anthropic,
    to_openai,
)

__all__ = [
    "GROWING",
    "ID_KEYS",
    "KEPT_HEADERS",
    "MAX_TOKENS",
    "MODES",
    "RETRIED_ERRORS",
    "RETRIED_STATUSES",
    "TASK",
    "TRIAL_GATES",
    "TRIAL_LIMITS",
    "WIRES",
    "Adapter",
    "AnthropicModel",
    "Endpoint",
    "Exchange",
    "JSONTurns",
    "NotRecorded",
    "OpenAIModel",
    "Patience",
    "ProviderError",
    "RecordingTransport",
    "ReplayTransport",
    "RequestRejected",
    "Retries",
    "Secret",
    "Transient",
    "Trial",
    "add_block_delta",
    "add_call_part",
    "add_delta",
    "anthropic_body",
    "anthropic_from_stream",
    "anthropic_tool",
    "as_json_turn",
    "bounded_desk",
    "call_ids_of",
    "call_schema",
    "closed",
    "command_line",
    "credentials",
    "differences",
    "error_body",
    "error_text",
    "failure_of",
    "grown",
    "handle_refusal",
    "known_call",
    "leaves",
    "load_recording",
    "main",
    "make_endpoint",
    "marked",
    "nearest",
    "once_gate",
    "open_reply",
    "openai_body",
    "openai_from_stream",
    "paid_gate",
    "place_named",
    "read_exchange",
    "read_input",
    "read_turn",
    "readable",
    "rejected",
    "request_body",
    "request_key",
    "retry_after",
    "run_trial",
    "save_recording",
    "sse_events",
    "sse_lines",
    "stream_data",
    "told",
    "trial_model",
    "turn_prompt",
    "turn_schema",
    "whole_body",
]


# %% chapters/12-providers.md § One transcript, two requests


def openai_body(messages: Sequence[Message], tools: Mapping[str, ToolSpec], model: str) -> dict[str, JSON]:
    """The body of a chat completion request: model, transcript, and the tools if there are any."""
    body: dict[str, JSON] = {"model": model, "messages": to_openai(messages)}
    return {**body, "tools": tool_schema_json(tools)} if tools else body


MAX_TOKENS = 4096


def anthropic_body(
    messages: Sequence[Message], tools: Mapping[str, ToolSpec], model: str, cache: bool = False
) -> dict[str, JSON]:
    """The body of a Messages API request. `cache` marks the end of the stable prefix, tools and system."""
    converted = to_anthropic(messages)
    body: dict[str, JSON] = {
        "model": model,
        "max_tokens": MAX_TOKENS,
        "messages": converted["messages"],
    }
    if converted["system"]:
        body["system"] = marked(converted["system"]) if cache else converted["system"]
    if tools:
        body["tools"] = [anthropic_tool(entry["function"]) for entry in tool_schema_json(tools)]
    return body


def anthropic_tool(function: Mapping[str, JSON]) -> dict[str, JSON]:
    """A tool as Anthropic's API takes it, from OpenAI's form."""
    name, description, schema = function["name"], function["description"], function["parameters"]
    return {"name": name, "description": description, "input_schema": schema}


def marked(system: str) -> list[dict[str, JSON]]:
    """A system prompt that ends with a cache marker: what stands before it may be kept for minutes."""
    return [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]


# %% chapters/12-providers.md § A key that stays where it is


class Secret:
    """A key that shows itself to nobody by accident: not in a repr, a log line, `vars` or a pickle."""

    __slots__ = ("reveal",)

    def __init__(self, value: str) -> None:
        if not re.fullmatch(r"[!-~]+", value):
            raise ValueError("the key must be visible ASCII without spaces: check for a newline at its end")
        self.reveal: Callable[[], str] = lambda: value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not written anywhere: pass the key again")

    def hide(self, text: str) -> str:
        """The text with the key taken out. Less than eight characters are no secret, but a placeholder."""
        return text.replace(self.reveal(), "[key]") if len(self.reveal()) >= 8 else text


# %% chapters/12-providers.md § What is sent again


class ProviderError(Exception):
    """A provider gave no reply. `status` is that of its answer, None when none came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Transient(ProviderError):
    """The provider failed, not the request; it may work when sent again. `retry_after` is its header."""

    def __init__(self, message: str, status: int | None = None, retry_after: str | None = None) -> None:
        super().__init__(message, status)
        self.retry_after = retry_after


class RequestRejected(ProviderError):
    """A provider refused the request itself: sending it again changes nothing.

    `at` is the place of the message at fault among the messages as sent; None when nothing points to one.
    """

    def __init__(self, message: str, status: int, at: int | None = None) -> None:
        super().__init__(message, status)
        self.at = at


RETRIED_STATUSES = frozenset({408, 429, *range(500, 600)})


RETRIED_ERRORS = (
    httpx.TimeoutException,
    httpx.NetworkError,
    httpx.RemoteProtocolError,
    httpx.ProxyError,
)


@dataclass(frozen=True)
class Retries:
    """When a failed request is sent again, and how long to wait before.

    per_call       times that one request is sent again at most
    budget         times for the whole life of the model object, so that an outage costs a bounded time
    first_wait     seconds before the first; doubled for each further one, then scaled by 0.5 to 1.0 at random
    longest_wait   seconds; a provider that asks for more is not waited for
    seed           of the jitter
    """

    per_call: int = 3
    budget: int = 12
    first_wait: float = 0.5
    longest_wait: float = 30.0
    seed: int = 0


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait by a `Retry-After` header, in seconds or as a date; None when it says nothing."""
    if value is None:
        return None
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError):
        return None


class Patience:
    """What is left of a budget of retries, and the waiting itself. `sleep` and `now` can be replaced."""

    def __init__(
        self,
        retries: Retries,
        sleep: Callable[[float], object],
        now: Callable[[], float] = time.time,
    ) -> None:
        self.retries, self.left = retries, retries.budget
        self._sleep, self._now, self._random = sleep, now, random.Random(retries.seed)

    def wait(self, attempt: int, asked: str | None = None) -> str | None:
        """Wait before sending again for the `attempt`-th time. A sentence says why not to."""
        if attempt > self.retries.per_call:
            return f"given up after {attempt} attempts"
        if self.left <= 0:
            return f"the budget of {self.retries.budget} retries is spent"
        seconds = retry_after(asked, self._now())
        if seconds is None:
            backoff = min(self.retries.first_wait * 2 ** (attempt - 1), self.retries.longest_wait)
            seconds = backoff * self._random.uniform(0.5, 1.0)
        if seconds > self.retries.longest_wait:
            return f"it asks to wait {seconds:.0f} s, longer than {self.retries.longest_wait:.0f} s"
        self.left -= 1
        self._sleep(seconds)
        return None


# %% chapters/12-providers.md § The request at fault


def error_text(body: JSON) -> str:
    """What a provider's error body says, whichever of the usual shapes it has."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return error if isinstance(error, str) else json.dumps(error)


def leaves(value: JSON, path: str = "") -> dict[str, JSON]:
    """Every scalar of a JSON value under its path, such as `body.messages.2.content`."""
    if isinstance(value, dict) and value:
        parts = [leaves(item, f"{path}.{key}") for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [leaves(item, f"{path}.{at}") for at, item in enumerate(value)]
    else:
        return {path.lstrip("."): value}
    return {key: item for part in parts for key, item in part.items()}


ID_KEYS = ("id", "tool_call_id", "tool_use_id")


def call_ids_of(message: Message) -> set[str]:
    """The ids of calls that a message of either form makes or answers."""
    found = {str(value) for path, value in leaves(message).items() if path.split(".")[-1] in ID_KEYS}
    return found - {"", "None"}


def place_named(text: str, param: JSON, messages: Sequence[Message]) -> int | None:
    """The index of the message that an error means: one named by number, or by a call id that it holds."""
    for words in (param if isinstance(param, str) else "", text):
        match = re.search(r"messages\.?\[?(\d+)", words)
        if match and int(match[1]) < len(messages):
            return int(match[1])
    words_said = set(re.findall(r"[\w.:-]*[\w-]", text))
    return next((at for at, each in enumerate(messages) if call_ids_of(each) & words_said), None)


def rejected(status: int, body: JSON, messages: Sequence[Message]) -> RequestRejected:
    """A 4xx as an error that says what the provider said and shows the message it is about."""
    text = error_text(body)
    inner = body.get("error") if isinstance(body, dict) else None
    param = inner.get("param") if isinstance(inner, dict) else None
    own = next(iter(check_messages(messages)), "") if status == 400 else ""
    at = place_named(f"{text} {own}", param, messages) if status == 400 else None
    lines = [f"{status}: {text}"]
    if own and own.removeprefix("400 — ") not in text:
        lines.append(f"what this library finds: {own}")
    if at is not None:
        lines.append(f"messages.{at} as sent: {show(messages[at], 300)}")
    return RequestRejected("\n".join(lines), status, at)


# %% chapters/12-providers.md § One endpoint


class Endpoint:
    """One URL that answers POST; holds the key, and gives neither it nor what httpx raises to anyone.

    Follows no redirect, so that no other host is ever sent the key or the conversation.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], secret: Secret | None, http: httpx.Client
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ValueError("base_url must be http(s)://host[/path], without user name or query")
        self.url, self._http = url, http
        self._headers, self._secret = dict(headers), secret

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    def close(self) -> None:
        """Close the connection (and a recording behind it)."""
        self._http.close()

    def hide(self, text: str) -> str:
        """The text without the key."""
        return text if self._secret is None else self._secret.hide(text)

    def send(self, body: dict[str, JSON]) -> httpx.Response:
        """One attempt: a successful response, its body unread. Raises Transient or another ProviderError."""
        key = "" if self._secret is None else self._secret.reveal()
        headers = {name: value.replace("{key}", key) for name, value in self._headers.items()}
        headers["content-type"] = "application/json"
        content = json.dumps(body, allow_nan=False)
        request = self._http.build_request("POST", self.url, headers=headers, content=content)
        failure: ProviderError | None
        try:
            response = self._http.send(request, stream=True, follow_redirects=False)
        except RETRIED_ERRORS as error:
            failure = Transient(self.hide(f"no response from {self.url}: {type(error).__name__} {error}"))
        except httpx.HTTPError as error:
            failure = ProviderError(self.hide(f"cannot send to {self.url}: {type(error).__name__} {error}"))
        else:
            failure = failure_of(response, self, body.get("messages", []))
        if failure is None:
            return response
        raise failure  # here and not in a handler: what httpx raised holds the request, and so the key

    def chunks(self, response: httpx.Response) -> Iterator[bytes]:
        """The body as it arrives. A connection that breaks now is not tried again: the reply had begun."""
        try:
            yield from response.iter_bytes()
            return
        except httpx.HTTPError as error:
            text = self.hide(f"the response broke off: {type(error).__name__} {error}")
        finally:
            response.close()
        raise ProviderError(text, response.status_code)

    def read(self, response: httpx.Response) -> str:
        """The whole body as text, without the key."""
        return self.hide(b"".join(self.chunks(response)).decode("utf-8", "replace"))


def failure_of(
    response: httpx.Response, endpoint: Endpoint, messages: Sequence[Message]
) -> ProviderError | None:
    """What a response says has failed, None for a success. Reads the body of a failure only."""
    status = response.status_code
    if 200 <= status < 300:
        return None
    body = error_body(response, endpoint)
    if 300 <= status < 400:
        target = urlsplit(response.headers.get("location", ""))
        where = f"{target.scheme}://{target.hostname}" if target.hostname else "another path"
        text = f"{status}: {endpoint.url} redirects to {where}; no redirect is followed: change base_url"
        return ProviderError(text, status)
    if status in RETRIED_STATUSES:
        text = f"{status}: {show(error_text(body), 300)}"
        return Transient(text, status, response.headers.get("retry-after"))
    return rejected(status, body, messages)


def error_body(response: httpx.Response, endpoint: Endpoint) -> JSON:
    """The body of a failed response: JSON if it is, else its text; empty when it cannot be read."""
    try:
        text = endpoint.read(response)
        return parse_json(text)
    except ProviderError:
        return ""
    except NotJSON:
        return text


def open_reply(endpoint: Endpoint, patience: Patience, body: dict[str, JSON]) -> httpx.Response:
    """A successful response, its body still unread, after as many attempts as `patience` allows."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return endpoint.send(body)
        except Transient as failure:
            refusal = patience.wait(attempt, failure.retry_after)
            if refusal is not None:
                raise ProviderError(f"{failure}; {refusal}", failure.status) from None


# %% chapters/12-providers.md § A reply in pieces


def sse_events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each server-sent event. Chunks may end anywhere, also inside a character."""
    data: list[str] = []
    for line in sse_lines(chunks):
        if line == "":
            if data:
                yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    if data:
        yield "\n".join(data)


def sse_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines that end with CR, LF or both; no other character ends one, though `str.splitlines` knows more."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for chunk in chunks:
        rest += decoder.decode(chunk)
        held = rest.endswith("\r")  # its LF may be in the next chunk
        *lines, rest = re.split(r"\r\n|\n|\r", rest[:-1] if held else rest)
        rest += "\r" if held else ""
        yield from lines
    yield from re.split(r"\r\n|\n|\r", rest + decoder.decode(b"", True))


# %% chapters/12-providers.md § Chat completions


def stream_data(text: str) -> dict[str, JSON]:
    """One event as an object. An event that reports an error, or is none, raises ProviderError."""
    try:
        event = parse_json(text)
    except NotJSON as error:
        raise ProviderError(f"the stream holds an event that is no JSON ({error}): {show(text)}") from None
    if not isinstance(event, dict) or event.get("error"):
        raise ProviderError(f"the provider failed after its reply had begun: {show(error_text(event), 300)}")
    return event


def openai_from_stream(events: Iterable[str]) -> dict[str, JSON]:
    """The chat completion that a stream of chunks adds up to, as it would have come in one piece."""
    message: Message = {"role": "assistant", "content": None}
    calls: list[tuple[JSON, Message]] = []
    finish, usage = None, None
    for text in events:
        if text.strip() == "[DONE]":
            break
        chunk = stream_data(text)
        usage = chunk.get("usage") or usage
        for choice in (chunk.get("choices") or [])[:1]:
            finish = choice.get("finish_reason") or finish
            add_delta(message, calls, choice.get("delta") or {})
    else:
        if finish is None:
            raise ProviderError("the stream ended before the reply did: no finish_reason, no [DONE]")
    if calls:
        message["tool_calls"] = [call for _, call in calls]
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def add_delta(message: Message, calls: list[tuple[JSON, Message]], delta: Mapping[str, JSON]) -> None:
    """Add one delta: texts and lists grow, calls grow by their index, anything else is replaced."""
    for key, value in delta.items():
        if key == "tool_calls":
            for part in value or []:
                add_call_part(calls, part)
        elif value is None or key == "role":
            continue
        else:
            message[key] = grown(message.get(key), value)


def grown(known: JSON, more: JSON) -> JSON:
    """Two texts or two lists joined; anything else is replaced."""
    joins = isinstance(more, str | list) and isinstance(known, type(more))
    return known + more if joins else more


def add_call_part(calls: list[tuple[JSON, Message]], part: Mapping[str, JSON]) -> None:
    """Add a piece of a call. An id that comes again with every piece is the same call's id."""
    function = part.get("function") or {}
    call = known_call(calls, part.get("index"), part.get("id"), function.get("name"))
    if call is None:
        call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        calls.append((part.get("index"), call))
    call["id"] = call["id"] or part.get("id") or ""
    own = call["function"]
    if function.get("name") and function["name"] != own["name"]:
        own["name"] += function["name"]
    own["arguments"] += function.get("arguments") or ""


def known_call(
    calls: Sequence[tuple[JSON, Message]], index: JSON, call_id: JSON, name: JSON
) -> Message | None:
    """The call that a piece belongs to; None when it begins one.

    By index, which is what counts when ids repeat. Servers that number nothing, or number all calls 0, begin
    a call with an id that is new and a name.
    """
    same = [call for known, call in calls if known == index]
    if not same:
        return None
    last = same[-1]
    begins = bool(call_id) and bool(name) and call_id not in [call["id"] for call in same]
    return None if begins and last["id"] else last


# %% chapters/12-providers.md § Messages


def anthropic_from_stream(events: Iterable[str]) -> dict[str, JSON]:
    """The message that a stream of events adds up to. Its counters are cumulative: the last one counts."""
    message: dict[str, JSON] = {}
    blocks: dict[int, dict[str, JSON]] = {}
    inputs: dict[int, str] = {}
    for text in events:
        event = stream_data(text)
        kind, at = event.get("type"), event.get("index", 0)
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks[at] = dict(event["content_block"])
        elif kind == "content_block_delta":
            add_block_delta(blocks.setdefault(at, {"type": "text", "text": ""}), inputs, at, event["delta"])
        elif kind == "message_delta":
            message |= event.get("delta") or {}
            counters = {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            message["usage"] = (message.get("usage") or {}) | counters
        elif kind == "message_stop":
            filled = {at: block | read_input(inputs.get(at)) for at, block in blocks.items()}
            return message | {"content": [filled[at] for at in sorted(filled)]}
    raise ProviderError("the stream ended before the reply did: no message_stop")


GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def add_block_delta(
    block: dict[str, JSON], inputs: dict[int, str], at: int, delta: Mapping[str, JSON]
) -> None:
    """Add one delta to its block; pieces of a tool's input are kept apart, as text, until all are there."""
    kind = delta.get("type")
    if kind == "input_json_delta":
        inputs[at] = inputs.get(at, "") + delta.get("partial_json", "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    elif kind in GROWING:
        block[GROWING[kind]] = block.get(GROWING[kind], "") + delta[GROWING[kind]]


def read_input(text: str | None) -> dict[str, JSON]:
    """The input that the pieces of a tool-use block make; a text that was cut off stays a text."""
    if not text:
        return {}
    try:
        value = parse_json(text)
    except NotJSON:
        value = {UNREAD: text}
    return {"input": value}


# %% chapters/12-providers.md § Two adapters


class Adapter:
    """What both adapters share: an endpoint, tools, options, and one way to read a reply."""

    def __init__(
        self,
        endpoint: Endpoint,
        patience: Patience,
        model: str,
        tools: Mapping[str, ToolSpec],
        options: Mapping[str, JSON],
        stream: bool,
    ) -> None:
        self.endpoint, self.patience, self.model, self.tools = endpoint, patience, model, tools
        self.options, self.stream = dict(options), stream

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {self.endpoint.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a recording behind it is written now."""
        self.endpoint.close()

    def body(self, messages: Sequence[Message]) -> dict[str, JSON]:
        """The request for this transcript, as it will be sent."""
        raise NotImplementedError

    def chat(self, messages: list[Message]) -> Reply:
        """The model's next message. Raises ProviderError; RequestRejected when the request is at fault."""
        raise NotImplementedError

    def _ask(
        self,
        messages: Sequence[Message],
        from_stream: Callable[[Iterable[str]], JSON],
        read: Callable[[JSON], Reply],
    ) -> Reply:
        response = open_reply(self.endpoint, self.patience, self.body(messages))
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            answer = from_stream(map(self.endpoint.hide, sse_events(self.endpoint.chunks(response))))
        else:
            answer = whole_body(self.endpoint.read(response), response.status_code)
        return normalise_reply(read(answer))[0]


def whole_body(text: str, status: int) -> JSON:
    """The JSON of a body that came in one piece. An error in it is one, whatever the status says."""
    try:
        body = parse_json(text)
    except NotJSON as error:
        raise ProviderError(f"{status}, but the body is no JSON ({error})", status) from None
    if isinstance(body, dict) and body.get("error"):
        raise ProviderError(f"{status}, but the body is an error: {show(error_text(body), 300)}", status)
    return body


def make_endpoint(
    url: str,
    headers: Mapping[str, str],
    key: str | None,
    transport: httpx.BaseTransport | None,
    timeout: float,
) -> Endpoint:
    """An endpoint with its own connection pool; without a key no header that would carry it is sent."""
    secret = Secret(key) if key else None
    kept = {name: value for name, value in headers.items() if secret or "{key}" not in value}
    http = httpx.Client(transport=transport, timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)))
    return Endpoint(url, kept, secret, http)


class OpenAIModel(Adapter):
    """A chat model behind any endpoint that speaks OpenAI's chat completions.

    `base_url` is as for OpenAI's own client, with `/v1` at its end. `options` go into the body as they are
    (`temperature`, `seed`, `max_tokens`, `tool_choice`, ...). `timeout` is in seconds, for each wait on the
    network. `transport` and `sleep` can be replaced.
    """

    def __init__(
        self,
        model: str,
        tools: Mapping[str, ToolSpec] | None = None,
        *,
        base_url: str = "https://api.openai.com/v1",
        key: str | None = None,
        options: Mapping[str, JSON] | None = None,
        stream: bool = False,
        transport: httpx.BaseTransport | None = None,
        timeout: float = 120.0,
        retries: Retries = Retries(),
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        url, headers = f"{base_url.rstrip('/')}/chat/completions", {"authorization": "Bearer {key}"}
        endpoint = make_endpoint(url, headers, key, transport, timeout)
        super().__init__(endpoint, Patience(retries, sleep), model, tools or {}, options or {}, stream)

    def body(self, messages: Sequence[Message]) -> dict[str, JSON]:
        """The request, as `Adapter.body` says."""
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if self.stream else {}
        return {**openai_body(messages, self.tools, self.model), **streaming, **self.options}

    def chat(self, messages: list[Message]) -> Reply:
        """The model's next message, as `Adapter.chat` says."""
        return self._ask(messages, openai_from_stream, reply_from_openai)


class AnthropicModel(Adapter):
    """A chat model behind an endpoint that speaks Anthropic's Messages API.

    `base_url` is as for Anthropic's own client, without `/v1`. `cache` marks the end of tools and system
    prompt as a prefix to be cached. The rest is as for `OpenAIModel`; `max_tokens` is always sent.
    """

    def __init__(
        self,
        model: str,
        tools: Mapping[str, ToolSpec] | None = None,
        *,
        base_url: str = "https://api.anthropic.com",
        key: str | None = None,
        options: Mapping[str, JSON] | None = None,
        stream: bool = False,
        cache: bool = False,
        transport: httpx.BaseTransport | None = None,
        timeout: float = 120.0,
        retries: Retries = Retries(),
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        url = f"{base_url.rstrip('/')}/v1/messages"
        headers = {"x-api-key": "{key}", "anthropic-version": "2023-06-01"}
        endpoint = make_endpoint(url, headers, key, transport, timeout)
        super().__init__(endpoint, Patience(retries, sleep), model, tools or {}, options or {}, stream)
        self.cache = cache

    def body(self, messages: Sequence[Message]) -> dict[str, JSON]:
        """The request, as `Adapter.body` says."""
        streaming = {"stream": True} if self.stream else {}
        return {
            **anthropic_body(messages, self.tools, self.model, self.cache),
            **streaming,
            **self.options,
        }

    def chat(self, messages: list[Message]) -> Reply:
        """The model's next message, as `Adapter.chat` says."""
        return self._ask(messages, anthropic_from_stream, reply_from_anthropic)


# %% chapters/12-providers.md § Six lines


def handle_refusal(details: JSON) -> str:
    """A sentence for the caller about a refusal. `details` are the provider's, and may be None."""
    category = details.get("category") if isinstance(details, dict) else None
    return f"Declined ({category or 'no category given'}): the same prompt would be declined again."


# %% chapters/12-providers.md § Record once, replay for ever

KEPT_HEADERS = ("content-type", "retry-after", "location")


@dataclass(frozen=True)
class Exchange:
    """One request and its response, without anything that belongs to a host, a key or a moment."""

    path: str
    request: JSON
    status: int
    headers: dict[str, str]
    response: JSON  # parsed JSON, or a list of lines for any other text

    def answer(self) -> httpx.Response:
        """The response, as a provider would give it."""
        text = "\n".join(self.response) if self.is_text() else json.dumps(self.response)
        return httpx.Response(self.status, headers=self.headers, content=text.encode())

    def is_text(self) -> bool:
        """Whether the response was something else than JSON."""
        return not self.headers.get("content-type", "").startswith("application/json")


def request_body(request: httpx.Request) -> JSON:
    """The JSON of a request, None when it has none."""
    content = request.read()
    try:
        return json.loads(content) if content else None
    except ValueError:
        return content.decode("utf-8", "replace")


def read_exchange(request: httpx.Request, response: httpx.Response, drop: Collection[str] = ()) -> Exchange:
    """What to keep of a request and its response, with the request's credentials taken out of both."""
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    text = response.read().decode("utf-8", "replace")
    body = json.dumps(request_body(request))
    for secret in credentials(request):
        text, body = text.replace(secret, "[key]"), body.replace(secret, "[key]")
    is_json = headers.get("content-type", "").startswith("application/json")
    kept = json.loads(text) if is_json else text.split("\n")
    if is_json and isinstance(kept, dict):
        kept = {key: value for key, value in kept.items() if key not in drop}
    return Exchange(request.url.path, json.loads(body), response.status_code, headers, kept)


def credentials(request: httpx.Request) -> list[str]:
    """The secret words in a request's headers."""
    values = [request.headers.get(name, "") for name in ("authorization", "x-api-key", "api-key", "cookie")]
    return [word for value in values for word in value.split() if len(word) >= 8 and word.lower() != "bearer"]


class RecordingTransport(httpx.BaseTransport):
    """Passes requests on and keeps what came back; `close` (or `save`) writes it to `path`.

    `about` says what was recorded: model, server, flags, date. `drop` names keys of a JSON response that are
    left out, such as a server's timings, which differ each time and mean nothing later.
    """

    def __init__(
        self,
        path: Path | str,
        about: Mapping[str, JSON],
        inner: httpx.BaseTransport | None = None,
        drop: Collection[str] = (),
    ) -> None:
        self.path, self.about, self.drop = Path(path), dict(about), drop
        self.exchanges: list[Exchange] = []
        self._inner = inner or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request, keep both sides, and hand on the response."""
        response = self._inner.handle_request(request)
        try:
            exchange = read_exchange(request, response, self.drop)
        finally:
            response.close()
        self.exchanges.append(exchange)
        return exchange.answer()

    def save(self) -> None:
        """Write the recording."""
        save_recording(self.path, self.about, self.exchanges)

    def close(self) -> None:
        """Write the recording and close the connection."""
        self.save()
        self._inner.close()


def save_recording(path: Path, about: Mapping[str, JSON], exchanges: Sequence[Exchange]) -> None:
    """Write a recording as JSON with short lines, so that a change of one message is a change of one line."""
    listed = [vars(exchange) for exchange in exchanges]
    text = readable({"about": dict(about), "exchanges": listed})
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def load_recording(path: Path | str) -> tuple[dict[str, JSON], list[Exchange]]:
    """What a recording says about itself, and its exchanges. ValueError for a file that is none."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return data["about"], [Exchange(**each) for each in data["exchanges"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no recording ({error}): make one with RecordingTransport") from error


def readable(value: JSON, indent: int = 0, width: int = 110) -> str:
    """JSON whose parts stand on one line where they fit, and on lines of their own where they do not."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= width or not isinstance(value, dict | list) or not value:
        return flat
    inner = "\n" + " " * (indent + 1)
    if isinstance(value, list):
        parts = [readable(item, indent + 1, width) for item in value]
        return f"[{inner}{f',{inner}'.join(parts)}\n{' ' * indent}]"
    members = [f"{json.dumps(key)}: {readable(item, indent + 1, width)}" for key, item in value.items()]
    return f"{{{inner}{f',{inner}'.join(members)}\n{' ' * indent}}}"


class NotRecorded(ProviderError):
    """A request for which the recording holds no response. The message shows the nearest one."""


class ReplayTransport(httpx.BaseTransport):
    """Answers from a recording and never from a network.

    A request is known by its path and its body; host, headers and key do not count. One that was recorded
    several times is answered in that order, and with the last from then on.
    """

    def __init__(self, path: Path | str) -> None:
        self.about, self.exchanges = load_recording(path)
        self._waiting: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            self._waiting.setdefault(request_key(exchange.path, exchange.request), []).append(exchange)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The recorded response; NotRecorded when there is none."""
        body = request_body(request)
        queue = self._waiting.get(request_key(request.url.path, body))
        if queue is None:
            raise NotRecorded(nearest(request.url.path, body, self.exchanges))
        return (queue.pop(0) if len(queue) > 1 else queue[0]).answer()


def request_key(path: str, body: JSON) -> str:
    """What makes two requests the same: path and body, the order of keys aside."""
    return f"{path} {json.dumps(body, sort_keys=True)}"


def nearest(path: str, body: JSON, exchanges: Sequence[Exchange]) -> str:
    """A sentence on a request that was not recorded: which recorded one is nearest, and what differs."""
    if not exchanges:
        return f"POST {path} was not recorded: the recording is empty"
    asked = leaves({"path": path, "body": body})
    differing = [differences(leaves({"path": each.path, "body": each.request}), asked) for each in exchanges]
    number = min(range(len(differing)), key=lambda n: len(differing[n]))
    lines = differing[number][:5]
    more = len(differing[number]) - len(lines)
    lines += [f"and {more} more"] if more else []
    head = f"POST {path} was not recorded. The nearest is exchange {number}; it differs in"
    return "\n  ".join([head, *lines])


def differences(recorded: Mapping[str, JSON], asked: Mapping[str, JSON]) -> list[str]:
    """A line for each path at which two requests differ."""
    paths = [*asked, *(path for path in recorded if path not in asked)]
    missing = object()
    return [
        f"{path}: recorded {told(recorded, path)}, asked {told(asked, path)}"
        for path in paths
        if recorded.get(path, missing) != asked.get(path, missing)
    ]


def told(values: Mapping[str, JSON], path: str) -> str:
    """A value for an error message, or that there is none."""
    return show(values[path], 80) if path in values else "nothing"


# %% chapters/12-providers.md § Three ways to ask for a call


def call_schema(tools: Mapping[str, ToolSpec]) -> dict[str, JSON]:
    """One JSON Schema for a whole turn: a call of one of the tools, or an answer."""
    calls: list[JSON] = [
        turn_schema({"name": {"const": entry["name"]}, "arguments": closed(entry["parameters"])})
        for entry in (tool["function"] for tool in tool_schema_json(tools))
    ]
    return {"anyOf": [*calls, turn_schema({"answer": {"type": "string", "maxLength": 200}})]}


def turn_schema(properties: dict[str, JSON]) -> dict[str, JSON]:
    """An object that has exactly these properties."""
    return closed({"type": "object", "properties": properties, "required": list(properties)})


def closed(schema: dict[str, JSON]) -> dict[str, JSON]:
    """An object schema that lets nothing undeclared in."""
    return {**schema, "additionalProperties": False}


@dataclass
class JSONTurns:
    """A model whose replies are JSON texts, as `call_schema` describes them, read as calls and answers.

    The model behind it sees its own calls as the texts that it wrote, and their results as user messages.
    """

    model: Adapter
    tools: Mapping[str, ToolSpec]

    def chat(self, messages: list[Message]) -> Reply:
        """The next message; a text that is no turn is an answer as it stands."""
        opening = {
            **messages[0],
            "content": f"{messages[0]['content']}\n\n{turn_prompt(self.tools)}",
        }
        reply = self.model.chat([opening, *map(as_json_turn, messages[1:])])
        try:
            turn = parse_json(reply.message["content"] or "")
        except NotJSON:
            return reply
        return Reply(read_turn(turn, reply.message, len(messages)), reply.stop_reason, reply.usage)


def turn_prompt(tools: Mapping[str, ToolSpec]) -> str:
    """What a model must be told to write JSON turns: the tools, and the two shapes that a reply can have."""
    signatures = [
        f"- {name}({', '.join(spec.parameters.get('properties', {}))}): {spec.description}"
        for name, spec in tools.items()
    ]
    shapes = '{"name": "<tool>", "arguments": {...}} or {"answer": "<text>"}'
    return "\n".join(["Tools:", *signatures, f"Reply with one JSON object: {shapes}"])


def as_json_turn(message: Message) -> Message:
    """A message of the transcript as a model that writes JSON turns should see it."""
    if message["role"] == "tool":
        return {"role": "user", "content": message["content"]}
    if not message.get("tool_calls"):
        return message
    function = message["tool_calls"][0]["function"]
    text = f'{{"name": {json.dumps(function["name"])}, "arguments": {function["arguments"]}}}'
    return {"role": "assistant", "content": text}


def read_turn(turn: JSON, message: Message, place: int) -> Message:
    """A parsed turn as a message: a call, an answer, or the message unchanged when it is neither."""
    if not isinstance(turn, dict):
        return message
    if isinstance(turn.get("answer"), str):
        return {"role": "assistant", "content": turn["answer"]}
    if not isinstance(turn.get("name"), str):
        return message
    function = {"name": turn["name"], "arguments": json.dumps(turn.get("arguments", {}))}
    call = {"id": f"call_{place}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


# %% chapters/12-providers.md § One trial

TASK = "Order A-17 arrived damaged. Please make this right."


TRIAL_LIMITS = Limits(max_turns=4)


MODES = ("free", "tools", "schema")


def bounded_desk() -> tuple[dict[str, ToolSpec], list[dict[str, Any]]]:
    """The support desk with a pattern for order ids; where a text has no bound, a small model rambles."""
    tools, effects = make_environment()
    order_id = {"type": "string", "pattern": "^[A-Z]-[0-9]{2}$"}
    properties: dict[str, dict[str, JSON]] = {
        "lookup_order": {"order_id": order_id},
        "read_policy": {},
        "refund_order": {"order_id": order_id, "amount_cents": {"type": "integer"}},
    }
    schemas = {
        name: {"type": "object", "properties": each, "required": list(each)}
        for name, each in properties.items()
    }
    return {name: replace(spec, schema=schemas[name]) for name, spec in tools.items()}, effects


def trial_model(
    mode: str, wire: str, seed: int, tools: Mapping[str, ToolSpec], transport: httpx.BaseTransport
) -> Adapter | JSONTurns:
    """The model of one trial: calls described in the prompt, asked for by `tools`, or held to a schema.

    Anthropic's form has no place for a seed or a schema, so there the server is started with them, and the
    request says in its metadata which seed it was.
    """
    options: dict[str, JSON] = {"temperature": 0.7, "max_tokens": 96}
    if wire == "openai":
        options["seed"] = seed
        if mode == "schema":
            schema = {"name": "turn", "schema": call_schema(tools)}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
    else:
        options["metadata"] = {"user_id": f"seed {seed}"}
    adapter, base = (OpenAIModel, "/v1") if wire == "openai" else (AnthropicModel, "")
    sent, reach = (tools if mode == "tools" else {}), f"http://127.0.0.1:8080{base}"
    model = adapter("smollm2-135m-instruct", sent, base_url=reach, options=options, transport=transport)
    return model if mode == "tools" else JSONTurns(model, tools)


def paid_gate(paid_cents: Mapping[str, int]) -> Gate:
    """Deny every refund but that of a known order by exactly what was paid, as the policy says."""

    def judge(call: ToolCall) -> Decision:
        arguments = call.arguments or {}
        paid = paid_cents.get(arguments.get("order_id", ""))
        if call.name != "refund_order" or (paid is not None and arguments.get("amount_cents") == paid):
            return Decision("allow", "within policy")
        return Decision("deny", "a refund must be of a known order, and exactly what was paid for it")

    return judge


def once_gate(receipts: Sequence[Mapping[str, JSON]]) -> Gate:
    """Deny a refund of an order for which `receipts`, read at the moment of the call, already holds one."""

    def judge(call: ToolCall) -> Decision:
        order_id = (call.arguments or {}).get("order_id")
        if call.name != "refund_order" or all(each["order_id"] != order_id for each in receipts):
            return Decision("allow", "not refunded yet")
        return Decision("deny", f"order {order_id} has been refunded already")

    return judge


TRIAL_GATES: dict[str, Callable[[list[dict[str, Any]]], Gate]] = {
    "no gate": lambda receipts: allow_all,
    "refund_gate": lambda receipts: refund_gate,
    "paid_gate": lambda receipts: paid_gate({"A-17": 4999}),
    "paid and once": lambda receipts: all_of(paid_gate({"A-17": 4999}), once_gate(receipts)),
}


@dataclass(frozen=True)
class Trial:
    """One run of the support-desk task by a real model, and the refunds that it really made."""

    mode: str
    wire: str
    seed: int
    gate: str
    result: RunResult
    effects: list[dict[str, Any]]


def run_trial(mode: str, wire: str, seed: int, gate: str, transport: httpx.BaseTransport) -> Trial:
    """Run one trial through `transport`: a server's, or a recording of it."""
    tools, effects = bounded_desk()
    model = trial_model(mode, wire, seed, tools, transport)
    result = run_agent(TASK, model, tools, TRIAL_GATES[gate](effects), TRIAL_LIMITS)
    return Trial(mode, wire, seed, gate, result, effects)


# %% chapters/12-providers.md § Run it yourself

WIRES: dict[str, tuple[Any, str]] = {
    "openai": (OpenAIModel, "OPENAI_API_KEY"),
    "anthropic": (AnthropicModel, "ANTHROPIC_API_KEY"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """`run` a support-desk task with a real model, or `record` it; prints the transcript and the ending."""
    args = command_line().parse_args(arguments)
    adapter, variable = WIRES[args.wire]
    key = os.environ.get(args.key_env or variable)
    about = {"model": args.model, "wire": args.wire, "task": args.task, "note": args.note}
    transport = RecordingTransport(args.out, about) if args.command == "record" else None
    tools, effects = make_environment()
    options = {"max_tokens": args.max_tokens} | json.loads(args.options)
    reach = {"base_url": args.base_url, "key": key, "transport": transport}
    with adapter(args.model, tools, **reach, options=options, stream=args.stream) as model:
        result = run_agent(args.task, model, tools, refund_gate)
    print(Transcript(result.state))
    print(f"{result.stop.value} | refunds: {effects}")
    return 0


def command_line() -> argparse.ArgumentParser:
    """The options of `python -m agentkit.providers`. A key is named by its variable, never written out."""
    parser = argparse.ArgumentParser(prog="python -m agentkit.providers", description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "record"):
        command = commands.add_parser(name)
        command.add_argument("--base-url", required=True)
        command.add_argument("--model", required=True)
        command.add_argument("--task", required=True)
        command.add_argument("--wire", choices=list(WIRES), default="openai")
        command.add_argument("--key-env", help="environment variable that holds the key")
        command.add_argument("--max-tokens", type=int, default=1024)
        command.add_argument("--options", default="{}", help="further keys of the request, as JSON")
        command.add_argument("--stream", action="store_true")
        command.add_argument("--note", default="", help="server, flags, date: whatever a reader should know")
    commands.choices["record"].add_argument("--out", type=Path, required=True)
    return parser


if __name__ == "__main__" and __spec__ is not None:  # a notebook is __main__ too, but has no spec
    raise SystemExit(main())
