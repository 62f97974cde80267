# Built by bookkit from chapters/03-wire.md. Edit the chapter, not this file.
# bookkit: cells 13a6c4ab6fcc, body 87e7b62f378c
"""The wire."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from agentkit.tools import JSON, ToolCall, json_type, show

__all__ = [
    "DROPPED_KEYS",
    "EMPTY",
    "MALFORMED",
    "MAX_DEPTH",
    "NOTHING_TO_ADD",
    "NO_CALL",
    "NO_RESPONSE",
    "NO_RESULT",
    "NO_USE",
    "OPENAI_KEYS",
    "PLAIN_KEYS",
    "READER",
    "RESULT_KEYS",
    "ROLES",
    "SCAN",
    "SPLIT",
    "STOP_REASONS",
    "UNNAMED",
    "UNREAD",
    "WRONG_USE",
    "Message",
    "NotJSON",
    "Pairing",
    "Reply",
    "ScriptedModel",
    "TextBlock",
    "ToolUseBlock",
    "Usage",
    "answer_message",
    "as_text",
    "assistant_from_blocks",
    "block_ids",
    "block_json",
    "broken_call",
    "call_ids",
    "check_anthropic",
    "check_messages",
    "check_openai",
    "check_roles",
    "close_turn",
    "content_blocks",
    "content_text",
    "count",
    "depth",
    "encode",
    "entries",
    "entry_from_block",
    "entry_id",
    "finite",
    "first_choice",
    "free_id",
    "from_anthropic",
    "holds_results",
    "is_block",
    "is_json",
    "is_message",
    "is_plain",
    "is_well_formed",
    "legacy_call",
    "make_encoder",
    "may_stay",
    "merge_parts",
    "message_from_result",
    "no_constant",
    "normalise_reply",
    "parse_json",
    "parse_tool_calls",
    "read_arguments",
    "read_call",
    "read_calls",
    "rebuilt",
    "replayed",
    "reply_from_anthropic",
    "reply_from_openai",
    "reports_failure",
    "result_block",
    "stop_reason",
    "to_anthropic",
    "to_openai",
    "tool_call_message",
    "tool_message",
    "turn_from_anthropic",
    "turn_to_anthropic",
    "unanswered",
    "unique_members",
    "usage_from_anthropic",
    "usage_from_openai",
]


# %% chapters/03-wire.md § The wire

Message = dict[str, Any]


# %% chapters/03-wire.md § What a proposal looks like


def tool_call_message(
    call_id: str, name: str, arguments: dict[str, Any], thought: str | None = None
) -> Message:
    """An assistant message that proposes one call. The arguments travel as a string of JSON."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": thought, "tool_calls": [call]}


def answer_message(text: str) -> Message:
    """An assistant message that answers and proposes nothing."""
    return {"role": "assistant", "content": text}


def tool_message(call_id: str, ok: bool, kind: str, content: JSON) -> Message:
    """What became of the call `call_id`, for the model to read: JSON text with ok, kind and content."""
    body = encode({"ok": ok, "kind": kind, "content": content})
    return {"role": "tool", "tool_call_id": call_id, "content": body}


