# Built by bookkit from chapters/03-wire.md. Edit the chapter, not this file.
# bookkit: cells e03c326f7479, body 794b589e2599
"""The wire."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from agentkit.tools import JSON, ToolCall, json_type, show

__all__ = [
    "ANSWER_KEYS",
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
    "PROBLEM",
    "READER",
    "RESULT_KEYS",
    "ROLES",
    "SCAN",
    "SPACE",
    "SPLIT",
    "STOP_REASONS",
    "TWICE",
    "UNNAMED",
    "UNREAD",
    "WRONG_USE",
    "Exchange",
    "Message",
    "NotJSON",
    "Reply",
    "ScriptedModel",
    "TextBlock",
    "ToolUseBlock",
    "Usage",
    "answer_message",
    "anthropic_problems",
    "as_json",
    "as_text",
    "assistant_from_blocks",
    "block_ids",
    "block_json",
    "broken_call",
    "call_ids",
    "check_messages",
    "check_roles",
    "complain",
    "content_blocks",
    "content_text",
    "count",
    "depth",
    "encode",
    "entries",
    "entry_from_block",
    "entry_to_openai",
    "exchanges",
    "finite",
    "first_choice",
    "free_id",
    "from_anthropic",
    "given_id",
    "holds_results",
    "is_block",
    "is_message",
    "is_openai",
    "is_plain",
    "is_well_formed",
    "legacy_call",
    "make_encoder",
    "may_stay",
    "merge_parts",
    "message_from_result",
    "message_to_openai",
    "missing",
    "no_constant",
    "normalise_reply",
    "openai_problems",
    "parse_json",
    "parse_tool_calls",
    "proposed",
    "read_arguments",
    "read_call",
    "read_calls",
    "readable",
    "rebuilt",
    "repeated",
    "replayed",
    "reply_from_anthropic",
    "reply_from_openai",
    "reports_failure",
    "responses",
    "result_block",
    "stop_reason",
    "strangers",
    "to_anthropic",
    "to_openai",
    "tool_call_message",
    "tool_message",
    "tool_results",
    "turn_from_anthropic",
    "turn_to_anthropic",
    "unique_members",
    "usage_from_anthropic",
    "usage_from_openai",
    "uses",
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
    """What became of a call, for the model to read: JSON text with ok, kind and content."""
    body = encode({"ok": ok, "kind": kind, "content": content})
    return {"role": "tool", "tool_call_id": call_id, "content": body}


def make_encoder() -> Callable[[Any], str]:
    """`json.dumps` with one encoder for all calls.

    Raises TypeError or ValueError for what is not JSON, and RecursionError for a cycle.

    `json.dumps` makes a new encoder each time, which takes longer than writing a message of
    this size.
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

NOTHING_TO_ADD = "I have nothing further to add."


@dataclass(frozen=True)
class Usage:
    """Tokens of one request; `cached_tokens` are the part of the prompt read from a cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """A message, and what a provider says about it: why it ends and what it cost."""

    message: Message
    stop_reason: str | None = None
    usage: Usage | None = None


@dataclass
class ScriptedModel:
    """A stand-in for a chat model: plays `turns` in order, or reacts to the last tool result.

    A key of `reactions` that occurs in the result decides, and uses up no turn. Which turn
    is next follows from the transcript alone.
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
        """The messages that were no reaction; reads on where it stopped in this list."""
        seen, last, upto, used = self._place
        if seen is not messages or len(messages) < upto or (upto and messages[upto - 1] is not last):
            upto, used = 0, 0
        for at in range(upto, len(messages)):
            if messages[at].get("role") == "assistant":
                used += at == 0 or self.reaction_to(messages[at - 1]) is None
        self._place = (messages, messages[-1] if messages else None, len(messages), used)
        return used


# %% chapters/03-wire.md § What a lenient reader lets through


class NotJSON(ValueError):
    """A text that is no JSON, or JSON that this book refuses; the message says why."""


