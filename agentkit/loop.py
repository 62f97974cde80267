# Built by bookkit from chapters/04-loop.md. Edit the chapter, not this file.
# bookkit: cells ee288c21c422, body 4f5045bb71b9
"""The loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, Protocol

from agentkit.tools import Registry, ToolCall, ToolSpec, check_call
from agentkit.wire import (
    Message,
    Reply,
    Usage,
    content_text,
    encode,
    entries,
    normalise_reply,
    parse_tool_calls,
    read_calls,
    tool_message,
    unique_members,
)

__all__ = [
    "EXPECTED_ERRORS",
    "FINAL",
    "SYSTEM_PROMPT",
    "TINTS",
    "USD_PER_MILLION_TOKENS",
    "Decision",
    "Gate",
    "Guard",
    "Kind",
    "Limits",
    "Model",
    "Observation",
    "RunCrash",
    "RunInterrupted",
    "RunResult",
    "RunState",
    "Stop",
    "Transcript",
    "act",
    "allow_all",
    "count_chars",
    "decide",
    "estimate_cost",
    "estimate_tokens",
    "execute_call",
    "minimal_agent",
    "must_stop",
    "print_transcript",
    "query",
    "reply_ends",
    "resume_agent",
    "run_agent",
    "run_tool",
    "sequence_diagram",
    "step",
]


# %% chapters/04-loop.md § Forty lines

USD_PER_MILLION_TOKENS = {"prompt": 3.00, "completion": 15.00}


def estimate_cost(usage: Usage | None) -> float:
    """What a reply cost in dollars by the usage it reports; 0.0 if it reports none."""
    if usage is None:
        return 0.0
    prompt = usage.prompt_tokens * USD_PER_MILLION_TOKENS["prompt"]
    return (prompt + usage.completion_tokens * USD_PER_MILLION_TOKENS["completion"]) / 1_000_000


def run_tool(name: str, arguments: dict[str, Any], tool_impls: Mapping[str, Callable[..., Any]]) -> Any:
    """Run a tool by name; whatever goes wrong comes back as a result."""
    if name not in tool_impls:  # allow-list
        return {"error": f"unknown tool {name}"}
    try:
        return tool_impls[name](**arguments)
    except Exception as error:  # errors go back to the model
        return {"error": str(error)}


def minimal_agent(
    user_message: str,
    tools: list[dict[str, Any]],
    tool_impls: Mapping[str, Callable[..., Any]],
    client: Any,
    model: str,
    max_steps: int = 10,
    max_cost_usd: float = 0.50,
) -> str:
    """The agent loop in forty lines, for reading. `run_agent` is the one for use."""
    system = "Use the tools when they help. Once you know the answer, say it and stop."
    messages = [{"role": "system", "content": system}]
    messages.append({"role": "user", "content": user_message})
    spent = 0.0
    for step_number in range(max_steps):  # hard limit
        reply = client.chat(model=model, messages=messages, tools=tools)
        spent += estimate_cost(reply.usage)
        if spent > max_cost_usd:  # budget
            return "Stopped: cost limit reached."
        messages.append(reply.message)
        proposals = reply.message.get("tool_calls") or []
        if not proposals:
            return str(reply.message["content"])
        for proposal in proposals:
            name = proposal["function"]["name"]
            arguments = json.loads(proposal["function"]["arguments"])
            print(f"  step {step_number}: calling {name}({arguments})")  # observability
            result = run_tool(name, arguments, tool_impls)
            result = json.dumps(result)[:4000]  # truncation
            answer = {"role": "tool", "tool_call_id": proposal["id"], "content": result}
            messages.append(answer)
    return "Stopped: step limit reached."


# %% chapters/04-loop.md § Endings with a type


class Stop(StrEnum):
    """Every way a run can end. Callers branch on the member, never on prose."""

    ANSWERED = "answered"
    GOAL_MET = "goal_met"
    STEP_LIMIT = "step_limit"
    TOKEN_LIMIT = "token_limit"
    COST_LIMIT = "cost_limit"
    DEADLINE = "deadline"
    NO_PROGRESS = "no_progress"
    NEEDS_APPROVAL = "needs_approval"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    PAUSE_LIMIT = "pause_limit"
    GOAL_UNMET = "goal_unmet"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class Limits:
    """Ceilings that hold whatever the model wants. ValueError for what is no count.

    max_turns          model calls, pauses not counted (0 allows none)
    max_prompt_tokens  estimated size of any one prompt; a larger one is not sent
    repeated_denials   denials of one identical proposal; the last of them ends the run
    max_pauses         provider pauses that are taken up again
    max_result_chars   characters of one observation's content that reach the transcript
    """

    max_turns: int = 8
    max_prompt_tokens: int = 4000
    repeated_denials: int = 2
    max_pauses: int = 8
    max_result_chars: int = 4000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = 0 if name in ("max_turns", "max_prompt_tokens", "max_pauses") else 1
            if type(value) is not int or value < least:
                raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}")


# %% chapters/04-loop.md § Permission


@dataclass(frozen=True)
class Decision:
    """A gate's verdict on one call, with a reason written for whoever reads it next."""

    verdict: Literal["allow", "deny", "ask"]
    reason: str = ""