def make_encoder() -> Callable[[Any], str]:
    """`json.dumps` with one encoder for all calls.

    Raises TypeError or ValueError for what is not JSON, and RecursionError for a cycle.

    `json.dumps` makes a new encoder each time, which takes longer than writing a message of this size.
    """
    plain = json.JSONEncoder(allow_nan=False, check_circular=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the C encoder
        return plain.encode
    quote = json.encoder.encode_basestring_ascii
    chunks = make(None, plain.default, quote, None, ": ", ", ", False, False, False)
    return lambda value: "".join(chunks(value, 0))


encode = make_encoder()


# %% chapters/03-wire.md § A model is one method


@dataclass(frozen=True)
class Usage:
    """Tokens of one request. `cached_tokens` is the part of `prompt_tokens` that was served from a cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """A message and what a provider says about it: why it ends, what it cost. Only the message is kept."""

    message: Message
    stop_reason: str | None = None
    usage: Usage | None = None


NOTHING_TO_ADD = "I have nothing further to add."


@dataclass
class ScriptedModel:
    """A stand-in for a chat model whose whole behaviour is a script that the reader can see.

    `turns` are played in order. When the last message is a tool result that holds a key of `reactions`, the
    message under that key is returned instead and no turn is used up. Which turn is next follows from the
    transcript alone, so that a run restored from its transcript goes on where it was.
    """

    turns: Sequence[Message | Reply]
    reactions: Mapping[str, Message | Reply] = field(default_factory=dict)
    _place: tuple[list[Message] | None, Message | None, int, int] = field(
        default=(None, None, 0, 0), init=False, repr=False, compare=False
    )

    def chat(self, messages: list[Message]) -> Message | Reply:
        """The next message (or `Reply`) of the script, given the transcript so far."""
        used = self.turns_used(messages)
        reaction = self.reaction_to(messages[-1]) if messages else None
        if reaction is not None:
            return reaction
        return self.turns[used] if used < len(self.turns) else answer_message(NOTHING_TO_ADD)

    def reaction_to(self, message: Message) -> Message | Reply | None:
        """The reply scripted for a tool result, if any of the keys occurs in it."""
        if not self.reactions or message.get("role") != "tool":
            return None
        content = message.get("content")
        text = content if isinstance(content, str) else json.dumps(content)
        return next((reply for key, reply in self.reactions.items() if key in text), None)

    def turns_used(self, messages: list[Message]) -> int:
        """The turns that a transcript has used up: its assistant messages, reactions not counted.

        Remembers how far it read the list it was last given, so that a turn costs the same in a long run.
        """
        seen, last, upto, used = self._place
        if seen is not messages or len(messages) < upto or (upto and messages[upto - 1] is not last):
            upto, used = 0, 0
        for index in range(upto, len(messages)):
            if messages[index].get("role") == "assistant":
                reacted = index > 0 and self.reaction_to(messages[index - 1]) is not None
                used += 0 if reacted else 1
        self._place = (messages, messages[-1] if messages else None, len(messages), used)
        return used


# %% chapters/03-wire.md § What a lenient reader lets through

MAX_DEPTH = 100


class NotJSON(ValueError):
    """A text that is no JSON, or JSON that this book refuses. The message says what is wrong with it."""


def unique_members(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """The members of one object; two under one name are refused, for nobody can say which was meant."""
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJSON(f"the key {show(twice)} occurs twice in one object")
    return members


def finite(text: str) -> float:
    """A number with a fraction or an exponent; one that overflows to infinity is refused."""
    value = float(text)
    if math.isinf(value):
        raise NotJSON(f"the number {show(text)} is too large")
    return value


def no_constant(text: str) -> JSON:
    """Refuse NaN, Infinity and -Infinity, which Python's reader would let in."""
    raise NotJSON(f"{text} is not JSON")


READER: Any = json.JSONDecoder(
    object_pairs_hook=unique_members, parse_float=finite, parse_constant=no_constant
)
SCAN: Callable[[str, int], tuple[JSON, int]] = READER.scan_once


def parse_json(text: str) -> JSON:
    """The value of a JSON text, or `NotJSON` with the reason; never another exception.

    Stricter than `json.loads`: no NaN or infinity, no key twice in an object, at most `MAX_DEPTH` levels.
    """
    start = len(text) - len(text.lstrip(" \t\n\r"))
    try:
        value, end = SCAN(text, start)
    except StopIteration as stop:
        raise NotJSON(f"Expecting value at character {stop.value}") from None
    except json.JSONDecodeError as error:
        raise NotJSON(f"{error.msg} at character {error.pos}") from None
    except NotJSON:
        raise
    except RecursionError:
        raise NotJSON(f"nested more than {MAX_DEPTH} levels deep") from None
    except ValueError:
        raise NotJSON("a number has too many digits") from None
    if text[end:].strip(" \t\n\r"):
        raise NotJSON(f"extra text at character {end}")
    if text.count("[") + text.count("{") > MAX_DEPTH and depth(value) > MAX_DEPTH:
        raise NotJSON(f"nested more than {MAX_DEPTH} levels deep")
    return value


def depth(value: JSON) -> int:
    """The number of lists and objects around the innermost value, found level by level."""
    levels, level = 0, [value]
    while level := [item for item in level if isinstance(item, list | dict)]:
        levels += 1
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
    return levels


# %% chapters/03-wire.md § Parsing that never raises


def read_arguments(raw: JSON) -> tuple[dict[str, JSON] | None, str, str | None]:
    """The `arguments` of a call as (object or None, text for the transcript, problem or None).

    A string is parsed; an object that arrives parsed is taken; `null` and the empty string mean no arguments.
    """
    if raw is None or raw == "":
        return {}, "{}", None
    text = raw if isinstance(raw, str) else as_text(raw)
    try:
        value = parse_json(text)
    except NotJSON as error:
        return None, text, f"arguments were not valid JSON: {error}"
    if value is None:
        return {}, text, None
    if not isinstance(value, dict):
        return None, text, f"arguments must be a JSON object, got {json_type(value)}"
    return value, text, None


def as_text(value: Any) -> str:
    """A value as JSON text. One that has none becomes a text that is no JSON, and so stays a problem."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__} that is not JSON>"


UNNAMED = "unnamed"


def read_call(item: Any, call_id: str) -> tuple[ToolCall, Message]:
    """One entry of `tool_calls`, as a call (whose problem says what was wrong) and as a well-formed entry."""
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict):
        return broken_call(call_id, UNNAMED, f"a tool call must hold a function, got {json_type(function)}")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        wrong = "is empty" if name == "" else f"must be a string, got {json_type(name)}"
        return broken_call(call_id, UNNAMED, f"the name of the tool {wrong}")
    arguments, text, problem = read_arguments(function.get("arguments"))
    call = ToolCall(call_id, name, arguments, problem)
    if is_well_formed(item, call_id):
        return call, item
    kept = {
        key: value
        for key, value in item.items()
        if key not in ("id", "type", "function") and is_json({key: value})
    }
    entry = {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
    return call, entry | json.loads(encode(kept))


def broken_call(call_id: str, name: str, problem: str) -> tuple[ToolCall, Message]:
    """An entry that is no call. Its arguments become a text that nobody can read, so that it never runs."""
    function = {"name": name, "arguments": f"<{problem}>"}
    return ToolCall(call_id, name, None, problem), {"id": call_id, "type": "function", "function": function}


def is_well_formed(item: Message, call_id: str) -> bool:
    """Whether an entry with a named function can enter the transcript as it is: these keys and no others."""
    function = item["function"]
    outer = len(item) == 3 and item.get("type") == "function" and item.get("id") == call_id
    return outer and len(function) == 2 and isinstance(function.get("arguments"), str)


def is_json(value: Any) -> bool:
    """Whether a value can be written as JSON."""
    return not as_text(value).startswith("<")


def entries(message: Any) -> list[Any]:
    """The raw entries of `tool_calls`; something that is no list counts as one broken entry."""
    raw = message.get("tool_calls") if isinstance(message, dict) else None
    if not raw:
        return []
    return raw if isinstance(raw, list) else [raw]


def call_ids(items: list[Any]) -> list[str]:
    """An id for each entry, unique within the message: the given one, or one made from it or from its place.

    The first to use an id keeps it. A second one gets `_2` appended; an entry without an id is `call_1`, by
    its place. Neither ever takes an id that another entry brought along.
    """
    given = [item.get("id") if isinstance(item, dict) else None for item in items]
    if len(given) == 1:
        return [given[0] if isinstance(given[0], str) and given[0] else "call_1"]
    taken = {each for each in given if isinstance(each, str) and each}
    seen: set[str] = set()
    ids = []
    for place, each in enumerate(given, 1):
        if not isinstance(each, str) or not each:
            each = free_id(f"call_{place}", taken)
        elif each in seen:
            each = free_id(each, taken)
        taken.add(each)
        seen.add(each)
        ids.append(each)
    return ids


def free_id(wish: str, taken: set[str]) -> str:
    """`wish`, or `wish` with the first free number behind it."""
    number, free = 1, wish
    while free in taken:
        number += 1
        free = f"{wish}_{number}"
    return free


def read_calls(message: Any) -> list[tuple[ToolCall, Message]]:
    """Every entry of a message's `tool_calls`, as a call and as a well-formed entry."""
    items = entries(message)
    return [read_call(item, call_id) for item, call_id in zip(items, call_ids(items), strict=True)]


def parse_tool_calls(message: Any) -> list[ToolCall]:
    """The calls that a message proposes, in order; none for an answer. Never raises, whatever comes."""
    return [call for call, _ in read_calls(message)]


# %% chapters/03-wire.md § What enters the transcript

MALFORMED = "malformed"


def normalise_reply(reply: Any) -> tuple[Reply, list[ToolCall]]:
    """What a model returned, as a reply whose message can enter the transcript, and its calls. Never raises.

    Content becomes a string, or None beside calls; every call has a unique id, and a name and arguments that
    are strings. A message that is well formed stays the same object. Something that is no assistant message
    becomes an empty one with the stop reason `malformed`.
    """
    message, reason, usage = reply, None, None
    if isinstance(reply, Reply):
        message, reason, usage = reply.message, reply.stop_reason, reply.usage
    usage = usage if isinstance(usage, Usage) else None
    if not is_message(message):
        return Reply({"role": "assistant", "content": ""}, MALFORMED, usage), []
    read = read_calls(message)
    if not is_plain(message, read):
        message = rebuilt(message, read)
    if not (reason is None or isinstance(reason, str)):
        reason = MALFORMED
    return Reply(message, reason, usage), [call for call, _ in read]


PLAIN_KEYS = {"role", "content", "tool_calls"}


def is_message(message: Any) -> bool:
    """Whether something can be read as an assistant message."""
    if not isinstance(message, dict) or PLAIN_KEYS.isdisjoint(message):
        return False
    content = message.get("content")
    fits = content is None or isinstance(content, (str, list))
    return fits and message.get("role", "assistant") == "assistant"


def is_plain(message: Message, read: list[tuple[ToolCall, Message]]) -> bool:
    """Whether a message can enter the transcript as it is."""
    content = message.get("content")
    if not read:
        return isinstance(content, str) and message.keys() == {"role", "content"}
    if message.keys() != PLAIN_KEYS or isinstance(content, list) or content == "":
        return False
    return [id(entry) for _, entry in read] == [id(item) for item in entries(message)]  # the same objects


def rebuilt(message: Message, read: list[tuple[ToolCall, Message]]) -> Message:
    """A message made well formed: content as text, entries as read; further keys stay when they are JSON."""
    text = content_text(message.get("content"))
    body: Message = {"role": "assistant", "content": (text or None) if read else text}
    if read:
        body["tool_calls"] = [entry for _, entry in read]
    further = {key: value for key, value in message.items() if key not in PLAIN_KEYS and may_stay(key, value)}
    return {**body, **json.loads(encode(further))}  # as JSON holds it: a tuple becomes a list


def may_stay(key: Any, value: Any) -> bool:
    """Whether a further key of a message may be kept: it can be written, and OpenAI takes it back."""
    if key in ("audio", "function_call"):
        return False
    return isinstance(value, str) if key in ("name", "refusal") else is_json({key: value})


def content_text(content: Any) -> str:
    """The text of a message's content: itself, or the text parts of a list joined."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [
        part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"
    ]
    return "".join(text for text in texts if isinstance(text, str))


# %% chapters/03-wire.md § Why a reply ends

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "model_context_window_exceeded": "max_tokens",
}


def stop_reason(name: Any) -> str | None:
    """Why a reply ends, in one vocabulary; a word that neither provider documents is passed on as it is."""
    if name is None or name == "":
        return None
    return STOP_REASONS.get(name, name) if isinstance(name, str) else MALFORMED


# %% chapters/03-wire.md § The other envelope


@dataclass(frozen=True)
class TextBlock:
    """A piece of prose in a message."""

    text: str
    type: ClassVar[str] = "text"


@dataclass(frozen=True)
class ToolUseBlock:
    """A piece of a message that asks for one call; `input` holds the arguments, parsed."""

    id: str
    name: str
    input: dict[str, JSON]
    type: ClassVar[str] = "tool_use"


UNREAD = "_unread_arguments"


def content_blocks(message: Message) -> list[TextBlock | ToolUseBlock]:
    """An assistant message as the list of typed blocks that Anthropic's API would hold it in."""
    text = content_text(message.get("content"))
    blocks: list[TextBlock | ToolUseBlock] = [TextBlock(text)] if text else []
    for call, entry in read_calls(message):
        unread = {UNREAD: entry["function"]["arguments"]}
        blocks.append(
            ToolUseBlock(call.call_id, call.name, unread if call.arguments is None else call.arguments)
        )
    return blocks


def block_json(block: TextBlock | ToolUseBlock) -> Message:
    """A block as the plain object that goes over the wire."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}


def reply_from_openai(response: Any) -> Reply:
    """A chat completion (parsed JSON) as a `Reply`; a body without a message is `malformed`."""
    choice = first_choice(response)
    message = choice.get("message")
    if not isinstance(message, dict):
        return Reply({}, MALFORMED)
    reason = stop_reason(choice.get("finish_reason"))
    calls = message.get("tool_calls") or legacy_call(message)
    if message.get("refusal") and not calls:
        reason = "refusal"
    body = {"role": "assistant", "content": message.get("content")} | ({"tool_calls": calls} if calls else {})
    kept = {key: value for key, value in message.items() if key not in DROPPED_KEYS and value}
    return Reply({**body, **kept}, reason, usage_from_openai(response.get("usage")))


def first_choice(response: Any) -> dict[str, Any]:
    """The first choice of a chat completion; empty when there is none."""
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


DROPPED_KEYS = {"role", "content", "tool_calls", "function_call", "audio"}


def legacy_call(message: Message) -> list[Message]:
    """The single `function_call` of the older form, as a list of calls."""
    function = message.get("function_call")
    named = isinstance(function, dict) and function.get("name")
    return [{"id": "", "type": "function", "function": function}] if named else []


def count(usage: Any, *path: str) -> int:
    """One counter out of a provider's usage object, 0 when it is missing or is no count."""
    for step in path:
        usage = usage.get(step) if isinstance(usage, dict) else None
    return usage if type(usage) is int and usage > 0 else 0


def usage_from_openai(usage: Any) -> Usage | None:
    """OpenAI's counters; its prompt tokens include the cached ones."""
    if not isinstance(usage, dict):
        return None
    cached = count(usage, "prompt_tokens_details", "cached_tokens")
    return Usage(count(usage, "prompt_tokens"), count(usage, "completion_tokens"), cached)


OPENAI_KEYS = {"role", "content", "tool_calls", "tool_call_id", "name", "refusal"}


def to_openai(messages: Iterable[Message]) -> list[Message]:
    """A transcript as OpenAI takes it: without what was kept for another provider."""
    return [{key: value for key, value in message.items() if key in OPENAI_KEYS} for message in messages]


def reply_from_anthropic(response: Any) -> Reply:
    """A message of the Messages API (parsed JSON) as a `Reply`; anything else is `malformed`."""
    blocks = response.get("content") if isinstance(response, dict) else None
    if not isinstance(blocks, list):
        return Reply({}, MALFORMED)
    reason = stop_reason(response.get("stop_reason"))
    return Reply(assistant_from_blocks(blocks), reason, usage_from_anthropic(response.get("usage")))


def is_block(block: Any, kind: str) -> bool:
    """Whether something is a content block of one type."""
    return isinstance(block, dict) and block.get("type") == kind


def assistant_from_blocks(blocks: list[Any]) -> Message:
    """Content blocks as an assistant message.

    Text is joined and tool uses become calls. Where that would lose something (thinking, server tools, text
    behind a call), the blocks are kept as they came, under `blocks`, to be replayed.
    """
    blocks = [block for block in blocks if not (is_block(block, "text") and block.get("text") == "")]
    calls = [entry_from_block(block) for block in blocks if is_block(block, "tool_use")]
    text = content_text([block for block in blocks if is_block(block, "text")])
    message: Message = {"role": "assistant", "content": text or None if calls else text}
    if calls:
        message["tool_calls"] = calls
    if [block_json(block) for block in content_blocks(message)] != blocks:
        message["blocks"] = blocks
    return message


def entry_from_block(block: Message) -> Message:
    """A tool-use block as an entry of `tool_calls`."""
    given = block.get("input")
    unread = given.get(UNREAD) if isinstance(given, dict) and given.keys() == {UNREAD} else None
    arguments = unread if isinstance(unread, str) else as_text(given)
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }


