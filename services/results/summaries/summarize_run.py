"""Computes the figures of a run from the scores of its answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from proctor.values.run import TaskCounts
from proctor.values.scoring import TaskGroup
from services.common.clock import Clock
from services.common.sandboxes.task_code.ports import CodeRunner
from services.common.threads.cancellable_threads import CancellableThreads
from services.results.outcomes.timing_summary import (
    BUCKET_WIDTH,
    MAX_EXACT,
    TimingHistograms,
    TimingSummary,
)
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.samples.ports import SampleSetStore
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.statistics.figure import Figure
from services.results.summaries.group_figures import TaskFigures, group_summary
from services.results.summaries.ports import Stores
from services.results.summaries.run_summary import GroupSummary, RunSummary, TaskSummary
from services.results.summaries.summarize_by_code import CodeFigures
from services.results.summaries.summary_work import SummaryWork
from services.results.summaries.task_columns import Clusters, TaskColumns, cluster_numbers

# Outcomes.
# Columns take some 20 bytes for each answer and metric: below it several fit beside each other.
LARGE_RUN = 1_000_000
# One for a large run, and the others for those that need a moment.
THREADS = 4


async def find_label_count(sets: SampleSetStore, task: PlannedTask, scoring: CompiledScoring) -> int:
    """0 where no figure depends on it, or samples differ in it: those that were seen count."""
    if not scoring.averages_over_labels:
        return 0
    return await sets.label_count(task.sample_set_id)


@dataclass(frozen=True, slots=True)
class SummarizeRun:
    """The figures of large runs are computed one after the other, which bounds the memory."""

    stores: Stores
    clock: Clock
    code_runner: CodeRunner | None = None
    large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    threads: CancellableThreads = field(default_factory=lambda: CancellableThreads(THREADS))

    async def summarize(self, record: RunRecord, work: SummaryWork | None = None) -> RunSummary:
        """The figures as the rows have them now."""
        work = work or SummaryWork()
        if record.plan.total <= LARGE_RUN or work.is_skipping:
            return await self._summarize(record, work)
        async with self.large:
            return await self._summarize(record, work)

    async def _summarize(self, record: RunRecord, work: SummaryWork) -> RunSummary:
        plan, outcomes = record.plan, self.stores.outcomes
        work.begin(sum(task.sample_count for task in plan.tasks))
        # First: what is recorded after it only makes the figures a little newer.
        [progress] = await self.stores.records.counts([plan], [])
        counts = progress.counts
        timing = await work.tried(
            "Times of answers", lambda: self._timing(plan, counts.recorded), TimingSummary()
        )
        tasks = [
            await self._task_summary(plan, index, count, work) for index, count in enumerate(counts.tasks)
        ]
        by_task = {task.task: task.figures for task in tasks}
        reused = await work.tried("Reused answers", lambda: outcomes.count_reused(plan.run_id), 0)
        gpu_seconds = await work.tried("GPU seconds", lambda: outcomes.gpu_seconds(plan.run_id), 0.0)
        answering_seconds = await work.tried(
            "Time of answering", lambda: self._answering_seconds(record, counts.recorded), 0.0
        )
        groups = tuple(_group_summary(plan, group, by_task, work) for group in plan.groups)
        return RunSummary(
            run_id=plan.run_id,
            epoch=record.epoch,
            is_partial=counts.recorded < plan.total,
            tasks=tuple(tasks),
            total=plan.total,
            computed_at=self.clock.now(),
            failures=counts.failures,
            usage=counts.usage.plus(work.unscored),
            unscored=work.unscored,
            mean_timing=timing.mean,
            is_truncated_left=plan.is_truncated_left,
            groups=groups,
            price=plan.facts.price,
            timing=timing,
            reused_answers=reused,
            gpu_seconds=gpu_seconds,
            answering_seconds=answering_seconds,
            problems=tuple(work.problems),
            decision=record.decision if counts.recorded < plan.total else None,
        )

    async def _timing(self, plan: RunPlan, recorded: int) -> TimingSummary:
        outcomes = self.stores.outcomes
        if recorded <= MAX_EXACT:
            return await outcomes.timing(plan.run_id)
        histograms = TimingHistograms()
        async for rows in outcomes.time_buckets(plan.run_id, range(plan.end_sample), BUCKET_WIDTH):
            histograms.add(rows)
        return histograms.summary()

    async def _answering_seconds(self, record: RunRecord, recorded: int) -> float:
        """0 for a large run too, in which the load of a model is a small part."""
        if record.epoch > 1 or recorded > MAX_EXACT:
            return 0.0
        return await self.stores.outcomes.answering_seconds(record.plan.run_id)

    async def _task_summary(
        self, plan: RunPlan, index: int, count: TaskCounts, work: SummaryWork
    ) -> TaskSummary:
        task, origin = plan.tasks[index], plan.tasks[index].provenance
        undefined = {scored.key: Figure() for scored in plan.scorings[index].scored_metrics}
        return TaskSummary(
            task=task.task,
            version=origin.version,
            num_fewshot=origin.num_fewshot,
            scoring_method=plan.scoring_method_of(index),
            is_stand_in=origin.is_stand_in,
            row_source=origin.row_source,
            row_source_revision=origin.row_source_revision,
            total=plan.total_of(task),
            answered=count.recorded - count.failed,
            failed=count.failed,
            unparsed=count.unparsed,
            figures=await work.tried(task.task, lambda: self._figures(plan, index, work), undefined),
        )

    async def _figures(self, plan: RunPlan, index: int, work: SummaryWork) -> Mapping[str, Figure]:
        task, scoring = plan.tasks[index], plan.scorings[index]
        if scoring.is_unscored:
            return {}
        columns = TaskColumns(scoring, await find_label_count(self.stores.sample_sets, task, scoring))
        window = range(task.first_sample, task.end_sample)
        async for chunk in self.stores.outcomes.scores(plan.run_id, window, columns.keys):
            columns.add(chunk)
            work.read += len(np.unique(chunk.samples))
        clusters = cluster_numbers(task, await self.stores.sample_sets.clusters(task.sample_set_id))

        def computed() -> Mapping[str, Figure]:
            def note(metric: str, error: Exception) -> None:
                work.note(f"{metric} of {task.task}", error)

            return columns.figures(has_rollouts=plan.rollouts > 1, clusters=clusters, on_error=note)

        # Seconds for a large run: the service goes on recording meanwhile.
        figures = await self.threads.run(computed)
        if scoring.needs_stored_values:
            figures = {**figures, **await self._code_figures(plan, index, clusters, work)}
        own = {scored.key: figures[scored.key] for scored in scoring.scored_metrics}
        # Behind them those of several rollouts.
        return {**own, **figures}

    async def _code_figures(
        self, plan: RunPlan, index: int, clusters: Clusters | None, work: SummaryWork
    ) -> Mapping[str, Figure]:
        task = plan.tasks[index]
        window = range(task.first_sample, task.end_sample)
        chunks = self.stores.outcomes.stored_scores(plan.run_id, window)
        scores = [row async for rows in chunks for row in rows]
        by_code = CodeFigures(self.stores.records, self.code_runner)
        coded = await by_code.figures(plan.run_id, plan.scorings[index], scores, clusters)
        work.problems += [f"{task.task}: {problem}" for problem in coded.problems]
        return coded.figures


def _group_summary(plan: RunPlan, group: TaskGroup, by_task: TaskFigures, work: SummaryWork) -> GroupSummary:
    try:
        return group_summary(group, by_task, plan.less_is_better)
    except Exception as error:  # noqa: BLE001  # named in the summary
        work.note(f"Figures of {group.group}", error)
        return GroupSummary(group.group, tuple(task for task in group.tasks if task in by_task), {})
