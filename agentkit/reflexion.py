# Built by bookkit from chapters/11-reflexion.md. Edit the chapter, not this file.
# bookkit: cells 67b3aa23a836, body 02217d027a16
"""Reflexion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from agentkit.loop import Gate, allow_all
from agentkit.react import AgentResult, Policy, Tool, ToolRegistry, run_agent
from agentkit.tools import ToolSpec, calculator

__all__ = [
    "HINT",
    "SUITE",
    "Ablation",
    "Evaluation",
    "Evaluator",
    "Reflector",
    "ReflexionResult",
    "Trial",
    "arithmetic_desk",
    "demonstrate_ablation",
    "demonstrate_reflexion",
    "exact_match_evaluator",
    "guessing_reflector",
    "print_trials",
    "reflexion_loop",
    "reflexive_actor",
    "solved_by",
]


# %% chapters/11-reflexion.md § A loop around the loop


def arithmetic_desk() -> ToolRegistry:
    """One tool: the calculator."""
    return ToolRegistry([Tool("calculator", "Evaluate arithmetic, e.g. 17 * 23.", calculator)])


# %% chapters/11-reflexion.md § Evaluator and reflector


@dataclass(frozen=True)
class Evaluation:
    """Whether a run succeeded, a score from 0.0 to 1.0, and why, in a sentence that a reflector can read."""

    success: bool
    score: float
    feedback: str


Evaluator = Callable[[str, AgentResult], Evaluation]
Reflector = Callable[[str, AgentResult, Evaluation], str]


def exact_match_evaluator(target: str) -> Evaluator:
    """An evaluator that wants exactly `target`. Its feedback on a wrong answer gives the right one away."""

    def evaluate(question: str, result: AgentResult) -> Evaluation:
        if result.answer == target:
            return Evaluation(True, 1.0, "The answer was correct.")
        given = "No answer was given" if result.answer is None else f'The answer "{result.answer}" is wrong'
        return Evaluation(False, 0.0, f'{given}; the correct answer is "{target}".')

    return evaluate


HINT = "[reflexion-hint]"


def guessing_reflector(question: str, result: AgentResult, evaluation: Evaluation) -> str:
    """The lesson of a run that guessed: use the calculator. A scripted stand-in for a model's own words."""
    return (
        f"{HINT} Last time I guessed the arithmetic and answered {result.answer}, which was wrong. "
        "I should not trust my own mental math - use the calculator tool (Action: calculator[...]) "
        "and answer with its result."
    )


def reflexive_actor(expression: str, guess: str, hints_needed: int = 1) -> Policy:
    """A policy that answers `guess` until its prompt holds enough hints, and then calculates.

    It looks for lessons that begin with HINT and understands none of them. Its answer after a calculation is
    the observation in the prompt.
    """

    def policy(prompt: str) -> str:
        lines = prompt.splitlines()
        seen = [line for line in lines if line.startswith("Observation: ")]
        if seen:
            return f"Thought: That is the tool's result.\nAnswer: {seen[-1].removeprefix('Observation: ')}"
        if sum(line.startswith(f"- {HINT}") for line in lines) < hints_needed:
            return f"Thought: I can do this in my head.\nAnswer: {guess}"
        return f"Thought: My notes say to calculate.\nAction: calculator[{expression}]"

    return policy


# %% chapters/11-reflexion.md § The outer loop


@dataclass(frozen=True)
class Trial:
    """One run: its number from 0, the memory it read, what came of it, and the lesson drawn, if any."""

    trial: int
    memory: tuple[str, ...]
    result: AgentResult
    evaluation: Evaluation
    reflection: str | None = None


@dataclass(frozen=True)
class ReflexionResult:
    """All trials, in order. The answer is the last one's, right or wrong."""

    trials: Sequence[Trial]

    @property
    def answer(self) -> str | None:
        """The last trial's answer; None when it gave none."""
        return self.trials[-1].result.answer

    @property
    def success(self) -> bool:
        """Whether the evaluator accepted the last trial, which is not the same as being right."""
        return self.trials[-1].evaluation.success

    @property
    def num_trials(self) -> int:
        """How many runs it took."""
        return len(self.trials)

    @property
    def reflections(self) -> list[str]:
        """Every lesson written, also those that memory dropped later."""
        return [trial.reflection for trial in self.trials if trial.reflection is not None]