def usage_from_anthropic(usage: Any) -> Usage | None:
    """Anthropic's counters; its input tokens leave out what was read from or written to the cache."""
    if not isinstance(usage, dict):
        return None
    cached = count(usage, "cache_read_input_tokens")
    prompt = count(usage, "input_tokens") + cached + count(usage, "cache_creation_input_tokens")
    return Usage(prompt, count(usage, "output_tokens"), cached)


# %% chapters/03-wire.md § There and back


def to_anthropic(messages: Sequence[Message]) -> dict[str, Any]:
    """A transcript as `system` and `messages` of Anthropic's API; `from_anthropic` brings it back unchanged.

    The results of one turn go into one user message. Raises `ValueError` for a role that the API lacks and
    for a system message that is not the first.
    """
    head = list(messages[:1]) if messages and messages[0].get("role") == "system" else []
    body: list[Message] = []
    for role, group in groupby(messages[len(head) :], key=lambda message: message.get("role")):
        if role == "system":
            raise ValueError(
                "a system message can only be the first: Anthropic's API holds it outside the messages"
            )
        if role == "tool":
            body.append({"role": "user", "content": [result_block(message) for message in group]})
        else:
            body += [turn_to_anthropic(message) for message in group]
    return {"system": head[0]["content"] if head else None, "messages": merge_parts(body)}


