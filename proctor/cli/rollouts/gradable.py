"""Finds the tasks that workers cannot grade, before a model is paid: their own solution does not score 1.

An order with the agent `oracle` executes the solutions, over a suite that the digest of the tasks names.
Such an order whose tasks all scored 1 is the record that they were checked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.json_format import ParseDict

from proctor.cli.rollouts.outcomes import recorded_outcomes
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import outcome_pb2, rollout_pb2, rollout_service_pb2, run_pb2

_DIGITS = 16


@dataclass(slots=True)
class GradeCheck:
    """`problems` are by the names of tasks. A task without a solution may score anything, but has a score.

    `solved_tests` ran on solutions that score 1, by the names of tasks.
    """

    is_new: bool
    problems: dict[str, str] = field(default_factory=dict)
    unproved: list[str] = field(default_factory=list)
    solved_tests: dict[str, rollout_pb2.RanTests] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TasksToCheck:
    """`folders` are those of the tasks, in their order. `place` is where the tests of the order judge."""

    digest: str
    folders: Sequence[Path]
    place: rollout_pb2.VerificationPlace.ValueType

    @property
    def suite(self) -> str:
        same = "-same" if self.place == rollout_pb2.VERIFICATION_PLACE_SAME else ""
        return f"check-{self.digest[:_DIGITS]}{same}"


async def known_check(client: ProctorClient, tasks: TasksToCheck) -> GradeCheck | None:
    """The last check of the tasks; None where there was none."""
    request = rollout_service_pb2.ListRolloutsOrdersRequest(
        suite=tasks.suite, page_size=1, state=run_pb2.RUN_STATE_COMPLETED
    )
    for order in (await client.rollouts.ListRolloutsOrders(request)).orders:
        return await _result(client, order.runs[0].run_id, order.task_ids, tasks.folders)
    return None


async def check_gradable(
    client: ProctorClient, tasks: TasksToCheck, model: str, project_id: int
) -> GradeCheck:
    """No model is asked; `model` leads to its workers."""
    known = await known_check(client, tasks)
    if known is not None and not known.problems:
        return known
    checked = await client.rollouts.SubmitRollouts(
        rollout_service_pb2.SubmitRolloutsRequest(
            suite=tasks.suite,
            tasks_digest=tasks.digest,
            agent=rollout_pb2.RolloutAgent(kind=rollout_pb2.AGENT_KIND_ORACLE, verification=tasks.place),
            models=[model],
            project_id=project_id,
        )
    )
    run_id = checked.runs[0].run_id
    async for _ in client.watch_run(run_id):
        pass
    result = await _result(client, run_id, checked.task_ids, tasks.folders)
    result.is_new = True
    return result


async def _result(
    client: ProctorClient, run_id: str, task_ids: Sequence[str], folders: Sequence[Path]
) -> GradeCheck:
    has_solution = [any(_solutions(folder)) for folder in folders]
    result = GradeCheck(
        is_new=False,
        unproved=[name for name, has in zip(task_ids, has_solution, strict=True) if not has],
        problems=dict.fromkeys(task_ids, "its solution was not executed."),
    )
    async for outcome in recorded_outcomes(client, run_id):
        task_id = task_ids[outcome.doc_id]
        problem = _problem(outcome, has_solution=has_solution[outcome.doc_id])
        result.problems[task_id] = problem
        if has_solution[outcome.doc_id] and not problem:
            tests = json.loads(outcome.outcome.answer.body_json).get("tests", {})
            result.solved_tests[task_id] = ParseDict(tests, rollout_pb2.RanTests())
    result.problems = {name: problem for name, problem in result.problems.items() if problem}
    return result


def _problem(outcome: outcome_pb2.RecordedOutcome, *, has_solution: bool) -> str:
    if outcome.outcome.HasField("failure"):
        return outcome.outcome.failure.message
    score = outcome.scores.get("reward", 0.0)
    if not has_solution or score == 1.0:
        return ""
    detail = json.loads(outcome.outcome.answer.body_json).get("detail", "")
    return f"its solution scores {score:g} ({detail})."


def _solutions(folder: Path) -> Iterator[Path]:
    for pattern in ("solution/solve.sh", "solution.sh", "steps/*/solution/solve.sh"):
        yield from folder.glob(pattern)
