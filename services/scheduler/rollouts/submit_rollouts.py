"""Registers the tasks of an order as a suite, and submits one run per model over it."""

import asyncio
from dataclasses import dataclass

from proctor.values.run import RunId
from proctor.values.scoring import PromptForm
from services.common.checked_fields import refuse
from services.scheduler.requests import user_problem
from services.scheduler.rollouts.ports import ReadTasks, WriteSuite
from services.scheduler.rollouts.rollouts_order import (
    MAX_BUNDLE_BYTES,
    OrderedRollouts,
    RolloutsOrder,
    TooManyBytes,
    check_order,
)
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.add_suite import AddSuite


@dataclass(frozen=True, slots=True)
class SubmitRollouts:
    read: ReadTasks
    write: WriteSuite
    suites: AddSuite
    submitting: SubmitRun

    async def submit(self, order: RolloutsOrder) -> OrderedRollouts:
        """Every run is checked before the first is stored."""
        check_order(order)
        refuse(user_problem(order.user))
        tasks = await asyncio.to_thread(self.read, order.tasks, order.overrides_json)
        if (size := sum(task.bundle_bytes for task in tasks)) > MAX_BUNDLE_BYTES:
            raise TooManyBytes(bytes=size, limit=MAX_BUNDLE_BYTES)
        document = await asyncio.to_thread(self.write, order.name, tasks, order.agent)
        added = await self.suites.add(document, order.user)
        suite = f"{added.suite.name}@{added.suite.version}"
        submissions = [self._submission(order, suite, model) for model in order.models]
        for submission in submissions:
            await self.submitting.prepare(submission)
        runs = [await self.submitting.submit(submission) for submission in submissions]
        return OrderedRollouts(suite, tuple(task.task_id for task in tasks), tuple(runs))

    def _submission(self, order: RolloutsOrder, suite: str, model: str) -> Submission:
        run_id = order.id_for(model)
        run_order = RunOrder(
            suite=suite,
            model=model,
            project_id=order.project_id,
            rollouts=order.rollouts,
            params=order.params,
            prompt_form=PromptForm.CHAT,
            max_cost=order.max_cost,
        )
        return Submission(RunId(run_id), run_order, order.user, request_id=run_id)