def turn_to_anthropic(message: Message) -> Message:
    """One user or assistant message in Anthropic's form."""
    if message.get("role") == "user":
        return {"role": "user", "content": message.get("content")}
    if message.get("role") != "assistant":
        raise ValueError(f"Anthropic's API has no role {show(message.get('role'))}")
    blocks = [block_json(block) for block in content_blocks(message)]
    return {"role": "assistant", "content": replayed(message, blocks) or ""}


def replayed(message: Message, blocks: list[Message]) -> list[Message]:
    """The blocks kept for replay, under the ids of the transcript; else the blocks made from it."""
    kept = message.get("blocks")
    if not isinstance(kept, list):
        return blocks
    uses = iter([block for block in blocks if block["type"] == "tool_use"])
    return [
        {**block, "id": next(uses, block)["id"]} if is_block(block, "tool_use") else block for block in kept
    ]


def result_block(message: Message) -> Message:
    """A tool message as a tool-result block, flagged as an error when it reports anything but success."""
    block: Message = {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": message["content"],
    }
    flag = (
        message["is_error"]
        if "is_error" in message
        else True
        if reports_failure(message["content"])
        else None
    )
    return {**block, **({} if flag is None else {"is_error": flag}), **message.get("extra", {})}


def reports_failure(content: Any) -> bool:
    """Whether the content of a tool message is this book's envelope with `ok` false."""
    return isinstance(content, str) and content.startswith('{"ok": false,')