Gate = Callable[[ToolCall], Decision | tuple[bool, str]]


def allow_all(call: ToolCall) -> tuple[bool, str]:
    """The policy of a system for which nobody has written one."""
    return True, "no policy"


def decide(gate: Gate, call: ToolCall) -> Decision:
    """Only `True`, alone or first of a pair, or the verdict "allow" allows.

    A gate that fails denies, and so does one that changes the arguments: what it
    judged and what would run are then two calls.
    """
    try:
        shown = repr(call.arguments)
        decision = _read_verdict(gate(call))
        kept = repr(call.arguments) == shown
    except Exception as error:
        return Decision("deny", f"denied: the gate failed with {type(error).__name__}")
    if not kept:
        return Decision("deny", "denied: the gate changed the arguments it judged")
    return decision


def _read_verdict(answer: Any) -> Decision:
    if isinstance(answer, Decision) and answer.verdict in ("allow", "deny", "ask"):
        is_text = isinstance(answer.reason, str)
        return answer if is_text else replace(answer, reason=str(answer.reason))
    is_pair = isinstance(answer, tuple) and len(answer) == 2
    verdict, reason = answer if is_pair else (answer, "")
    if verdict is True:
        return Decision("allow", str(reason))
    if verdict is False:
        return Decision("deny", str(reason) or "denied by the gate")
    said = _brief(verdict)
    return Decision("deny", f"denied: the gate answered {said}, and only True allows")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else type(value).__name__


# %% chapters/04-loop.md § Across the boundary

Kind = Literal["result", "invalid", "denied", "error", "pending", "skipped", "unknown"]


@dataclass(frozen=True)
class Observation:
    """What became of the proposed call `call_id`. `content` is plain JSON.

    result   the handler ran and returned
    error    it ran, or tried, and says why not
    invalid  the call broke its tool's contract
    denied   the gate refused
    pending  waits for someone's decision
    skipped  the run ended before its turn came
    unknown  it was cut off; the effect may or may not have happened
    """

    call_id: str
    ok: bool
    kind: Kind
    content: Any


EXPECTED_ERRORS = (KeyError, ValueError, TimeoutError, ConnectionError)


def execute_call(call: ToolCall, tools: Mapping[str, ToolSpec], gate: Gate) -> Observation:
    """Carry one proposal over the effect boundary, or say why not.

    The contract is checked first, then the gate judges the arguments that would run,
    then the handler runs. EXPECTED_ERRORS that it raises are observations; whatever
    else it raises passes through.
    """
    ready, problem = check_call(call, tools)
    if ready is None or ready.arguments is None:
        return Observation(call.call_id, False, "invalid", problem)
    decision = decide(gate, ready)
    if decision.verdict == "ask":
        return Observation(call.call_id, False, "pending", decision.reason)
    if decision.verdict == "deny":
        return Observation(call.call_id, False, "denied", decision.reason)
    try:
        result = tools[ready.name].handler(**ready.arguments)
    except EXPECTED_ERRORS as error:
        return Observation(call.call_id, False, "error", _sentence(error))
    return _snapshot(call.call_id, result)


def _sentence(error: Exception) -> str:
    """The error's own words. `str` of a KeyError would put them in quotes."""
    words = error.args[0] if isinstance(error, KeyError) and error.args else error
    with suppress(Exception):  # an error that cannot even say what it is
        return str(words) or type(error).__name__
    return type(error).__name__


