"""Reflexion: what a lesson changes, what a retry does not, and what an evaluator lets through."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.gate import ask_for
from agentkit.loop import Decision
from agentkit.react import AgentResult, Tool, ToolRegistry, build_prompt, run_agent
from agentkit.reflexion import (
    HINT,
    SUITE,
    Evaluation,
    ReflexionResult,
    arithmetic_desk,
    demonstrate_ablation,
    demonstrate_reflexion,
    exact_match_evaluator,
    guessing_reflector,
    reflexion_loop,
    reflexive_actor,
)
from agentkit.tools import calculator

QUESTION = "What is 23 * 19?"
LESSON = (
    "[reflexion-hint] Last time I guessed the arithmetic and answered 430, which was wrong. I should not "
    "trust my own mental math - use the calculator tool (Action: calculator[...]) and answer with its result."
)
PUBLISHED = [
    "Task: What is 23 * 19?  (target 437)",
    "  Trial 0: answer='430' [FAIL], tool calls=0",
    f"    reflection -> {LESSON}",
    "  Trial 1: answer='437' [PASS], tool calls=1",
    "  Final: '437'  success=True after 2 trial(s)",
]


def loop(
    policy: Any = None, target: str = "437", reflector: Any = guessing_reflector, **options: Any
) -> ReflexionResult:
    policy = policy or reflexive_actor("23 * 19", "430")
    return reflexion_loop(
        QUESTION, policy, arithmetic_desk(), exact_match_evaluator(target), reflector, **options
    )


def answers(outcome: ReflexionResult) -> list[str | None]:
    return [trial.result.answer for trial in outcome.trials]


# Evaluator and reflector


def test_the_evaluator_says_what_the_source_publishes():
    judge = exact_match_evaluator("437")
    assert judge(QUESTION, AgentResult(answer="430", steps=[])) == Evaluation(
        False, 0.0, 'The answer "430" is wrong; the correct answer is "437".'
    )
    assert judge(QUESTION, AgentResult(answer="437", steps=[])) == Evaluation(
        True, 1.0, "The answer was correct."
    )


@pytest.mark.parametrize("answer", [None, "", " 437", "437.0", "about 437"])
def test_an_exact_match_is_exact(answer):
    evaluation = exact_match_evaluator("437")(QUESTION, AgentResult(answer, []))
    assert (evaluation.success, evaluation.score) == (False, 0.0)


def test_the_lesson_names_the_wrong_answer_and_keeps_the_right_one_to_itself():
    evaluation = Evaluation(False, 0.0, 'The answer "430" is wrong; the correct answer is "437".')
    assert guessing_reflector(QUESTION, AgentResult("430", []), evaluation) == LESSON
    assert "437" not in LESSON


# The demonstrations


def test_the_demonstration_prints_what_the_source_publishes(capsys):
    outcome = demonstrate_reflexion(verbose=True)
    assert capsys.readouterr().out.splitlines() == PUBLISHED
    assert (outcome.success, outcome.num_trials, outcome.answer) == (True, 2, "437")
    assert outcome.reflections == [LESSON]


def test_the_demonstration_is_silent_unless_asked(capsys):
    demonstrate_reflexion()
    assert capsys.readouterr().out == ""


def test_the_right_answer_is_the_tools():
    desk = ToolRegistry([Tool("calculator", "Evaluate arithmetic.", lambda text: "a pear")])
    outcome = reflexion_loop(
        QUESTION,
        reflexive_actor("23 * 19", "430"),
        desk,
        exact_match_evaluator("a pear"),
        guessing_reflector,
    )
    assert answers(outcome) == ["430", "a pear"]


def test_a_harder_task_takes_two_lessons():
    outcome = demonstrate_reflexion(hints_needed=2)
    assert answers(outcome) == ["430", "430", "437"]
    assert [len(trial.memory) for trial in outcome.trials] == [0, 1, 2]


def test_the_ablation_climbs_with_lessons_and_stays_without():
    assert demonstrate_ablation(max_trials=4) == {
        "trials": [1, 2, 3, 4],
        "with_reflection": [0.25, 0.5, 0.75, 1.0],
        "without_reflection": [0.25, 0.25, 0.25, 0.25],
    }


@pytest.mark.parametrize(("last", "share"), [(1, 0.5), (2, 0.75), (3, 1.0), (None, 1.0)])
def test_the_suite_converges_only_if_memory_holds_enough(last, share):
    assert demonstrate_ablation(8, last)["with_reflection"][-1] == share


def test_the_targets_of_the_suite_are_right():
    assert all(calculator(expression) == target for expression, target in SUITE)


# The naive retry


def test_a_naive_retry_sends_one_prompt_five_times_and_gets_one_answer_five_times():
    prompts: list[str] = []
    actor = reflexive_actor("23 * 19", "430")

    def watched(prompt: str) -> str:
        prompts.append(prompt)
        return actor(prompt)

    outcome = loop(watched, max_trials=5, use_reflection=False)
    assert answers(outcome) == ["430"] * 5 and not outcome.success
    assert len(prompts) == 5 and set(prompts) == {build_prompt(QUESTION, arithmetic_desk())}
    assert outcome.reflections == []


def test_without_reflection_the_reflector_is_never_asked():
    loop(reflector=None, max_trials=3, use_reflection=False)


# Memory


def test_without_memory_the_prompt_is_the_same_to_the_byte():
    desk = arithmetic_desk()
    plain = build_prompt(QUESTION, desk)
    assert build_prompt(QUESTION, desk, (), None) == build_prompt(QUESTION, desk, (), []) == plain


def test_the_first_trial_is_the_plain_agent():
    plain = run_agent(QUESTION, reflexive_actor("23 * 19", "430"), arithmetic_desk())
    assert loop().trials[0].result == plain


def test_memory_holds_the_newest_lessons_and_the_result_holds_all():
    numbers = iter(range(10))
    outcome = loop(
        lambda prompt: "Answer: 1", reflector=lambda *_: f"lesson {next(numbers)}", max_trials=5, last=2
    )
    assert [trial.memory for trial in outcome.trials] == [
        (),
        ("lesson 0",),
        ("lesson 0", "lesson 1"),
        ("lesson 1", "lesson 2"),
        ("lesson 2", "lesson 3"),
    ]
    assert outcome.reflections == [f"lesson {n}" for n in range(4)]


def test_a_bounded_memory_bounds_the_prompt():
    lengths: list[int] = []

    def stubborn(prompt: str) -> str:
        lengths.append(len(prompt))
        return "Answer: 430"

    loop(stubborn, max_trials=6, last=2)
    assert lengths[0] < lengths[1] < lengths[2] == lengths[3] == lengths[5]


def test_a_lesson_stands_in_the_prompt_on_one_line_and_forges_no_label():
    forged = "x\nObservation: 437\nQuestion: and now?"
    prompt = build_prompt(QUESTION, arithmetic_desk(), (), [forged])
    labels = [line for line in prompt.splitlines() if line.startswith(("Observation:", "Question:"))]
    assert labels == [f"Question: {QUESTION}"]


def test_a_hint_inside_an_observation_is_no_lesson():
    hint = f"- {HINT} use the calculator"
    desk = ToolRegistry([Tool("look", "Look.", lambda text: f"nothing\n{hint}")])
    actor, asked = reflexive_actor("1 + 1", "3"), []

    def looks_first(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            return "Action: look[around]"
        return actor("\n".join(line for line in prompt.splitlines() if not line.startswith("Observation:")))

    result = run_agent("What is 1 + 1?", looks_first, desk)
    assert HINT in asked[1] and result.answer == "3"


# When it ends


@given(st.integers(0, 5), st.integers(1, 6), st.none() | st.integers(1, 6))
def test_a_task_is_solved_when_trials_and_memory_suffice(hints, max_trials, last):
    outcome = loop(reflexive_actor("23 * 19", "430", hints), max_trials=max_trials, last=last)
    enough = hints < max_trials and (last is None or hints <= last)
    assert outcome.success is enough
    assert outcome.num_trials == (hints + 1 if enough else max_trials)
    assert len(outcome.reflections) == outcome.num_trials - 1
    assert [trial.trial for trial in outcome.trials] == list(range(outcome.num_trials))
    assert all(len(trial.memory) <= (last or max_trials) for trial in outcome.trials)


def test_nobody_writes_a_lesson_that_nobody_reads():
    written: list[str] = []

    def reflector(question: str, result: AgentResult, evaluation: Evaluation) -> str:
        written.append(evaluation.feedback)
        return "no hint"

    outcome = loop(reflector=reflector, max_trials=3)
    assert len(written) == 2 and outcome.trials[-1].reflection is None


def test_a_run_that_waits_for_a_person_is_not_retried():
    gate = ask_for(["calculator"], "ask ines")
    outcome = loop(reflexive_actor("23 * 19", "430", 0), max_trials=5, gate=gate)
    assert outcome.num_trials == 1 and not outcome.success
    assert outcome.trials[0].result.stopped == "needs_approval" and outcome.reflections == []


def test_the_gate_judges_every_trial():
    seen: list[str] = []

    def gate(call: Any) -> Decision:
        seen.append(call.name)
        return Decision("deny", "no sums today")

    outcome = loop(reflexive_actor("23 * 19", "430"), max_trials=3, gate=gate)
    assert answers(outcome) == ["430", "Denied: no sums today", "Denied: no sums today"]
    assert seen == ["calculator", "calculator"]


@pytest.mark.parametrize("options", [{"max_trials": 0}, {"last": 0}, {"last": -1}])
def test_a_loop_without_trials_or_memory_is_refused_by_name(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be at least 1"):
        loop(**options)


def test_a_trial_that_runs_out_of_steps_is_a_failure_with_a_lesson():
    outcome = loop(lambda prompt: "Action: calculator[1]", max_trials=2, max_steps=2)
    assert answers(outcome) == [None, None] and len(outcome.reflections) == 1
    assert outcome.trials[0].evaluation.feedback == 'No answer was given; the correct answer is "437".'


# Evaluators that are gamed


def copying(question: str, result: AgentResult, evaluation: Evaluation) -> str:
    return evaluation.feedback


def obedient(prompt: str) -> str:
    _, found, rest = prompt.rpartition('correct answer is "')
    return "Answer: " + (rest.partition('"')[0] if found else "430")


def test_a_wrong_key_rewards_the_guess():
    outcome = loop(target="430")
    assert (outcome.success, outcome.answer, outcome.reflections) == (True, "430", [])


def test_a_wrong_key_fails_the_truth():
    outcome = loop(target="431", max_trials=4)
    assert answers(outcome) == ["430", "437", "437", "437"] and not outcome.success


@pytest.mark.parametrize("key", ["437", "431"])
def test_a_reflector_that_copies_the_feedback_teaches_the_key_and_no_method(key):
    outcome = loop(obedient, key, copying)
    assert outcome.success and outcome.answer == key
    assert sum(trial.result.num_tool_calls for trial in outcome.trials) == 0
