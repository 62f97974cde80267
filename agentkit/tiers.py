# Built by bookkit from chapters/01-tiers.md. Edit the chapter, not this file.
# bookkit: cells f5a6d1d40898, body 956ac4d6ffe9
"""Three tiers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

__all__ = [
    "CHECKS",
    "WHITEBOARD",
    "Answers",
    "Bill",
    "System",
    "Tier",
    "agent_bill",
    "agent_tokens",
    "answer",
    "count_paths",
    "failed_checks",
    "multiple",
    "place",
    "workflow_tokens",
]


# %% chapters/01-tiers.md § Two questions


@dataclass(frozen=True)
class System:
    """What a proposed system lets its model decide in one run.

    ``stages`` counts the steps that code runs in a row. ``decisions`` is how often, at
    most, the model picks what comes next before the run ends as designed; None when only
    the model ends it (a guard that gives up does not count: it is an alarm, not an
    ending). At each decision ``onward`` options lead to a further decision and ``final``
    options leave the rest to code; ``onward`` is None when nobody can list the options,
    as when each one is a shell command.
    """

    name: str
    stages: int = 1
    decisions: int | None = 0
    onward: int | None = 0
    final: int = 0


def count_paths(system: System) -> int | None:
    """How many different runs the design allows; None when they cannot be counted."""
    if system.decisions is None or system.onward is None:
        return None
    finished: int = sum(system.final * system.onward**n for n in range(system.decisions))
    unfinished: int = system.onward**system.decisions  # no ending chosen: code ends it
    return finished + unfinished


WHITEBOARD = 1000  # more paths than this and nobody draws them, or tests them


class Tier(StrEnum):
    """The three rungs, from the least freedom to the most."""

    CALL = "call"
    WORKFLOW = "workflow"
    AGENT = "agent"


class Answers(NamedTuple):
    """The two questions, answered: can every path be drawn, and does code end the run?"""

    drawable: bool
    code_ends: bool


def answer(system: System, whiteboard: int = WHITEBOARD) -> Answers:
    """Both questions for one system. ``whiteboard`` is the most paths you would draw."""
    paths = count_paths(system)
    drawable = paths is not None and paths <= whiteboard
    return Answers(drawable, code_ends=system.decisions is not None)


def place(system: System, whiteboard: int = WHITEBOARD) -> Tier:
    """The rung of a system: two yeses make a workflow, one path of one stage a call."""
    if not all(answer(system, whiteboard)):
        return Tier.AGENT
    return Tier.CALL if system.stages == 1 and count_paths(system) == 1 else Tier.WORKFLOW


# %% chapters/01-tiers.md § What a turn costs


def agent_tokens(n: int, prefix: int, delta: int, *, task_in_prefix: bool = False) -> int:
    """Input tokens that an agent sends in ``n`` turns, resending its history on each.

    Turn t sends ``prefix + t * delta``. With ``task_in_prefix`` the first turn has
    nothing of its own, and turn t sends ``prefix + (t - 1) * delta``: the other
    convention in use, smaller by exactly ``n * delta``. Raises ValueError for a negative
    count.
    """
    _check_counts(n=n, prefix=prefix, delta=delta)
    triangle = n * (n - 1) // 2 if task_in_prefix else n * (n + 1) // 2
    return n * prefix + triangle * delta


def workflow_tokens(stages: int, prefix: int, delta: int, *, task_in_prefix: bool = False) -> int:
    """Input tokens of ``stages`` independent calls, each with a prompt of its own."""
    _check_counts(stages=stages, prefix=prefix, delta=delta)
    return stages * (prefix if task_in_prefix else prefix + delta)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 0:
            raise ValueError(f"{name} must be 0 or more, got {value}")


def multiple(n: int, prefix: int, delta: int, *, against: int = 1, task_in_prefix: bool = False) -> float:
    """An agent's input tokens as a multiple of those of ``against`` single calls.

    Raises ValueError when the calls would send nothing: no multiple of that exists.
    """
    calls = workflow_tokens(against, prefix, delta, task_in_prefix=task_in_prefix)
    if calls == 0:
        raise ValueError(
            "the calls to compare with send no tokens: give a prefix or a delta, and against >= 1"
        )
    return agent_tokens(n, prefix, delta, task_in_prefix=task_in_prefix) / calls


# %% chapters/01-tiers.md § What caching changes


@dataclass(frozen=True)
class Bill:
    """Input tokens of one run, by price: the full one, a cache write, a cache read."""

    plain: int
    written: int
    read: int

    @property
    def sent(self) -> int:
        """All tokens sent: caching moves them between the parts and never removes one."""
        return self.plain + self.written + self.read

    def cost(self, *, write_rate: float = 1.0, read_rate: float = 0.1) -> float:
        """The bill in tokens of full price. The rates are multiples of that price."""
        return self.plain + self.written * write_rate + self.read * read_rate


def agent_bill(n: int, prefix: int, delta: int, cache: Literal["nothing", "prefix", "history"]) -> Bill:
    """Split the input tokens of an agent's run by what is cached.

    A turn reads from the cache what an earlier turn wrote to it. No entry expires and
    none is too short to be kept. Raises ValueError for less than one turn and for a
    ``cache`` that is none of the three.
    """
    if n < 1:
        raise ValueError(f"n must be 1 turn or more, got {n}")
    sent, once = agent_tokens(n, prefix, delta), prefix + n * delta
    parts = {
        "nothing": (0, 0),
        "prefix": (prefix, (n - 1) * prefix),
        "history": (once, sent - once),
    }
    if cache not in parts:
        raise ValueError(f"cache must be one of {', '.join(parts)}; got {cache!r}")
    written, read = parts[cache]
    return Bill(sent - written - read, written, read)


# %% chapters/01-tiers.md § Four checks before building one

CHECKS = {
    "complexity": "Do the steps differ from input to input in ways you cannot list?",
    "value": "Is the result worth its multiple of the price of a workflow?",
    "viability": "Is the model reliably good at the steps it would be choosing?",
    "cost of error": "Is a wrong step caught, or undone, before it does harm?",
}


def failed_checks(answers: Mapping[str, bool]) -> list[str]:
    """The checks a proposal fails, in order; an empty list is a case for an agent.

    Raises ValueError unless exactly the four checks are answered: a check nobody made is
    not a check passed.
    """
    if set(answers) != set(CHECKS):
        given = ", ".join(answers) or "none"
        raise ValueError(f"answer exactly these checks: {', '.join(CHECKS)}; got: {given}")
    return [check for check in CHECKS if not answers[check]]
