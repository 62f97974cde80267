# Built by bookkit from chapters/09-planning.md. Edit the chapter, not this file.
# bookkit: cells 5cc0bf1e0bd7, body e6bfcd06cdaa
"""Planning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentkit.loop import Gate, Model, Observation, Stop
from agentkit.patterns import Meter, ask
from agentkit.tools import JSON, ToolCall, ToolSpec, json_type, signature_of, validate_call
from agentkit.wire import Message, NotJSON, answer_message, parse_json

__all__ = [
    "ASK_FOR_STEPS",
    "CLAIMS",
    "MAX_STEPS",
    "ClaimsPlanner",
    "Event",
    "MovingDesk",
    "PlanRun",
    "Trigger",
    "Verify",
    "attempt",
    "check_plan",
    "claims_tools",
    "denied_again",
    "describe_tool",
    "ending",
    "execute_plan",
    "judge",
    "parse_plan",
    "plan_prompt",
    "read_step",
    "run_plans",
    "run_steps",
]


# %% chapters/09-planning.md § A plan is a hypothesis

MAX_STEPS = 8


def read_step(index: int, step: JSON, tools: Mapping[str, ToolSpec]) -> tuple[ToolCall, str | None]:
    """One step as a call with the id `s<index>`, and what is wrong with it, if anything is."""
    known = isinstance(step, dict) and set(step) <= {"tool", "arguments"}
    name, arguments = (step.get("tool"), step.get("arguments", {})) if known else (None, None)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        shape = '{"tool": name, "arguments": {...}} and nothing else'
        return ToolCall(f"s{index}", "", None), f"step {index} must be {shape}"
    call = ToolCall(f"s{index}", name, arguments)
    problem = validate_call(call, tools)
    return call, problem and f"step {index}: {problem}"


def check_plan(
    plan: JSON, tools: Mapping[str, ToolSpec], max_steps: int = MAX_STEPS
) -> tuple[list[ToolCall], str | None]:
    """The calls of a plan that is well formed as a whole; or none, and every reason why it is not.

    Says nothing of permission. No steps are a plan as well: nothing is left to do.
    """
    if not isinstance(plan, list):
        return [], f"a plan must be a list of steps, got {json_type(plan)}"
    if len(plan) > max_steps:
        return [], f"a plan may have {max_steps} steps, this one has {len(plan)}: plan the first part"
    steps = [read_step(index, step, tools) for index, step in enumerate(plan)]
    problems = [problem for _, problem in steps if problem is not None]
    return ([], "; ".join(problems)) if problems else ([call for call, _ in steps], None)


def run_steps(
    calls: Sequence[ToolCall], tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter
) -> tuple[list[Observation], int]:
    """Execute calls in order, each judged in its turn, up to the first that gives no result."""
    observations = []
    for index, call in enumerate(calls):
        observations.append(meter.execute(call, tools, gate))
        if not observations[-1].ok:
            return observations, index
    return observations, len(calls)


def execute_plan(
    plan: JSON, tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter | None = None
) -> tuple[list[Observation], int]:
    """Execute a plan: the observations of what ran, and the index of the first step that failed.

    The index is the number of steps when all succeeded. A malformed plan runs nothing and gives one
    observation, `invalid`, with the id "plan". What a handler raises unexpectedly passes through; the
    meter's record then tells how far the plan came.
    """
    calls, problem = check_plan(plan, tools)
    if problem is not None:
        return [Observation("plan", False, "invalid", problem)], 0
    return run_steps(calls, tools, gate, meter or Meter())


# %% chapters/09-planning.md § Stop, and plan again


class Trigger(StrEnum):
    """What code saw at the end of one plan. The first five send the run back to its planner."""

    MALFORMED = "malformed"  # the plan is not well formed; nothing of it ran
    DENIED = "denied"  # the gate refused a step
    FAILED = "failed"  # a step gave no result: a handler's error
    REJECTED = "rejected"  # every step succeeded, and the outcome is not what was wanted
    HORIZON = "horizon"  # as many steps ran as may run on one plan
    PENDING = "pending"  # a step waits for a person
    COMPLETED = "completed"  # every step of the plan gave a result


@dataclass(frozen=True)
class Event:
    """One trigger, and the words for the planner who reads it next."""

    trigger: Trigger
    detail: str


@dataclass
class PlanRun:
    """A run of plans as plain data: what ran, what happened at the end of each plan, how it ended.

    steps   one object for each step that ran: tool, arguments, ok, kind, content
    events  one for each plan, in order
    """

    task: str
    steps: list[dict[str, JSON]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    stop: Stop | None = None


ASK_FOR_STEPS = (
    'Answer with the steps still to run, a JSON list of {"tool": name, "arguments": {...}} and nothing else; '
    "[] if nothing is left to do."
)


def describe_tool(name: str, spec: ToolSpec) -> str:
    """One line: a tool's name, its parameters and its sentence."""
    required = spec.parameters.get("required", [])
    declared = spec.parameters.get("properties", {}).items()
    fields = ", ".join(signature_of(field, schema, field in required) for field, schema in declared)
    return f"- {name}({fields}): {spec.description}"