def merge_parts(messages: list[Message]) -> list[Message]:
    """Parts that follow tool results join their message, as the API puts them: results first."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if (
            last
            and holds_results(last)
            and message["role"] == "user"
            and isinstance(message["content"], list)
        ):
            last["content"] = last["content"] + message["content"]
        else:
            merged.append(message)
    return merged


def holds_results(message: Message) -> bool:
    """Whether a message of Anthropic's form carries tool results."""
    content = message.get("content")
    return isinstance(content, list) and any(is_block(block, "tool_result") for block in content)


def from_anthropic(messages: Iterable[Message], system: Any = None) -> list[Message]:
    """Messages of Anthropic's API as a transcript of this book."""
    transcript: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    for message in messages:
        transcript += turn_from_anthropic(message)
    return transcript


def turn_from_anthropic(message: Message) -> list[Message]:
    """One message of Anthropic's form: a user message with results becomes one message for each result."""
    content = message.get("content")
    if not isinstance(content, list):
        return [{"role": message["role"], "content": content}]
    if message.get("role") == "assistant":
        return [assistant_from_blocks(content)]
    results = [message_from_result(block) for block in content if is_block(block, "tool_result")]
    rest = [block for block in content if not is_block(block, "tool_result")]
    return [*results, *([{"role": "user", "content": rest}] if rest or not results else [])]