# {1: ..., "1": ...} would be written as two members of one name.
_decode = json.JSONDecoder(object_pairs_hook=unique_members).raw_decode


def _snapshot(call_id: str, result: Any) -> Observation:
    """A result as JSON and as of now, whatever the handler's objects become later."""
    try:
        content, _ = _decode(encode(result))
    except Exception as error:  # a result's own methods may raise anything
        why = f"the tool ran, but its result is not JSON: {_sentence(error)}"
        return Observation(call_id, False, "error", why)
    return Observation(call_id, True, "result", content)


# %% chapters/04-loop.md § Nothing but data


@dataclass
class RunState:
    """All that the loop knows, as plain data: save it, move it, go on elsewhere.

    messages          the transcript in wire form
    observations      one for each tool message, in the same order
    prompt_token_log  estimated tokens of each prompt sent
    turns, pauses     replies that counted as a turn, and those that were a pause
    prompt_chars      characters of the transcript as JSON, kept up as it grows
    denials           how often each proposal was denied, as its gate saw it
    usage_log         what the provider reported for each call, or None
    ending            value of the Stop that ended the run, None while it goes on
    """

    messages: list[Message]
    observations: list[Observation] = field(default_factory=list)
    prompt_token_log: list[int] = field(default_factory=list)
    turns: int = 0
    pauses: int = 0
    prompt_chars: int = 0
    denials: dict[str, int] = field(default_factory=dict)
    usage_log: list[Usage | None] = field(default_factory=list)
    ending: str | None = None

    def to_json(self) -> str:
        """The whole state as one JSON text."""
        return json.dumps(vars(self), default=vars)

    @classmethod
    def from_json(cls, text: str) -> RunState:
        """The state that `to_json` wrote. ValueError for any other text."""
        try:
            data = json.loads(text)
            data["observations"] = [Observation(**o) for o in data["observations"]]
            data["usage_log"] = [item and Usage(**item) for item in data["usage_log"]]
            data["messages"] = [{"role": m["role"], **m} for m in data["messages"]]
            return cls(**data)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            wanted = "pass the text that RunState.to_json wrote"
            raise ValueError(f"not a saved run ({error}): {wanted}") from error


def count_chars(messages: list[Message]) -> int:
    """Characters of all messages as JSON, each counted by itself."""
    brackets_and_commas = 2 * max(len(messages), 1)
    return len(encode(messages)) - brackets_and_commas


def estimate_tokens(messages: list[Message]) -> int:
    """Four characters of JSON a token, rounded down. Tool schemas are not counted."""
    return count_chars(messages) // 4


# %% chapters/04-loop.md § The kernel

Guard = Callable[[RunState], Stop | None]


def must_stop(state: RunState, limits: Limits, guards: Sequence[Guard]) -> Stop | None:
    """Whether to end the run before another call: the guards, then the limits."""
    for guard in guards:
        stop = guard(state)
        if stop is not None:
            return Stop(stop)
    if state.pauses > limits.max_pauses:
        return Stop.PAUSE_LIMIT
    if state.turns >= limits.max_turns:
        return Stop.STEP_LIMIT
    if state.prompt_chars // 4 > limits.max_prompt_tokens:
        return Stop.TOKEN_LIMIT
    return None


class Model(Protocol):
    """Reads a transcript and returns one assistant message, bare or in a Reply."""

    def chat(self, messages: list[Message]) -> Message | Reply:
        """The next assistant message. Must not change `messages`."""
        ...


def query(state: RunState, model: Model) -> tuple[str | None, list[ToolCall]]:
    """Send the transcript, append the reply; its stop reason and its calls."""
    sent, prompt_tokens = len(state.usage_log), state.prompt_chars // 4
    reply, calls = normalise_reply(model.chat(state.messages))
    paused = reply.stop_reason == "pause_turn" and not calls
    state.pauses += paused
    state.turns += not paused
    log, bills = state.prompt_token_log, state.usage_log
    log[sent:], bills[sent:] = [prompt_tokens], [reply.usage]
    state.messages.append(reply.message)
    return reply.stop_reason, calls