def plan_prompt(run: PlanRun, tools: Mapping[str, ToolSpec]) -> str:
    """What the planner reads: a line for each part of the work's state, each part as JSON.

    As JSON a text from outside, the task or a tool's words, cannot begin a line of its own.
    """
    last = f"{run.events[-1].trigger}: {run.events[-1].detail}" if run.events else "none"
    tool_lines = [describe_tool(name, spec) for name, spec in tools.items()]
    record = [f"Steps run: {json.dumps(run.steps)}", f"Last event: {json.dumps(last)}"]
    return "\n".join([f"Task: {json.dumps(run.task)}", *tool_lines, *record, ASK_FOR_STEPS])


def parse_plan(text: str, tools: Mapping[str, ToolSpec]) -> tuple[list[ToolCall], str | None]:
    """The calls of a plan in a reply's text; or none, and why not. Never raises."""
    try:
        return check_plan(parse_json(text), tools)
    except NotJSON as error:
        return [], f"a plan must be JSON: {error}"


def attempt(
    run: PlanRun, text: str, tools: Mapping[str, ToolSpec], gate: Gate, meter: Meter, horizon: int | None
) -> Event:
    """Parse one plan, run at most `horizon` of its steps, record them, and say what came of it."""
    calls, problem = parse_plan(text, tools)
    if problem is not None:
        return Event(Trigger.MALFORMED, problem)
    due = calls[:horizon]
    observations, _ = run_steps(due, tools, gate, meter)
    for call, seen in zip(due, observations, strict=False):
        outcome = {"ok": seen.ok, "kind": seen.kind, "content": seen.content}
        run.steps.append({"tool": call.name, "arguments": call.arguments, **outcome})
    if observations and not observations[-1].ok:
        kind = observations[-1].kind
        trigger = Trigger(kind) if kind in ("denied", "pending") else Trigger.FAILED
        return Event(trigger, str(observations[-1].content))
    ran = f"{len(due)} of {len(calls)} steps run"
    return Event(Trigger.HORIZON if calls and horizon is not None else Trigger.COMPLETED, ran)


Verify = Callable[[], str | None]


def judge(event: Event, verify: Verify | None) -> Event:
    """A completed plan is put to the verifier; its reason, if it gives one, makes the event a rejection."""
    if event.trigger is not Trigger.COMPLETED or verify is None:
        return event
    reason = verify()
    return event if reason is None else Event(Trigger.REJECTED, str(reason))


def denied_again(run: PlanRun, most: int) -> bool:
    """Whether the last step is a proposal that was now denied `most` times in this run."""
    same = [step for step in run.steps if step["kind"] == "denied"]
    proposals = [json.dumps([step["tool"], step["arguments"]], sort_keys=True) for step in same]
    return bool(proposals) and run.steps[-1]["kind"] == "denied" and proposals.count(proposals[-1]) >= most


def ending(run: PlanRun, verify: Verify | None, meter: Meter) -> Stop | None:
    """How the last event ends the run; None sends it back to the planner."""
    trigger = run.events[-1].trigger
    if trigger is Trigger.COMPLETED:
        return Stop.ANSWERED if verify is None else Stop.GOAL_MET
    if trigger is Trigger.PENDING:
        return Stop.NEEDS_APPROVAL
    return Stop.NO_PROGRESS if denied_again(run, meter.limits.repeated_denials) else None


