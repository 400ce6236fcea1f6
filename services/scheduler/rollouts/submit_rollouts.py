"""Registers the tasks of an order as a suite, and submits one run per model over it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from proctor.values.names.suite_name import versioned_name
from proctor.values.priority import Priority
from proctor.values.rollout import RolloutTask, VerificationPlace, VerifierKind
from proctor.values.run import RunId
from proctor.values.scoring import PromptForm
from services.common.checked_fields import refuse
from services.common.errors import InvalidParameter
from services.common.requests.request_fields import user_problem
from services.scheduler.limits.ports import LimitStore
from services.scheduler.rollouts.ports import WriteSuite
from services.scheduler.rollouts.postgres import PostgresRolloutsOrders
from services.scheduler.rollouts.rollouts_order import RolloutsOrder
from services.scheduler.rollouts.rollouts_submission import (
    OrderedRollouts,
    RolloutsSubmission,
    check_submission,
)
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.add_suite import AddSuite
from services.scheduler.suites.suite import SuiteOwner
from services.scheduler.uploads.task_sets.add_task_set import AddTaskSet
from services.scheduler.uploads.task_sets.find_tasks import FindStoredTasks
from services.scheduler.uploads.task_sets.task_set import TasksHeader

ARCHIVE = "tasks.tar.gz"
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SubmitRollouts:
    add_tasks: AddTaskSet
    find_tasks: FindStoredTasks
    write: WriteSuite
    suites: AddSuite
    orders: PostgresRolloutsOrders
    submit_run: SubmitRun
    limits: LimitStore

    async def submit(self, submission: RolloutsSubmission) -> OrderedRollouts:
        """Every run is checked before the first is stored. All of them are stored, or none."""
        check_submission(submission)
        refuse(user_problem(submission.user))
        digest = submission.tasks_digest or await self._added(submission)
        tasks = _with_solved_tests(await self.find_tasks.find(digest, submission.user), submission)
        _check_verification(tasks, submission)
        document = await asyncio.to_thread(self.write, submission.suite, tasks, submission.agent)
        await self.find_tasks.keep_for_suite(digest, submission.user, document.digest)
        added = await self.suites.add(document, SuiteOwner(submission.user, submission.project_id))
        suite = versioned_name(added.suite.name, added.suite.version)
        priority = (await self.limits.limits()).background_priority(submission.user)
        task_ids = tuple(task.task_id for task in tasks)
        rows = [_rows_of(submission, model, task_ids) for model in submission.models]
        prepared = [
            await self.submit_run.prepare(_run_submission(submission, suite, each, priority)) for each in rows
        ]
        for run in prepared:
            # Refused without a price, as a run's own max_cost is.
            self.submit_run.pricing.price_of(run.order.model, run.order.base_url, submission.agent.max_cost)
        runs = await self.orders.add(_stored(submission, task_ids, prepared), prepared)
        for run in runs:
            await self.submit_run.controls.announce(run)
        return OrderedRollouts(submission.request_id, suite, task_ids, tuple(runs))

    async def _added(self, submission: RolloutsSubmission) -> str:
        header = TasksHeader(ARCHIVE, submission.user, submission.overrides_json)
        return (await self.add_tasks.add(header, _chunks(submission.tasks))).digest


def _check_verification(tasks: Sequence[RolloutTask], submission: RolloutsSubmission) -> None:
    """Raises InvalidParameter for tasks whose tests cannot judge in the sandbox of the agent."""
    if submission.agent.verification is VerificationPlace.FRESH:
        return
    fresh = [
        task.task_id
        for task in tasks
        if task.verifier is VerifierKind.RUBRICS or task.steps or task.has_own_files or task.verifier_image
    ]
    if fresh:
        sentence = (
            "agent.verification is same, but tasks with rubrics, steps or files of their verifier's own are "
            f"judged in a fresh sandbox only: {', '.join(fresh[:5])}. Order them without it."
        )
        raise InvalidParameter(field="agent.verification", sentence=sentence)


def _with_solved_tests(tasks: Sequence[RolloutTask], submission: RolloutsSubmission) -> Sequence[RolloutTask]:
    solved = submission.solved_tests
    return [replace(task, solved_tests=solved.get(task.task_id, task.solved_tests)) for task in tasks]


@dataclass(frozen=True, slots=True)
class _ModelRows:
    """How often a model works on each task; `row_rollouts` is empty where that is `rollouts` for all."""

    model: str
    rollouts: int
    row_rollouts: tuple[int, ...] = ()


def _rows_of(submission: RolloutsSubmission, model: str, task_ids: Sequence[str]) -> _ModelRows:
    """Raises InvalidParameter for a task that is not there."""
    named = submission.model_tasks.get(model)
    if named is None:
        return _ModelRows(model, submission.rollouts)
    if unknown := sorted(named.keys() - set(task_ids)):
        sentence = f"model_tasks: there is no task {unknown[0]}. There are: {', '.join(task_ids[:20])}."
        raise InvalidParameter(field="model_tasks", sentence=sentence)
    rollouts = tuple(named.get(task_id, 0) for task_id in task_ids)
    return _ModelRows(model, max(rollouts), rollouts if len(set(rollouts)) > 1 else ())


def _run_submission(
    submission: RolloutsSubmission, suite: str, rows: _ModelRows, priority: Priority
) -> Submission:
    run_id = submission.id_for(rows.model)
    run_order = RunOrder(
        suite=suite,
        model=rows.model,
        priority=priority,
        project_id=submission.project_id,
        rollouts=rows.rollouts,
        row_rollouts=rows.row_rollouts,
        agent_kind=submission.agent.kind,
        params=submission.params,
        prompt_form=PromptForm.CHAT,
        max_cost=submission.max_cost,
        parallel_group=submission.parallel_group_of_user,
        parallel=submission.parallel,
    )
    return Submission(RunId(run_id), run_order, submission.user, request_id=run_id)


def _stored(submission: RolloutsSubmission, task_ids: tuple[str, ...], runs: Sequence[Run]) -> RolloutsOrder:
    """The order before its first run is stored."""
    return RolloutsOrder(
        order_id=submission.request_id,
        suite=runs[0].order.suite,
        suite_version=runs[0].suite_version,
        user=submission.user,
        project_id=submission.project_id,
        agent=submission.agent,
        rollouts=max(run.order.rollouts for run in runs),
        task_ids=task_ids,
        models=tuple(run.order.model for run in runs),
        run_ids=tuple(run.run_id for run in runs),
        created_at=runs[0].created_at,
    )


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _CHUNK_BYTES):
        yield content[start : start + _CHUNK_BYTES]
