"""Computes the figures of a run from the scores of its answers; gives the kept ones, or those so far."""

import asyncio
from collections.abc import Mapping

from services.common.clock import Clock
from services.results.errors import RecordNotFound
from services.results.figures.figure import Figure
from services.results.ports import Stores
from services.results.runs.find_label_count import find_label_count
from services.results.runs.group_figures import group_summary
from services.results.runs.partial_summaries import PartialSummaries
from services.results.runs.run_counts import RunCounts, TaskCount
from services.results.runs.run_record import RunPlan, RunRecord
from services.results.runs.run_summary import RunSummary, TaskSummary
from services.results.runs.task_columns import TaskColumns, cluster_numbers


class SummarizeRun:
    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock
        self._partials = PartialSummaries(self.compute, clock)

    async def __call__(self, run_id: str) -> RunSummary:
        """The summary kept by the close, or the figures so far, which may be some seconds old."""
        record = await self._stores.records.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        kept = await self._stores.records.find_summary(run_id, record.epoch)
        return kept or await self._partials.of(record)

    async def compute(self, record: RunRecord) -> RunSummary:
        """The figures as the rows have them now."""
        plan = record.plan
        [counts] = await self._stores.records.counts([plan], [])
        timing = await self._stores.outcomes.timing(plan.run_id)
        tasks = [await self._task_summary(plan, index, counts) for index in range(len(plan.tasks))]
        by_task = {task.task: task.figures for task in tasks}
        return RunSummary(
            run_id=plan.run_id,
            epoch=record.epoch,
            is_partial=counts.recorded < plan.total,
            tasks=tuple(tasks),
            total=plan.total,
            computed_at=self._clock.now(),
            failures=counts.failures,
            usage=counts.usage,
            mean_timing=timing.mean,
            is_truncated_left=plan.is_truncated_left,
            groups=tuple(group_summary(group, by_task) for group in plan.groups),
            price=plan.facts.price,
            timing=timing,
            reused_answers=await self._stores.outcomes.count_reused(plan.run_id),
        )

    async def _task_summary(self, plan: RunPlan, index: int, counts: RunCounts) -> TaskSummary:
        task, origin = plan.tasks[index], plan.tasks[index].provenance
        count = counts.tasks.get(task.task, TaskCount())
        return TaskSummary(
            task=task.task,
            version=origin.version,
            num_fewshot=origin.num_fewshot,
            scoring_method=plan.scoring_method_of(index),
            is_stand_in=origin.is_stand_in,
            dataset=origin.dataset,
            dataset_revision=origin.dataset_revision,
            total=task.sample_count * plan.rollouts,
            answered=count.recorded - count.failed,
            failed=count.failed,
            unparsed=count.unparsed,
            figures=await self._figures(plan, index),
        )

    async def _figures(self, plan: RunPlan, index: int) -> Mapping[str, Figure]:
        task = plan.tasks[index]
        scoring = plan.scorings[index]
        if scoring.is_unscored:
            return {}
        columns = TaskColumns(scoring, await find_label_count(self._stores.sample_sets, task, scoring))
        async for rows in self._stores.outcomes.scores(
            plan.run_id, range(task.first_sample, task.end_sample)
        ):
            columns.add(rows)
        clusters = await self._stores.sample_sets.clusters(task.sample_set_id)

        def computed() -> Mapping[str, Figure]:
            return columns.figures(has_rollouts=plan.rollouts > 1, clusters=cluster_numbers(task, clusters))

        # Seconds for a large run: the service goes on recording meanwhile.
        return await asyncio.to_thread(computed)