def run_plans(
    task: str,
    model: Model,
    tools: Mapping[str, ToolSpec],
    gate: Gate,
    meter: Meter,
    *,
    horizon: int | None = None,
    verify: Verify | None = None,
    max_plans: int = 4,
) -> PlanRun:
    """Plan, execute, and plan again on an event, up to `max_plans` plans.

    horizon  steps that may run on one plan; None runs it to its end
    verify   looks at the world when a plan is completed: None accepts, a reason is a rejection

    Ends answered (completed), goal_met (completed and accepted), needs_approval, no_progress (one
    proposal denied too often), step_limit (plans used up by the horizon alone), goal_unmet (plans used
    up otherwise), or with an ending of the planner's reply. ValueError for a horizon below 1.
    """
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon must be at least 1, or None for the whole plan; got {horizon}")
    run = PlanRun(task)
    while run.stop is None and len(run.events) < max_plans:
        stop, text = ask(model, plan_prompt(run, tools), meter)
        if text is None:
            run.stop = stop
            return run
        event = attempt(run, text, tools, gate, meter, horizon)
        run.events.append(judge(event, verify))
        run.stop = ending(run, verify, meter)
    if run.stop is None:
        waited = run.events and run.events[-1].trigger is Trigger.HORIZON
        run.stop = Stop.STEP_LIMIT if waited else Stop.GOAL_UNMET
    return run


# %% chapters/09-planning.md § A world that moves

CLAIMS = {"A-17": 4999, "B-02": 1250, "C-31": 3100}  # cents owed when the ticket was written


@dataclass
class MovingDesk:
    """Three claims, one of which another clerk changes while we work.

    change  cents by which the amount owed for C-31 moves; 0 for never
    after   our tool calls before it does
    stale   refunds attempted although the claims had changed, and nothing had told us
    """

    change: int = 0
    after: int = 0
    owed: dict[str, int] = field(default_factory=lambda: dict(CLAIMS))
    receipts: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    stale: int = 0
    moved: bool = False
    noticed: bool = False

    def __post_init__(self) -> None:
        self._let_time_pass(0)

    def _let_time_pass(self, calls: int) -> None:
        self.calls += calls
        if self.change and not self.moved and self.calls >= self.after:
            self.owed["C-31"] += self.change
            self.moved = True

    def list_claims(self) -> dict[str, int]:
        """What is owed now, for every claim."""
        claims, self.noticed = dict(self.owed), self.moved
        self._let_time_pass(1)
        return claims

    def refund_order(self, order_id: str, amount_cents: int) -> dict[str, Any]:
        """Pay a part or all of what is owed. ValueError for more than that, KeyError for no claim."""
        self.stale += self.moved and not self.noticed
        owed = self.owed[order_id]
        if amount_cents > owed:
            self.noticed = self.moved  # the sentence tells it
            self._let_time_pass(1)
            raise ValueError(f"{order_id}: {owed} cents are owed")
        receipt = {"order_id": order_id, "refunded_cents": amount_cents}
        self.owed[order_id] -= amount_cents
        self.receipts.append(receipt)
        self._let_time_pass(1)
        return dict(receipt)


def claims_tools(desk: MovingDesk) -> dict[str, ToolSpec]:
    """The two tools of a desk."""
    fields = {"order_id": str, "amount_cents": int}
    return {
        "list_claims": ToolSpec("What is owed for each claim.", {}, desk.list_claims),
        "refund_order": ToolSpec("Pay back cents for a claim.", fields, desk.refund_order, effectful=True),
    }


@dataclass
class ClaimsPlanner:
    """A scripted planner for `MovingDesk`. With `look` it lists the claims anew before each refund."""

    look: bool = False

    def chat(self, messages: list[Message]) -> Message:
        """A plan for what is still owed, by all that the prompt tells."""
        prompt = messages[-1]["content"]
        steps = json.loads(prompt.split("\nSteps run: ")[1].split("\n")[0])
        owed = self.believed(steps, prompt.split("\nLast event: ")[1].split("\n")[0])
        plan: list[JSON] = [
            {"tool": "refund_order", "arguments": {"order_id": order, "amount_cents": cents}}
            for order, cents in owed.items()
            if cents > 0
        ]
        if self.look and not (steps and steps[-1]["tool"] == "list_claims"):
            plan.insert(0, {"tool": "list_claims"})
        return answer_message(json.dumps(plan))

    def believed(self, steps: list[dict[str, JSON]], event: str) -> dict[str, int]:
        """What is owed: the ticket, overridden by listings, payments, and sentences that name an amount."""
        owed = dict(CLAIMS)
        for step in steps:
            if step["tool"] == "list_claims":
                owed = dict(step["content"])
            elif step["ok"]:
                owed[step["content"]["order_id"]] -= step["content"]["refunded_cents"]
        for order, cents in re.findall(r"([A-Z]-\d+): (\d+) cents are owed", event):
            owed[order] = int(cents)
        return owed