def unique_members(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """The members of one object; a name that occurs twice is refused."""
    members = dict(pairs)
    if len(members) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
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


MAX_DEPTH = 100
SPACE = " \t\n\r"  # what JSON calls white space; Python's strip() would take more


def parse_json(text: str) -> JSON:
    """The value of a JSON text, or `NotJSON` with the reason; never another exception.

    Stricter than `json.loads`: no NaN or infinity, no key twice in an object, at most
    `MAX_DEPTH` levels.
    """
    try:
        value, end = SCAN(text, len(text) - len(text.lstrip(SPACE)))
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
    if end != len(text) and text[end:].strip(SPACE):
        raise NotJSON(f"extra text at character {end}")
    if len(text) > 2 * MAX_DEPTH and depth(value) > MAX_DEPTH:  # each level takes two brackets
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

    A string is parsed; an object that arrives parsed is taken; `null` and the empty string
    mean no arguments.
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
    """A value as JSON text. One that has none becomes a text that nobody can read."""
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__} that is not JSON>"


UNNAMED = "unnamed"
PROBLEM = "problem"


def read_call(item: Any, call_id: str) -> tuple[ToolCall, Message]:
    """One entry of `tool_calls`, as a call that may have a problem, and well formed."""
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict):
        return broken_call(call_id, f"a tool call must hold a function, got {json_type(function)}")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        wrong = "is empty" if name == "" else f"must be a string, got {json_type(name)}"
        return broken_call(call_id, f"the name of the tool {wrong}")
    arguments, text, problem = read_arguments(function.get("arguments"))
    call = ToolCall(call_id, name, arguments, problem)
    if is_well_formed(item, call_id):
        return call, item
    if isinstance(item.get(PROBLEM), str):
        return broken_call(call_id, item[PROBLEM])
    entry = {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
    return call, entry | as_json({key: value for key, value in item.items() if key not in entry})


def broken_call(call_id: str, problem: str) -> tuple[ToolCall, Message]:
    """An entry that is no call. It keeps its problem, and arguments that nobody can read."""
    function = {"name": UNNAMED, "arguments": f"<{problem}>"}
    entry = {"id": call_id, "type": "function", "function": function, PROBLEM: problem}
    return ToolCall(call_id, UNNAMED, None, problem), entry


def is_well_formed(item: Message, call_id: str) -> bool:
    """Whether an entry with a named function has the right keys and no others."""
    if len(item) != 3 or item.get("id") != call_id or item.get("type") != "function":
        return False
    function = item["function"]
    return len(function) == 2 and isinstance(function.get("arguments"), str)


def as_json(members: Mapping[Any, Any]) -> Message:
    """The members that JSON can hold, as it holds them: a tuple becomes a list."""
    kept: Message = {}
    for key, value in members.items():
        try:
            kept.update(parse_json(encode({key: value})))
        except (TypeError, ValueError, RecursionError):
            continue
    return kept


def call_ids(items: list[Any]) -> list[str]:
    """An id for each entry, unique within the message.

    The first to use an id keeps it. A second one gets `_2` appended; an entry without an id
    is `call_1`, by its place. Neither ever takes an id that another entry brought along.
    """
    if len(items) == 1:
        return [given_id(items[0]) or "call_1"]
    given = [given_id(item) for item in items]
    taken = set(given)
    if len(taken) == len(given) and "" not in taken:
        return given
    ids: list[str] = []
    seen: set[str] = set()
    tried: dict[str, int] = {}
    for place, wish in enumerate(given, 1):
        free = wish if wish and wish not in seen else free_id(wish or f"call_{place}", taken, tried)
        taken.add(free)
        seen.add(free)
        ids.append(free)
    return ids


def given_id(item: Any) -> str:
    """The id that an entry brings along, "" when it has none."""
    given = item.get("id") if isinstance(item, dict) else None
    return given if isinstance(given, str) else ""


def free_id(wish: str, taken: set[str], tried: dict[str, int]) -> str:
    """`wish`, or `wish` with a free number; searches on where the last search ended."""
    number, free = tried.get(wish, 1), wish
    while free in taken:
        number += 1
        free = f"{wish}_{number}"
    tried[wish] = number
    return free


def entries(message: Any) -> list[Any]:
    """The raw entries of `tool_calls`; something that is no list counts as one broken entry."""
    raw = message.get("tool_calls") if isinstance(message, dict) else None
    if not raw:
        return []
    return raw if isinstance(raw, list) else [raw]


def read_calls(items: list[Any]) -> tuple[list[ToolCall], list[Message]]:
    """Raw entries as calls, and as well-formed entries."""
    calls, kept = [], []
    for item, call_id in zip(items, call_ids(items), strict=True):
        call, entry = read_call(item, call_id)
        calls.append(call)
        kept.append(entry)
    return calls, kept


def parse_tool_calls(message: Any) -> list[ToolCall]:
    """The calls that a message proposes, in order; none for an answer. Never raises."""
    return read_calls(entries(message))[0]


# %% chapters/03-wire.md § What enters the transcript

PLAIN_KEYS = {"role", "content", "tool_calls"}
ANSWER_KEYS = {"role", "content"}


def is_message(message: Any) -> bool:
    """Whether something can be read as an assistant message."""
    if not isinstance(message, dict) or PLAIN_KEYS.isdisjoint(message):
        return False
    content = message.get("content")
    fits = content is None or isinstance(content, (str, list))
    return fits and message.get("role", "assistant") == "assistant"


def content_text(content: Any) -> str:
    """The text of a message's content: itself, or the text parts of a list joined."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [
        part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"
    ]
    return "".join(text for text in texts if isinstance(text, str))


def is_plain(message: Message, items: list[Any], kept: list[Message]) -> bool:
    """Whether a message can stay as it is: no other keys, every entry well formed."""
    content = message.get("content")
    if not items:
        return isinstance(content, str) and message.keys() == ANSWER_KEYS
    if content == "" or isinstance(content, list) or message.keys() != PLAIN_KEYS:
        return False
    return kept == items


MALFORMED = "malformed"


def normalise_reply(reply: Any) -> tuple[Reply, list[ToolCall]]:
    """A reply whose message can enter the transcript, and its calls. Never raises.

    Content becomes a string, or None beside calls; every call has a unique id, and a name
    and arguments that are strings. A message that is well formed stays the same object.
    Something that is no assistant message becomes an empty one with the stop reason
    `malformed`.
    """
    message, reason, usage = reply, None, None
    if isinstance(reply, Reply):
        message, reason, usage = reply.message, reply.stop_reason, reply.usage
        usage = usage if isinstance(usage, Usage) else None
        reason = reason if reason is None or isinstance(reason, str) else MALFORMED
    if not is_message(message):
        return Reply({"role": "assistant", "content": ""}, MALFORMED, usage), []
    items = entries(message)
    calls, kept = read_calls(items)
    if not is_plain(message, items, kept):
        message = rebuilt(message, kept)
    return Reply(message, reason, usage), calls


def rebuilt(message: Message, kept: list[Message]) -> Message:
    """A message made well formed; further keys stay when they are JSON."""
    text = content_text(message.get("content"))
    body: Message = {"role": "assistant", "content": (text or None) if kept else text}
    if kept:
        body["tool_calls"] = kept
    further = {key: value for key, value in message.items() if key not in PLAIN_KEYS and may_stay(key, value)}
    return body | as_json(further)


def may_stay(key: Any, value: Any) -> bool:
    """Whether OpenAI takes a further key of a message back."""
    if key in ("audio", "function_call"):
        return False
    return key not in ("name", "refusal") or isinstance(value, str)


# %% chapters/03-wire.md § What leaves it

UNREAD = "_unread_arguments"
OPENAI_KEYS = {"role", "content", "tool_calls", "tool_call_id", "name", "refusal"}


def readable(call: ToolCall, entry: Message) -> dict[str, JSON]:
    """The arguments of a call as an object; unread ones as text, under the key UNREAD."""
    return {UNREAD: entry["function"]["arguments"]} if call.arguments is None else call.arguments


def to_openai(messages: Iterable[Message]) -> list[Message]:
    """A transcript as OpenAI takes it: without what was kept for another provider.

    Arguments are always the text of an object: what could not be read is sent under the key
    UNREAD. The transcript itself is not changed.
    """
    return [message_to_openai(message) for message in messages]


def message_to_openai(message: Message) -> Message:
    """One message of a transcript as OpenAI takes it."""
    sent = {key: value for key, value in message.items() if key in OPENAI_KEYS}
    if items := entries(sent):
        sent["tool_calls"] = [entry_to_openai(*pair) for pair in zip(*read_calls(items), strict=True)]
    return sent


def entry_to_openai(call: ToolCall, entry: Message) -> Message:
    """One entry of `tool_calls`, its arguments the text of an object."""
    sent = {key: value for key, value in entry.items() if key not in (PROBLEM, "index")}
    if call.arguments:
        return sent
    return {**sent, "function": {**entry["function"], "arguments": encode(readable(call, entry))}}


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
    """Why a reply ends, in one vocabulary; a word that nobody documents is passed on."""
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


def content_blocks(message: Message) -> list[TextBlock | ToolUseBlock]:
    """An assistant message as the list of typed blocks that Anthropic's API would hold it in."""
    text = content_text(message.get("content"))
    blocks: list[TextBlock | ToolUseBlock] = [TextBlock(text)] if text else []
    for call, entry in zip(*read_calls(entries(message)), strict=True):
        blocks.append(ToolUseBlock(call.call_id, call.name, readable(call, entry)))
    return blocks


def block_json(block: TextBlock | ToolUseBlock) -> Message:
    """A block as the plain object that goes over the wire."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}


DROPPED_KEYS = {"role", "content", "tool_calls", "function_call", "audio"}


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


def reply_from_anthropic(response: Any) -> Reply:
    """A message of the Messages API (parsed JSON) as a `Reply`; anything else is `malformed`."""
    body = response if isinstance(response, dict) else {}
    reason = stop_reason(body.get("stop_reason"))
    blocks = [] if body.get("content") is None and reason else body.get("content")
    if not isinstance(blocks, list):
        return Reply({}, MALFORMED)
    return Reply(assistant_from_blocks(blocks), reason, usage_from_anthropic(body.get("usage")))


def assistant_from_blocks(blocks: list[Any]) -> Message:
    """Content blocks as an assistant message.

    Text is joined and tool uses become calls. Where that would lose something (thinking,
    server tools, text behind a call), the blocks are kept as they came, under `blocks`, to
    be replayed.
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


def is_block(block: Any, kind: str) -> bool:
    """Whether something is a content block of one type."""
    return isinstance(block, dict) and block.get("type") == kind


def entry_from_block(block: Message) -> Message:
    """A tool-use block as an entry; unread arguments are again the text they were."""
    given = block.get("input")
    unread = given.get(UNREAD) if isinstance(given, dict) and given.keys() == {UNREAD} else None
    function = {
        "name": block.get("name"),
        "arguments": unread if isinstance(unread, str) else as_text(given),
    }
    return {"id": block.get("id"), "type": "function", "function": function}


def usage_from_anthropic(usage: Any) -> Usage | None:
    """Anthropic's counters; its input tokens leave out what went through the cache."""
    if not isinstance(usage, dict):
        return None
    cached = count(usage, "cache_read_input_tokens")
    prompt = count(usage, "input_tokens") + cached + count(usage, "cache_creation_input_tokens")
    return Usage(prompt, count(usage, "output_tokens"), cached)


# %% chapters/03-wire.md § There and back


def result_block(message: Message) -> Message:
    """A tool message as a tool-result block, flagged when it reports a failure."""
    content = message["content"]
    block: Message = {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": content,
    }
    if "is_error" in message:
        block["is_error"] = message["is_error"]
    elif reports_failure(content):
        block["is_error"] = True
    return {**block, **message.get("extra", {})}


def reports_failure(content: Any) -> bool:
    """Whether the content of a tool message is what `tool_message` writes, with `ok` false."""
    try:
        body = parse_json(content) if isinstance(content, str) else None
    except NotJSON:
        return False
    return isinstance(body, dict) and body.keys() == {"ok", "kind", "content"} and body["ok"] is False


def turn_to_anthropic(message: Message) -> Message:
    """One user or assistant message in Anthropic's form."""
    content = message.get("content")
    if message.get("role") == "user":
        return {
            "role": "user",
            "content": list(content) if isinstance(content, list) else content,
        }
    if message.get("role") != "assistant":
        raise ValueError(f"Anthropic's API has no role {show(message.get('role'))}")
    return {"role": "assistant", "content": replayed(message) or ""}


def replayed(message: Message) -> list[Message]:
    """The blocks kept for replay, with the calls of the transcript; else new ones."""
    blocks = [block_json(block) for block in content_blocks(message)]
    kept = message.get("blocks")
    if not isinstance(kept, list):
        return blocks
    uses = iter([block for block in blocks if block["type"] == "tool_use"])
    return [{**block, **next(uses, {})} if is_block(block, "tool_use") else block for block in kept]


def to_anthropic(messages: Sequence[Message]) -> dict[str, Any]:
    """A transcript as `system` and `messages` of Anthropic's API, without loss.

    The results of one turn go into one user message; a turn of the assistant that says
    nothing is left out. Raises `ValueError` for a role that the API lacks and for a system
    message that is not the first.
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
            turns = [turn_to_anthropic(message) for message in group]
            body += [turn for turn in turns if turn["content"] or role == "user"]
    return {"system": head[0]["content"] if head else None, "messages": merge_parts(body)}


def merge_parts(messages: list[Message]) -> list[Message]:
    """Parts that follow tool results join their message, as the API puts them: results first."""
    merged: list[Message] = []
    for message in messages:
        parts = isinstance(message["content"], list) and message["role"] == "user"
        if merged and parts and holds_results(merged[-1]):
            merged[-1]["content"] += message["content"]
        else:
            merged.append(message)
    return merged


def holds_results(message: Message) -> bool:
    """Whether a message of Anthropic's form carries tool results."""
    content = message.get("content")
    return isinstance(content, list) and any(is_block(block, "tool_result") for block in content)


RESULT_KEYS = {"type", "tool_use_id", "content", "is_error"}


def from_anthropic(messages: Iterable[Message], system: Any = None) -> list[Message]:
    """Messages of Anthropic's API as a transcript of this book."""
    transcript: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    for message in messages:
        transcript += turn_from_anthropic(message)
    return transcript


def turn_from_anthropic(message: Message) -> list[Message]:
    """One message of Anthropic's form; each result becomes a message."""
    content = message.get("content")
    if not isinstance(content, list):
        return [{"role": message["role"], "content": content}]
    if message.get("role") == "assistant":
        return [assistant_from_blocks(content)]
    results = [message_from_result(block) for block in content if is_block(block, "tool_result")]
    rest = [block for block in content if not is_block(block, "tool_result")]
    return [*results, *([{"role": "user", "content": rest}] if rest or not results else [])]


def message_from_result(block: Message) -> Message:
    """A tool-result block as a tool message; a flag that the content does not imply is kept."""
    content = block.get("content", "")
    message: Message = {
        "role": "tool",
        "tool_call_id": block.get("tool_use_id"),
        "content": content,
    }
    if "is_error" in block and (block["is_error"] is not True or not reports_failure(content)):
        message["is_error"] = block["is_error"]
    extra = {key: value for key, value in block.items() if key not in RESULT_KEYS}
    return {**message, **({"extra": extra} if extra else {})}


# %% chapters/03-wire.md § An array, read as a provider reads it


class Exchange(NamedTuple):
    """The message at place `at`, the ids it asks for, and (place, id) of each result."""

    at: int
    message: Message
    asked: list[str]
    answers: list[tuple[int, str]]


def exchanges(
    messages: Sequence[Message],
    asked: Callable[[Message], list[str]],
    answered: Callable[[Message], list[str]],
) -> list[Exchange]:
    """An array as exchanges; `asked` and `answered` read the ids of calls and of results."""
    found: list[Exchange] = []
    for at, message in enumerate(messages):
        ids = answered(message)
        if ids and not found:
            found.append(Exchange(-1, {"content": "nobody has spoken"}, [], []))
        if ids:
            found[-1].answers.extend((at, each) for each in ids)
        else:
            found.append(Exchange(at, message, asked(message), []))
    return found


def block_ids(message: Message, kind: str, key: str) -> list[str]:
    """The ids that the blocks of one type carry."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [str(block.get(key)) for block in blocks if is_block(block, kind)]


def uses(message: Message) -> list[str]:
    """The ids of the calls in a message of Anthropic's form."""
    return block_ids(message, "tool_use", "id")


def tool_results(message: Message) -> list[str]:
    """The ids of the results in a message of Anthropic's form."""
    return block_ids(message, "tool_result", "tool_use_id")


def repeated(exchange: Exchange) -> list[str]:
    """Ids that more than one call of the message carries."""
    return [call_id for call_id, times in Counter(exchange.asked).items() if times > 1]


def missing(exchange: Exchange) -> list[str]:
    """Calls without a result."""
    answered = {call_id for _, call_id in exchange.answers}
    return [call_id for call_id in exchange.asked if call_id not in answered]


def strangers(exchange: Exchange) -> dict[int, list[str]]:
    """Results that no call waits for, or waits for any longer, by their place."""
    waiting, found = set(exchange.asked), dict[int, list[str]]()
    for at, call_id in exchange.answers:
        if call_id not in waiting:
            found.setdefault(at, []).append(call_id)
        waiting.discard(call_id)
    return found


TWICE = "400 — messages.{at}: tool call ids must be unique; repeated: {ids}"
NO_USE = "400 — tool_result block(s) provided when previous message does not contain any tool_use blocks"
WRONG_USE = "400 — messages.{at}: unexpected tool_use_id found in tool_result blocks: {ids}"
NO_RESULT = "400 — messages.{at}: tool_use ids were found without tool_result blocks immediately after: {ids}"
EMPTY = (
    "400 — messages.{at}: all messages must have non-empty content except for the last one of the assistant"
)
SPLIT = (
    "accepted, but the results of one turn are split over messages {ids}: expect {n} requests instead of 1"
)


def complain(words: str, at: int, ids: Iterable[Any], n: int = 0) -> list[str]:
    """One complaint about these ids or places; none when there are none."""
    named = ", ".join(map(str, ids))
    return [words.format(at=at, ids=named, n=n)] if named else []


def anthropic_problems(exchange: Exchange, is_last: bool) -> list[str]:
    """What Anthropic's API says about one exchange."""
    at, message = exchange.at, exchange.message
    problems = complain(TWICE, at, repeated(exchange))
    if not message.get("content") and not (is_last and message["role"] == "assistant"):
        problems.append(EMPTY.format(at=at))
    for place, ids in strangers(exchange).items():
        problems += complain(WRONG_USE if exchange.asked else NO_USE, place, ids)
    problems += complain(NO_RESULT, at + 1, missing(exchange))
    places = sorted({place for place, _ in exchange.answers})
    if exchange.asked and len(places) > 1:
        problems += complain(SPLIT, at, places, len(exchange.asked))
    return problems


NO_CALL = (
    "400 — messages.{at}: messages with role 'tool' must be a response to a preceding message with "
    "'tool_calls'; {ids} is none"
)
NO_RESPONSE = (
    "400 — An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
)


def openai_problems(exchange: Exchange) -> list[str]:
    """What OpenAI's API says about one exchange."""
    at, message = exchange.at, exchange.message
    problems = complain(TWICE, at, repeated(exchange))
    if message.get("role") == "assistant" and not exchange.asked and message.get("content") is None:
        problems.append(f"400 — messages.{at}.content: expected a string, got null")
    for place, ids in strangers(exchange).items():
        problems += complain(NO_CALL, place, map(show, ids))
    return problems + complain(NO_RESPONSE, at, missing(exchange))


def proposed(message: Message) -> list[str]:
    """The ids of the calls in a message of OpenAI's form."""
    return [str(item.get("id")) if isinstance(item, dict) else "" for item in message.get("tool_calls") or []]


def responses(message: Message) -> list[str]:
    """The id that a message of OpenAI's form answers, if it is a result."""
    return [str(message.get("tool_call_id"))] if message["role"] == "tool" else []


ROLES = ("system", "developer", "user", "assistant", "tool")


def check_messages(messages: Sequence[Message]) -> list[str]:
    """What is wrong with a message array, in either provider's form; empty when all is well.

    A line that begins with `400` is what the provider answers instead of a reply. One that
    begins with `accepted` goes through, at a price that the line names.
    """
    if problems := check_roles(messages):
        return problems
    if any(is_openai(message) for message in messages):
        return [line for each in exchanges(messages, proposed, responses) for line in openai_problems(each)]
    read = exchanges(messages, uses, tool_results)
    last = len(messages) - 1
    return [line for each in read for line in anthropic_problems(each, each.at == last)]


def is_openai(message: Message) -> bool:
    """Whether only OpenAI's form has such a message; Anthropic's holds the system apart."""
    return message["role"] not in ("user", "assistant") or "tool_calls" in message


def check_roles(messages: Sequence[Any]) -> list[str]:
    """Messages that no provider knows how to read."""
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    problems = [
        f"400 — messages.{at}.role: must be one of {', '.join(ROLES)}, got {show(role)}"
        for at, role in enumerate(roles)
        if role not in ROLES
    ]
    return problems if messages else ["400 — messages: at least one message is required"]