def reply_ends(stop_reason: str | None, has_calls: bool) -> Stop | None:
    """Whether a reply ends the run, and how. None: act on it, or take up a pause."""
    if stop_reason == "max_tokens":
        return Stop.TRUNCATED
    if stop_reason == "refusal":
        return Stop.REFUSED
    if stop_reason in (None, "end_turn", "stop_sequence"):
        return None if has_calls else Stop.ANSWERED
    if stop_reason == "pause_turn" or (stop_reason == "tool_use" and has_calls):
        return None
    return Stop.MALFORMED


def _record(state: RunState, observation: Observation, max_chars: int = Limits.max_result_chars) -> None:
    """Add an observation and its tool message, the content cut to `max_chars`."""
    message = _told(observation)
    if len(message["content"]) > max_chars:
        observation = replace(observation, content=_cut(observation.content, max_chars))
        message = _told(observation)
    known, end = len(state.observations), _batch_end(state.messages)
    state.observations[known:], state.messages[end:end] = [observation], [message]


def _batch_end(messages: list[Message]) -> int:
    """Where the next result belongs: before what a caller has added since."""
    end = len(messages)
    while end and messages[end - 1].get("role") not in ("assistant", "tool"):
        end -= 1
    return end


def _told(observation: Observation) -> Message:
    return tool_message(observation.call_id, observation.ok, observation.kind, observation.content)


def _cut(content: Any, limit: int) -> Any:
    text = content
    if not isinstance(content, str):
        text = json.dumps(content, ensure_ascii=False)
    if len(text) <= limit:
        return content
    return f"{text[:limit]} [cut: {limit} of {len(text)} characters]"


def _skip(state: RunState, calls: Iterable[ToolCall], why: str, kind: Kind = "skipped") -> None:
    """Answer calls that are not run."""
    for call in calls:
        _record(state, Observation(call.call_id, False, kind, why))


_BEHIND = "waits for the decision on an earlier call"


def act(
    state: RunState,
    calls: Sequence[ToolCall],
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    limits: Limits,
) -> Stop | None:
    """Give every call its observation, in order, also those that are not run."""
    for position, call in enumerate(calls, 1):
        observation = execute_call(call, tools, gate)
        _record(state, observation, limits.max_result_chars)
        if observation.kind == "pending":
            _skip(state, calls[position:], _BEHIND, "pending")
            return Stop.NEEDS_APPROVAL
        if observation.kind == "denied":
            denials = _count_denial(state, call, tools)
            if denials >= limits.repeated_denials:
                why = "not run: an earlier call was denied again"
                _skip(state, calls[position:], why)
                return Stop.NO_PROGRESS
    return None


def _count_denial(state: RunState, call: ToolCall, tools: Mapping[str, ToolSpec]) -> int:
    """How often it has been denied by now, counted as its gate saw it: 1.0 is 1."""
    judged = check_call(call, tools)[0] or call
    arguments = json.dumps(judged.arguments, sort_keys=True, default=repr)
    proposal = f"{judged.name}:{arguments}"
    state.denials[proposal] = state.denials.get(proposal, 0) + 1
    return state.denials[proposal]


def step(
    state: RunState,
    model: Model,
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    limits: Limits,
) -> Stop | None:
    """One turn: query the model, then answer every call it proposes. None: go on."""
    known = len(state.messages)
    stop_reason, calls = query(state, model)
    stop = reply_ends(stop_reason, bool(calls))
    if stop is None:
        stop = act(state, calls, tools, gate, limits)
    else:
        _skip(state, calls, f"not run: the reply ended the run ({stop.value})")
    state.prompt_chars += count_chars(state.messages[known:])
    return stop


# %% chapters/04-loop.md § Fit to go on


def _settle(state: RunState, why: str) -> None:
    """Answer what a run that was cut off left open, so that it can be sent again."""
    unanswered = _open_calls(state)
    if _waits(state):
        _skip(state, unanswered, _BEHIND, "pending")
    else:
        doubt = f"{why}: the effect may or may not have happened"
        _skip(state, unanswered[:1], doubt, "unknown")
        _skip(state, unanswered[1:], f"not run: an earlier call was cut off ({why})")
    state.prompt_chars = count_chars(state.messages)


def _open_calls(state: RunState) -> list[ToolCall]:
    """The calls of the last batch that no tool message answers yet."""
    end = said = _batch_end(state.messages)
    while said and state.messages[said - 1].get("role") == "tool":
        said -= 1
    return parse_tool_calls(state.messages[said - 1])[end - said :] if said else []


