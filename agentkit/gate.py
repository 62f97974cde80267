# Built by bookkit from chapters/05-gate.md. Edit the chapter, not this file.
# bookkit: cells 0764c493d319, body a6ac323bb029
"""The gate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from agentkit.loop import Decision, Gate, RunState, decide
from agentkit.tools import JSON, ToolCall, wire_name
from agentkit.wire import ScriptedModel, answer_message, parse_tool_calls, tool_call_message

__all__ = [
    "AUTO_REFUND_LIMIT_CENTS",
    "STRICTNESS",
    "Approvals",
    "Review",
    "all_of",
    "allow_only",
    "ask_for",
    "call_digest",
    "limits_gate",
    "overreaching_model",
    "pending_calls",
    "refund_gate",
    "with_approvals",
]


# %% chapters/05-gate.md § Advice is not a limit


def overreaching_model() -> ScriptedModel:
    """A fresh model that asks for 9 999 cents, then for 4 999 if it is refused."""
    refund = "refund_order"
    return ScriptedModel(
        turns=[
            tool_call_message("call_1", "lookup_order", {"order_id": "A-17"}),
            tool_call_message("call_2", refund, {"order_id": "A-17", "amount_cents": 9999}),
            answer_message("Your refund for order A-17 is on its way."),
        ],
        reactions={"denied": tool_call_message("call_3", refund, {"order_id": "A-17", "amount_cents": 4999})},
    )


# %% chapters/05-gate.md § A limit that binds

AUTO_REFUND_LIMIT_CENTS = 5000


def refund_gate(call: ToolCall) -> tuple[bool, str]:
    """Deny a refund above the automatic limit; let everything else pass.

    Judges the arguments that are about to run, in cents, and nothing else: not who owns the order, not
    whether it was refunded before. The reason is written for the model, which reads it next.
    """
    amount = (call.arguments or {}).get("amount_cents")
    if call.name != "refund_order" or (isinstance(amount, int) and amount <= AUTO_REFUND_LIMIT_CENTS):
        return True, "within policy"
    return False, f"refund exceeds the automatic limit of {AUTO_REFUND_LIMIT_CENTS} cents"


# %% chapters/05-gate.md § Gates compose


def _names(tools: Collection[str]) -> frozenset[str]:
    if isinstance(tools, str):
        raise TypeError(f"expected a collection of tool names, got the string {tools!r}; write [{tools!r}]")
    return frozenset(tools)


def allow_only(names: Collection[str]) -> Gate:
    """Deny every tool that is not on the list. A bare string raises TypeError: its letters are no tools."""
    allowed = _names(names)
    listing = ", ".join(sorted(allowed)) or "none"

    def judge(call: ToolCall) -> Decision:
        if call.name in allowed:
            return Decision("allow", "on the list")
        return Decision("deny", f"{call.name} is not allowed in this run. Allowed: {listing}")

    return judge


def _at_most(amount: object, limit: object) -> bool:
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (amount, limit))
    return numbers and amount <= limit  # type: ignore[operator]


def limits_gate(limits: Mapping[str, Mapping[str, float]]) -> Gate:
    """Hold each tool's numeric arguments to `limits[tool][argument]`, read anew for every call.

    A tool without an entry is denied, and one with an empty entry is free: a line lost from the table must
    close a door, not open it. For the same reason a limit that is no number denies.
    """

    def judge(call: ToolCall) -> Decision:
        rules = limits.get(call.name)
        if rules is None:
            return Decision("deny", f"no limits are configured for {call.name}")
        for argument, limit in rules.items():
            amount = (call.arguments or {}).get(argument)
            if not _at_most(amount, limit):
                return Decision("deny", f"{call.name}: {argument} must be at most {limit}, got {amount}")
        return Decision("allow", "within limits")

    return judge


STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def all_of(*gates: Gate) -> Gate:
    """Ask every gate; the strictest verdict wins, and among equals the first one's reason is given.

    Joining nothing raises ValueError: whoever wants to allow everything should have to write `allow_all`.
    """
    if not gates:
        raise ValueError("all_of needs at least one gate; to allow everything, say allow_all")

    def judge(call: ToolCall) -> Decision:
        decisions = [decide(gate, call) for gate in gates]
        return max(decisions, key=lambda decision: STRICTNESS[decision.verdict])

    return judge


# %% chapters/05-gate.md § A person decides


def ask_for(
    what: Collection[str] | Callable[[ToolCall], bool], reason: str = "a person has to decide"
) -> Gate:
    """Ask a person about the named tools, or about every call for which `what(call)` is not `False`.

    A predicate that returns anything but `False` asks, and one that raises denies.
    """
    if callable(what):
        concerns = what
    else:
        asked = _names(what)

        def concerns(call: ToolCall) -> bool:
            return call.name in asked

    def judge(call: ToolCall) -> Decision:
        if concerns(call) is False:
            return Decision("allow", "needs no approval")
        return Decision("ask", reason)

    return judge


def pending_calls(state: RunState) -> list[ToolCall]:
    """The calls of the last batch that wait for a decision, in order of proposal; empty when none does.

    The first is the one that was asked about. The others stand behind it and have not been judged yet.
    """
    answers = 0
    for message in reversed(state.messages):
        answers += message["role"] == "tool"
        if message["role"] == "assistant":
            outcomes = state.observations[len(state.observations) - answers :]
            calls = parse_tool_calls(message)
            return [call for call, seen in zip(calls, outcomes, strict=False) if seen.kind == "pending"]
    return []


# %% chapters/05-gate.md § Bound to the exact arguments


def _canonical(value: JSON) -> JSON:
    """The same JSON value in one spelling: 1.0 is the number 1, and keys are sorted when it is written."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    return value