RESULT_KEYS = {"type", "tool_use_id", "content", "is_error"}


def message_from_result(block: Message) -> Message:
    """A tool-result block as a tool message; a flag that the content does not imply is kept."""
    content = block.get("content", "")
    message: Message = {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}
    if "is_error" in block and (block["is_error"] is not True or not reports_failure(content)):
        message["is_error"] = block["is_error"]
    extra = {key: value for key, value in block.items() if key not in RESULT_KEYS}
    return {**message, **({"extra": extra} if extra else {})}


# %% chapters/03-wire.md § Five mistakes


@dataclass
class Pairing:
    """Calls and results while messages are read in order: who asked, who still waits, where answers came."""

    problems: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    answered_at: list[int] = field(default_factory=list)

    def ask(self, ids: list[str], at: int) -> None:
        """An assistant message with these calls."""
        twice = sorted({each for each in ids if ids.count(each) > 1})
        if twice:
            self.problems.append(
                f"400 — messages.{at}: tool call ids must be unique; repeated: {', '.join(twice)}"
            )
        self.asked, self.waiting, self.answered_at = ids, list(ids), []

    def answer(self, ids: list[str], at: int) -> list[str]:
        """A message with results for these calls; returns the ids that nobody waits for."""
        strangers = [each for each in ids if each not in self.waiting]
        self.waiting = [each for each in self.waiting if each not in ids]
        self.answered_at.append(at)
        return strangers