def _waits(state: RunState) -> bool:
    """Whether the last result in the transcript is that of a call that waits."""
    end = _batch_end(state.messages)
    last = state.observations[-1] if state.observations else None
    if last is None or last.kind != "pending":
        return False
    return _told(last) in state.messages[max(end - 1, 0) : end]


FINAL = (Stop.ANSWERED, Stop.TRUNCATED, Stop.REFUSED, Stop.MALFORMED)


def _reopen(state: RunState, tools: Mapping[str, ToolSpec], gate: Gate, limits: Limits) -> Stop | None:
    """Make a state ready to go on; judge pending calls again. A Stop: stay ended."""
    ended = Stop(state.ending) if state.ending else None
    most_denials = max(state.denials.values(), default=0)
    stuck = ended is Stop.NO_PROGRESS and most_denials >= limits.repeated_denials
    nothing_new = _batch_end(state.messages) == len(state.messages)
    if nothing_new and (ended in FINAL or stuck):
        return ended
    state.ending = None
    _settle(state, "no result was recorded")
    while _waits(state):
        end = _batch_end(state.messages)
        del state.observations[-1:], state.messages[end - 1 : end]
    stop = act(state, _open_calls(state), tools, gate, limits)
    state.prompt_chars = count_chars(state.messages)
    return stop


# %% chapters/04-loop.md § The loop itself


@dataclass(frozen=True)
class RunResult:
    """How the run ended, the answer if there is one, and the state behind both."""

    stop: Stop
    answer: str | None
    state: RunState


class _CutOff(BaseException):
    def __init__(self, message: str, state: RunState) -> None:
        super().__init__(message, state)
        self.state = state

    def __str__(self) -> str:
        return str(self.args[0])


class RunCrash(_CutOff, Exception):
    """Something broke that nobody declared. Save `state`, mend the cause, resume."""


class RunInterrupted(_CutOff, KeyboardInterrupt):
    """Someone pressed Ctrl-C during a run. `state` is complete and can be resumed."""


def _crash(state: RunState, error: BaseException) -> _CutOff:
    cause = type(error).__name__
    with suppress(BaseException):  # damaged messages are handed over as they are
        _settle(state, f"stopped by {cause}")
    message = f"{cause} in turn {state.turns}: go on from .state with resume_agent"
    if isinstance(error, KeyboardInterrupt):
        return RunInterrupted(message, state)
    return RunCrash(message, state)


def resume_agent(
    state: RunState,
    model: Model,
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    limits: Limits = Limits(),
    guards: Iterable[Guard] = (),
) -> RunResult:
    """Go on with a run from its state, which is changed in place, to a typed end.

    A run that the model's own reply ended stays ended, unless somebody has spoken
    since. Any other is judged anew by these limits and guards, once the calls that
    waited have been judged again.
    """
    try:
        Registry(tools)  # refuses names that are one name on the wire
        guards = tuple(guards)
        stop = _reopen(state, tools, gate, limits)
        while stop is None:
            stop = must_stop(state, limits, guards)
            stop = stop or step(state, model, tools, gate, limits)
        return _end(state, stop)
    except BaseException as error:
        raise _crash(state, error) from error


def _end(state: RunState, stop: Stop) -> RunResult:
    """The result of a run. Only the model's own last word is an answer."""
    state.ending = stop.value
    last = state.messages[-1] if state.messages else {}
    answered = stop is Stop.ANSWERED and last.get("role") == "assistant"
    return RunResult(stop, last.get("content") if answered else None, state)


SYSTEM_PROMPT = (
    "You work at a support desk. Solve the customer's problem with the tools you have. "
    "When a call is denied, read why and change course."
)


def run_agent(
    task: str,
    model: Model,
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    limits: Limits = Limits(),
    guards: Iterable[Guard] = (),
) -> RunResult:
    """Run a task to a typed end. `task` is text and grants no authority.

    Raises RunCrash or RunInterrupted, each with the state, and nothing else. (A Ctrl-C
    that comes before anything has happened is a plain KeyboardInterrupt.)
    """
    opening = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": task},
    ]
    return resume_agent(RunState(opening), model, tools, gate, limits, guards)


# %% chapters/04-loop.md § A run, watched


