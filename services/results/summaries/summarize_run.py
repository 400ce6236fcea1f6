"""Computes the figures of a run from the scores of its answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from proctor.values.run import TaskCounts
from services.common.clock import Clock
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.samples.ports import SampleSetStore
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.statistics.figure import Figure
from services.results.summaries.group_figures import group_summary
from services.results.summaries.ports import Stores
from services.results.summaries.run_summary import RunSummary, TaskSummary
from services.results.summaries.task_columns import TaskColumns, cluster_numbers


async def find_label_count(sets: SampleSetStore, task: PlannedTask, scoring: CompiledScoring) -> int:
    """0 where no figure depends on it, or samples differ in it: those that were seen count."""
    if not scoring.averages_over_labels:
        return 0
    return await sets.label_count(task.sample_set_id)


@dataclass(frozen=True, slots=True)
class SummarizeRun:
    stores: Stores
    clock: Clock

    async def summarize(self, record: RunRecord) -> RunSummary:
        """The figures as the rows have them now."""
        plan = record.plan
        [progress] = await self.stores.records.counts([plan], [])
        counts = progress.counts
        timing = await self.stores.outcomes.timing(plan.run_id)
        tasks = [await self._task_summary(plan, index, count) for index, count in enumerate(counts.tasks)]
        by_task = {task.task: task.figures for task in tasks}
        return RunSummary(
            run_id=plan.run_id,
            epoch=record.epoch,
            is_partial=counts.recorded < plan.total,
            tasks=tuple(tasks),
            total=plan.total,
            computed_at=self.clock.now(),
            failures=counts.failures,
            usage=counts.usage,
            mean_timing=timing.mean,
            is_truncated_left=plan.is_truncated_left,
            groups=tuple(group_summary(group, by_task) for group in plan.groups),
            price=plan.facts.price,
            timing=timing,
            reused_answers=await self.stores.outcomes.count_reused(plan.run_id),
        )

    async def _task_summary(self, plan: RunPlan, index: int, count: TaskCounts) -> TaskSummary:
        task, origin = plan.tasks[index], plan.tasks[index].provenance
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
        columns = TaskColumns(scoring, await find_label_count(self.stores.sample_sets, task, scoring))
        async for rows in self.stores.outcomes.scores(plan.run_id, range(task.first_sample, task.end_sample)):
            columns.add(rows)
        clusters = await self.stores.sample_sets.clusters(task.sample_set_id)

        def computed() -> Mapping[str, Figure]:
            return columns.figures(has_rollouts=plan.rollouts > 1, clusters=cluster_numbers(task, clusters))

        # Seconds for a large run: the service goes on recording meanwhile.
        return await asyncio.to_thread(computed)
