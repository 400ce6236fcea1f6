"""The steps of a task: each as a task of one instruction, and the score over those that were judged."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.values.rollout import RanTests, RolloutStep, RolloutTask
from services.worker.rollouts.rollout_result import TaskStepRecord
from services.worker.verification.bundles import below, inflated
from services.worker.verification.ran_tests import fewer_results, in_step, of_step, other_uses, together
from services.worker.verification.verifier_result import VerifierResult

SETUP = "setup.sh"
_SHARED, _TESTS, _ADDED = "shared", "steps", "workdirs"


@dataclass(frozen=True, slots=True)
class TaskStep:
    """`added` is a tar of the files that the step adds to the workspace."""

    step: RolloutStep
    task: RolloutTask
    added: bytes


def task_steps(task: RolloutTask) -> list[TaskStep]:
    """One for a task of one instruction too. Raises FilesRefused."""
    tests, solutions = inflated(task.tests), inflated(task.solution)
    return [
        TaskStep(
            step,
            replace(
                task,
                instruction=step.instruction,
                limits=replace(
                    task.limits, agent_seconds=step.agent_seconds, verifier_seconds=step.verifier_seconds
                ),
                verifier_environment={**task.verifier_environment, **step.verifier_environment},
                has_own_files=step.has_own_files,
                artifacts=(*task.artifacts, *step.artifacts),
                tests=_packed(below(tests, _SHARED, f"{_TESTS}/{step.name}")),
                solution=_packed(below(solutions, f"{_TESTS}/{step.name}")),
                steps=(),
                solved_tests=of_step(step.name, task.solved_tests),
            ),
            below(tests, f"{_ADDED}/{step.name}"),
        )
        for step in task.steps
    ]


def is_below(rewards: Mapping[str, float], minimum: Mapping[str, float]) -> bool:
    """A reward that is not there is below any."""
    return any(name not in rewards or rewards[name] < value for name, value in minimum.items())


def overall(steps: Sequence[TaskStepRecord], *, only_last: bool, solved: RanTests) -> VerifierResult:
    """The mean of each reward over the steps that were judged, as in Harbor: one that is missing counts 0.

    `solved` are the tests of all steps on the task's solution.
    """
    last = steps[-1].result
    ran = together(in_step(step.name, step.result.ran) for step in steps)
    is_full = not only_last and all(step.result.score >= 1 for step in steps)
    uses = (*other_uses(ran.reward_uses or None, solved), *fewer_results(ran, solved)) if is_full else ()
    names = list(dict.fromkeys(name for step in steps for name, _ in step.result.rewards))
    found = [dict(step.result.rewards) for step in steps]
    means = tuple((name, sum(each.get(name, 0.0) for each in found) / len(steps)) for name in names)
    score = sum(step.result.score for step in steps) / len(steps)
    return VerifierResult(
        score=last.score if only_last else score,
        detail=", ".join(f"{step.name}: {step.result.score:g}" for step in steps),
        log="\n".join(f"=== {step.name}\n{step.result.log}" for step in steps),
        rewards=last.rewards if only_last else means,
        suspicions=tuple(sorted({*uses, *(each for step in steps for each in step.result.suspicions)})),
        ran=ran,
    )


def _packed(tar: bytes) -> bytes:
    return gzip.compress(tar, compresslevel=1, mtime=0)