def _lines(messages: list[Message]) -> list[tuple[str, str]]:
    """Who speaks and what they say: a pair for each text and each proposed call."""
    lines = []
    for message in messages:
        role, text = message.get("role"), _text(message.get("content"))
        speaker = "model" if role == "assistant" else str(role)
        calls = [entry["function"] for entry in read_calls(entries(message))[1]]
        if text or not calls:
            lines.append((speaker, text))
        lines += [(speaker, f"-> {call['name']} {call['arguments']}") for call in calls]
    return [(_printable(speaker), _printable(text)) for speaker, text in lines]


def _text(content: Any) -> str:
    """Content as one text; what is neither text nor parts of text is spelled out."""
    return content_text(content) or (str(content) if content else "")


def _printable(text: str) -> str:
    """The text with lone surrogates spelled out: JSON allows them, no terminal does."""
    return text.encode("utf-8", "backslashreplace").decode()


def print_transcript(state: RunState) -> None:
    """Print the transcript, a line for each text and each proposed call."""
    print(Transcript(state))


TINTS = {"system": "#8a9099", "user": "#0072b2", "model": "#009e73", "tool": "#e69f00"}


class Transcript:
    """A transcript for the eye: coloured rows in a notebook, lines in a terminal."""

    def __init__(self, state: RunState) -> None:
        self.state = state

    def __repr__(self) -> str:
        lines = _lines(self.state.messages)
        return "\n".join(f"{speaker:<6} | {text}" for speaker, text in lines)

    def _repr_html_(self) -> str:
        lines = _lines(self.state.messages)
        return "\n".join(_row(speaker, text) for speaker, text in lines)


def _row(speaker: str, text: str) -> str:
    tint = TINTS.get(speaker, TINTS["system"])
    style = f"border-left: 4px solid {tint}; background: {tint}1a; padding: 2px 8px;"
    style += " margin: 2px 0; font-family: monospace;"
    style += " white-space: pre-wrap; overflow-wrap: anywhere"
    return f'<div style="{style}"><b>{_escaped(speaker)}</b> {_escaped(text)}</div>'


def _escaped(text: str) -> str:
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, entity)
    return text


def sequence_diagram(state: RunState) -> str:
    """Mermaid source of a sequence diagram of what happened in this run."""
    lines = ["sequenceDiagram", "participant M as Model", "participant L as Loop"]
    lines += ["participant G as Checks", "participant T as Tool"]
    proposed, waits = iter([""]), False
    for message in state.messages:
        said = _lines([message])
        if message.get("role") == "assistant":
            proposed, waits = iter([c.name for c in parse_tool_calls(message)]), False
            lines += [f"M->>L: {_label(text.removeprefix('-> '))}" for _, text in said]
        elif message.get("role") == "tool":
            kind, content = _outcome(message)
            lines += _crossing(_label(next(proposed, "")), kind, content, waits)
            waits = kind == "pending"  # those behind it were not judged
        else:
            lines += [f"L->>M: {_label(f'{who}: {text}')}" for who, text in said]
    return "\n  ".join(lines)


def _outcome(message: Message) -> tuple[str, str]:
    """The kind and content that a tool message tells; text of others is a result."""
    try:
        body = json.loads(message["content"])
        return str(body["kind"]), json.dumps(body["content"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return "result", _text(message.get("content"))


def _crossing(name: str, kind: str, content: str, waits: bool) -> list[str]:
    """The arrows of one call: how far it came, and what went back to the model."""
    told = f"L->>M: {_label(kind + ': ' + content)}"
    if waits or kind == "skipped":
        return [f"Note over L: {name} not run", told]
    if kind == "unknown":
        return [f"Note over L: {name} cut off", told]
    if kind in ("invalid", "denied", "pending"):
        return [f"L->>G: {name}", f"G-->>L: {kind}", told]
    allowed = [f"L->>G: {name}", "G-->>L: allow"]
    return [*allowed, f"L->>T: {name}", f"T-->>L: {_label(kind)}", told]


def _label(text: str) -> str:
    """Three short lines at most, with Mermaid's own signs spelled as entities."""
    import re  # both here, because only pictures need them
    import textwrap

    lines = textwrap.wrap(text, 20, max_lines=3, placeholder="...") or ["(empty)"]
    odd = re.compile(r"[^\w .,:{}()\"'/=-]")
    plain = [odd.sub(lambda sign: f"#{ord(sign[0])};", line) for line in lines]
    return "<br/>".join(plain)