def call_digest(call: ToolCall) -> str:
    """SHA-256 of a call's tool and exact arguments, in hexadecimal. Neither id nor order of keys counts."""
    exact = [wire_name(call.name), _canonical(call.arguments)]
    return hashlib.sha256(json.dumps(exact, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Review:
    """One person's decision on one exact call, in their own words."""

    digest: str
    approved: bool
    reviewer: str
    reason: str


@dataclass
class Approvals:
    """The decisions that people entered on the waiting calls of one paused run.

    A yes is spent by the first call it lets through. A no stands for as long as the desk does. `log` keeps
    every decision. Only digests of calls that wait can be decided: anything else raises ValueError.

    All of it lives in this object. A second desk, opened from a state that was stored before the effect,
    knows of no earlier yes and takes another; an effect that must happen once needs a record of its own.
    """

    waiting: Iterable[ToolCall]
    log: list[Review] = field(default_factory=list)
    _undecided: set[str] = field(init=False)
    _open: dict[str, Review] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = tuple(self.waiting)
        self._undecided = {call_digest(call) for call in self.waiting}

    def approve(self, digest: str, reviewer: str, reason: str = "approved") -> None:
        """Let one call with exactly this digest run."""
        self._enter(Review(digest, True, reviewer, reason))

    def refuse(self, digest: str, reviewer: str, reason: str) -> None:
        """Deny every call with this digest. The model reads the reason, so it must not be empty."""
        self._enter(Review(digest, False, reviewer, reason))

    def _enter(self, review: Review) -> None:
        if review.digest not in self._undecided:
            raise ValueError(
                f"no undecided call has the digest {review.digest!r}; ask pending_calls what waits"
            )
        if not review.reviewer or not review.reason:
            raise ValueError("a decision needs a reviewer and a reason")
        self._undecided.discard(review.digest)
        self._open[review.digest] = review
        self.log.append(review)

    def take(self, digest: str) -> Decision | None:
        """The decision on a call, or None when there is none. Taking a yes spends it."""
        review = self._open.pop(digest, None)
        if review is None:
            return None
        if review.approved:
            return Decision("allow", f"approved by {review.reviewer}")
        self._open[digest] = review
        return Decision("deny", f"refused by {review.reviewer}: {review.reason}")


def with_approvals(gate: Gate, approvals: Approvals) -> Gate:
    """Let entered decisions answer what `gate` asks. Its denials stand: no approval overrules policy.

    Wrap the whole policy and not a part of it; a yes given to a part is spent even if another part denies.
    """

    def judge(call: ToolCall) -> Decision:
        decision = decide(gate, call)
        if decision.verdict != "ask":
            return decision
        return approvals.take(call_digest(call)) or decision

    return judge