def reflexion_loop(
    question: str,
    policy: Policy,
    registry: Mapping[str, ToolSpec],
    evaluator: Evaluator,
    reflector: Reflector,
    *,
    max_trials: int = 3,
    max_steps: int = 6,
    use_reflection: bool = True,
    last: int | None = None,
    gate: Gate = allow_all,
) -> ReflexionResult:
    """Run, evaluate, and on failure write a lesson and run again, `max_trials` times at most.

    `last` bounds the memory to that many lessons, the newest. Without `use_reflection` this is a naive retry.
    A run that waits for a person ends the loop. Every trial acts on the same world. ValueError for
    `max_trials` or `last` below 1; what evaluator or reflector raise passes through.
    """
    for name, value in (("max_trials", max_trials), ("last", last)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    trials: list[Trial] = []
    memory: list[str] = []
    for number in range(max_trials):
        result = run_agent(question, policy, registry, max_steps, memory or None, gate)
        evaluation = evaluator(question, result)
        over = evaluation.success or result.stopped == "needs_approval" or number == max_trials - 1
        lesson = reflector(question, result, evaluation) if use_reflection and not over else None
        trials.append(Trial(number, tuple(memory), result, evaluation, lesson))
        if over:
            break
        memory = [*memory, *([lesson] if lesson is not None else [])][-(last or max_trials) :]
    return ReflexionResult(trials)


def print_trials(question: str, target: str, outcome: ReflexionResult) -> None:
    """Print each trial with its verdict and the lesson that followed."""
    print(f"Task: {question}  (target {target})")
    for trial in outcome.trials:
        verdict = "PASS" if trial.evaluation.success else "FAIL"
        calls = trial.result.num_tool_calls
        print(f"  Trial {trial.trial}: answer={trial.result.answer!r} [{verdict}], tool calls={calls}")
        if trial.reflection is not None:
            print(f"    reflection -> {trial.reflection}")
    print(f"  Final: {outcome.answer!r}  success={outcome.success} after {outcome.num_trials} trial(s)")


def demonstrate_reflexion(verbose: bool = False, hints_needed: int = 1) -> ReflexionResult:
    """23 * 19, guessed as 430 and calculated as 437 once `hints_needed` lessons are read."""
    question, target = "What is 23 * 19?", "437"
    outcome = reflexion_loop(
        question,
        reflexive_actor("23 * 19", "430", hints_needed),
        arithmetic_desk(),
        exact_match_evaluator(target),
        guessing_reflector,
        max_trials=hints_needed + 2,
    )
    if verbose:
        print_trials(question, target, outcome)
    return outcome


# %% chapters/11-reflexion.md § Was it the lesson, or the second try?


class Ablation(TypedDict):
    """Share of the suite solved within 1, 2, 3 … trials, with lessons and without."""

    trials: list[int]
    with_reflection: list[float]
    without_reflection: list[float]


SUITE = (("17 * 23", "391"), ("23 * 19", "437"), ("48 * 77", "3696"), ("131 * 89", "11659"))


def solved_by(max_trials: int, use_reflection: bool, last: int | None = None) -> list[float]:
    """Share of SUITE solved within 1 … `max_trials` trials. Its n-th task needs n - 1 lessons."""
    needed = []
    for hints, (expression, target) in enumerate(SUITE):
        outcome = reflexion_loop(
            f"What is {expression}?",
            reflexive_actor(expression, f"about {target[0]}00", hints),
            arithmetic_desk(),
            exact_match_evaluator(target),
            guessing_reflector,
            max_trials=max_trials,
            use_reflection=use_reflection,
            last=last,
        )
        needed.append(outcome.num_trials if outcome.success else max_trials + 1)
    return [sum(n <= trials for n in needed) / len(SUITE) for trials in range(1, max_trials + 1)]


def demonstrate_ablation(max_trials: int = 4, last: int | None = None) -> Ablation:
    """The suite with reflection on and off. Deterministic: it shows the mechanism, not a learning rate."""
    return {
        "trials": list(range(1, max_trials + 1)),
        "with_reflection": solved_by(max_trials, True, last),
        "without_reflection": solved_by(max_trials, False),
    }
