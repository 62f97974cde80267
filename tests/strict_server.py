"""A provider on this machine that is as strict as the real ones: it refuses a corrupted array with a 400.

Its rules are written from the providers' documentation and share no code with the library under test. It
answers `/v1/chat/completions` and `/v1/messages`, whole or as a stream, with the replies it was given, and
keeps every request it saw.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Refusal(Exception):
    """A request that the provider does not accept."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


@dataclass
class StrictServer:
    """The server's address, the replies it will give in order, and the requests it has seen."""

    url: str = ""
    replies: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


# --- the rules ---------------------------------------------------------------------------------
def check_openai(body: dict[str, Any]) -> None:
    """Refuse what chat completions refuse."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal(400, "Invalid 'messages': empty array. Expected at least one.", "messages")
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise Refusal(400, f"Invalid value: {role!r}.", f"messages[{at}].role")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                raise Refusal(
                    400,
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                    "with 'tool_calls'.",
                    f"messages.[{at}].role",
                )
            waiting.remove(message["tool_call_id"])
            continue
        refuse_unanswered_openai(waiting, at)
        calls = message.get("tool_calls") or []
        if role == "assistant" and message.get("content") is None and not calls:
            raise Refusal(
                400, "Invalid value for 'content': expected a string, got null.", f"messages.[{at}].content"
            )
        check_openai_calls(calls, at)
        waiting = [call["id"] for call in calls]
    refuse_unanswered_openai(waiting, len(messages))
    for tool in body.get("tools") or []:
        check_name(tool["function"]["name"])


def check_openai_calls(calls: list[dict[str, Any]], at: int) -> None:
    for number, call in enumerate(calls):
        if not isinstance(call["function"]["arguments"], str):
            raise Refusal(
                400,
                "Invalid type: expected a string.",
                f"messages[{at}].tool_calls[{number}].function.arguments",
            )
        check_name(call["function"]["name"])


def refuse_unanswered_openai(waiting: list[str], at: int) -> None:
    if waiting:
        raise Refusal(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(waiting),
            f"messages.[{at}].role",
        )


def check_name(name: str) -> None:
    legal = name and len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    if not legal:
        raise Refusal(400, f"Invalid name {name!r}: expected a string that matches '^[a-zA-Z0-9_-]+$'.")


def check_anthropic(body: dict[str, Any]) -> None:
    """Refuse what the Messages API refuses."""
    if not isinstance(body.get("max_tokens"), int):
        raise Refusal(400, "max_tokens: Field required")
    messages = body.get("messages")
    if not messages:
        raise Refusal(400, "messages: at least one message is required")
    asked: list[str] = []
    for at, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant"):
            raise Refusal(400, f"messages.{at}.role: Input should be 'user' or 'assistant'")
        content = message.get("content")
        if not content and not (at == len(messages) - 1 and message["role"] == "assistant"):
            raise Refusal(400, f"messages.{at}: all messages must have non-empty content")
        blocks = content if isinstance(content, list) else []
        check_results(asked, [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"], at)
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if asked:
        check_results(asked, [], len(messages))
    for tool in body.get("tools") or []:
        check_name(tool["name"])
        if tool["input_schema"].get("type") != "object":
            raise Refusal(400, "tools.0.input_schema.type: Field required")


def check_results(asked: list[str], answered: list[str], at: int) -> None:
    """Every call of the message before, and no other, must have its result here."""
    if answered and not asked:
        raise Refusal(
            400,
            f"messages.{at}: tool_result block(s) provided when previous message does not contain any "
            "tool_use blocks",
        )
    if strange := [each for each in answered if each not in asked]:
        raise Refusal(400, f"messages.{at}: unexpected tool_use_id found in tool_result blocks: {strange[0]}")
    if missing := [each for each in asked if each not in answered]:
        raise Refusal(
            400,
            f"messages.{at}: tool_use ids were found without tool_result blocks immediately after: "
            + ", ".join(missing),
        )


# --- replies as streams ------------------------------------------------------------------------
def openai_stream(reply: dict[str, Any]) -> Iterator[str]:
    """A completion in pieces of three characters."""
    base = {key: reply[key] for key in ("id", "created", "model") if key in reply} | {
        "object": "chat.completion.chunk"
    }
    choice = reply["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return json.dumps({**base, "choices": choices})

    yield chunk({"role": "assistant", "content": "" if message.get("content") else None})
    for piece in pieces(message.get("content") or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        opened = {"index": index, "id": call["id"], "type": "function"}
        yield chunk({"tool_calls": [{**opened, "function": {"name": function["name"], "arguments": ""}}]})
        for piece in pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, choice["finish_reason"])
    yield json.dumps({**base, "choices": [], "usage": reply.get("usage")})
    yield "[DONE]"


def anthropic_stream(reply: dict[str, Any]) -> Iterator[str]:
    """A message in events, with usage that is cumulative."""
    usage = reply["usage"]
    opening = {**reply, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield json.dumps({"type": "message_start", "message": opening})
    yield json.dumps({"type": "ping"})
    for index, block in enumerate(reply["content"]):
        start, deltas = block_stream(block)
        yield json.dumps({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield json.dumps({"type": "content_block_delta", "index": index, "delta": delta})
        yield json.dumps({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": reply["stop_reason"], "stop_sequence": reply.get("stop_sequence")}
    counted = {"output_tokens": usage["output_tokens"]}
    yield json.dumps({"type": "message_delta", "delta": ending, "usage": counted})
    yield json.dumps({"type": "message_stop"})


def block_stream(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a block begins, and what is added to it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [
            {"type": "text_delta", "text": piece} for piece in pieces(block["text"])
        ]
    if block["type"] == "thinking":
        texts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        return {**block, "thinking": "", "signature": ""}, [
            *texts,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] in ("tool_use", "server_tool_use"):
        texts = pieces(json.dumps(block["input"]))
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": piece} for piece in texts
        ]
    return block, []


def pieces(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


# --- the server --------------------------------------------------------------------------------
WIRES = {
    "/v1/chat/completions": (check_openai, openai_stream),
    "/v1/messages": (check_anthropic, anthropic_stream),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: StrictServer

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        self.provider.headers.append({name.lower(): value for name, value in self.headers.items()})
        try:
            self.answer(json.loads(raw))
        except Refusal as refusal:
            error = {
                "type": "invalid_request_error",
                "message": str(refusal),
                "param": refusal.param,
                "code": None,
            }
            self.send(refusal.status, json.dumps({"type": "error", "error": error}), "application/json")

    def answer(self, body: dict[str, Any]) -> None:
        if not (self.headers.get("authorization") or self.headers.get("x-api-key")):
            raise Refusal(401, "no API key was given")
        check, stream = WIRES[self.path]
        check(body)
        self.provider.seen.append(body)
        reply = self.provider.replies.pop(0)
        if body.get("stream"):
            named = self.path == "/v1/messages"
            events = [
                f"event: {json.loads(data)['type']}\ndata: {data}\n\n" if named else f"data: {data}\n\n"
                for data in stream(reply)
            ]
            self.send(200, "".join(events), "text/event-stream")
        else:
            self.send(200, json.dumps(reply), "application/json")

    def send(self, status: int, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def strict_server() -> Iterator[StrictServer]:
    """A running server; its `url` has no path."""
    provider = StrictServer()
    handler = type("BoundHandler", (Handler,), {"provider": provider})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