def check_messages(messages: Sequence[Message]) -> list[str]:
    """What is wrong with a message array, in either provider's form; empty when all is well.

    A line that begins with `400` is what the provider answers instead of a reply. One that begins with
    `accepted` goes through, at a price that the line names.
    """
    problems = check_roles(messages)
    if problems:
        return problems
    openai = any(message["role"] == "tool" or "tool_calls" in message for message in messages)
    return check_openai(messages) if openai else check_anthropic(messages)


ROLES = ("system", "developer", "user", "assistant", "tool")


def check_roles(messages: Sequence[Any]) -> list[str]:
    """Messages that no provider knows how to read."""
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    problems = [
        f"400 — messages.{at}.role: must be one of {', '.join(ROLES)}, got {show(role)}"
        for at, role in enumerate(roles)
        if role not in ROLES
    ]
    return problems if messages else ["400 — messages: at least one message is required"]


def check_openai(messages: Sequence[Message]) -> list[str]:
    """Calls and results that do not belong together, in OpenAI's form."""
    pairing = Pairing()
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            for stranger in pairing.answer([str(message.get("tool_call_id"))], at):
                pairing.problems.append(NO_CALL.format(at=at, id=show(stranger)))
            continue
        unanswered(pairing, NO_RESPONSE)
        pairing.ask([entry_id(item) for item in message.get("tool_calls") or []], at)
        if message["role"] == "assistant" and not pairing.asked and message.get("content") is None:
            pairing.problems.append(f"400 — messages.{at}.content: expected a string, got null")
    unanswered(pairing, NO_RESPONSE)
    return pairing.problems


NO_CALL = (
    "400 — messages.{at}: messages with role 'tool' must be a response to a preceding message with "
    "'tool_calls'; {id} is none"
)
NO_RESPONSE = (
    "400 — An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
)


def entry_id(item: Any) -> str:
    """The id of one entry of `tool_calls`."""
    return str(item.get("id")) if isinstance(item, dict) else ""


def unanswered(pairing: Pairing, complaint: str, at: int = 0) -> None:
    """Record the calls that a later message has left without a result."""
    if pairing.waiting:
        pairing.problems.append(complaint.format(at=at, ids=", ".join(pairing.waiting)))
        pairing.waiting = []


def block_ids(message: Message, kind: str, key: str) -> list[str]:
    """The ids that the blocks of one type carry."""
    content = message.get("content")
    return (
        [str(block.get(key)) for block in content if is_block(block, kind)]
        if isinstance(content, list)
        else []
    )


NO_USE = "400 — tool_result block(s) provided when previous message does not contain any tool_use blocks"
WRONG_USE = "400 — messages.{at}: unexpected tool_use_id found in tool_result blocks: {ids}"
NO_RESULT = "400 — messages.{at}: tool_use ids were found without tool_result blocks immediately after: {ids}"
EMPTY = (
    "400 — messages.{at}: all messages must have non-empty content except for the last one of the assistant"
)
SPLIT = (
    "accepted, but the results of one turn are split over messages {places}: expect {n} requests instead of 1"
)


def check_anthropic(messages: Sequence[Message]) -> list[str]:
    """Tool uses and results that do not belong together, in Anthropic's form."""
    pairing, asked_at = Pairing(), 0
    for at, message in enumerate(messages):
        results = block_ids(message, "tool_result", "tool_use_id")
        if results:
            strangers = pairing.answer(results, at)
            if strangers:
                complaint = WRONG_USE if pairing.asked else NO_USE
                pairing.problems.append(complaint.format(at=at, ids=", ".join(strangers)))
            continue
        close_turn(pairing, asked_at)
        pairing.ask(block_ids(message, "tool_use", "id"), at)
        asked_at = at
        if not message.get("content") and not (at == len(messages) - 1 and message["role"] == "assistant"):
            pairing.problems.append(EMPTY.format(at=at))
    close_turn(pairing, asked_at)
    return pairing.problems


def close_turn(pairing: Pairing, asked_at: int) -> None:
    """Record what one turn left behind: calls without results, and results that came in pieces."""
    unanswered(pairing, NO_RESULT, asked_at + 1)
    if len(pairing.answered_at) > 1 and pairing.asked:
        places = ", ".join(map(str, pairing.answered_at))
        pairing.problems.append(SPLIT.format(places=places, n=len(pairing.asked)))
