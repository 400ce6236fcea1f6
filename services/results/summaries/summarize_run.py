"""Computes the figures of a run from the scores of its answers, or reads the stored ones."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

from services.common.clock import Clock
from services.results.figures.figure import Figure
from services.results.runs.errors import RecordNotFound
from services.results.runs.run_counts import RunCounts, TaskCount
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.samples.ports import SampleSetStore
from services.results.scoring.task_scoring import TaskScoring
from services.results.summaries.group_figures import group_summary
from services.results.summaries.ports import Stores
from services.results.summaries.run_summary import RunSummary, TaskSummary
from services.results.summaries.task_columns import TaskColumns, cluster_numbers


async def find_label_count(sets: SampleSetStore, task: PlannedTask, scoring: TaskScoring) -> int:
    """0 where no figure depends on it, or samples differ in it: those that were seen count."""
    if not scoring.averages_over_labels:
        return 0
    return await sets.label_count(task.sample_set_id)


LEAST_KEPT_SECONDS = 3.0
# Who watches a large run all the time costs at most a tenth of a core.
KEPT_PER_SECOND_OF_COMPUTING = 10.0
MOST_RUNS_KEPT = 64

Compute = Callable[[RunRecord], Coroutine[object, object, RunSummary]]


@dataclass(slots=True)
class _Partial:
    """The figures of an epoch, there or under way."""

    epoch: int
    computing: asyncio.Task[RunSummary]
    kept_until: float = math.inf


class PartialSummaries:
    def __init__(self, compute: Compute, clock: Clock) -> None:
        self._compute = compute
        self._clock = clock
        self._partials: OrderedDict[str, _Partial] = OrderedDict()

    async def of(self, record: RunRecord) -> RunSummary:
        """Who leaves before the figures are there does not take them from the others."""
        partial = self._partials.get(record.plan.run_id)
        if partial is None or partial.epoch != record.epoch or self._clock.monotonic() >= partial.kept_until:
            partial = self._start(record)
        return await asyncio.shield(partial.computing)

    def _start(self, record: RunRecord) -> _Partial:
        run_id, started = record.plan.run_id, self._clock.monotonic()
        partial = _Partial(record.epoch, asyncio.ensure_future(self._compute(record)))
        partial.computing.add_done_callback(lambda _: self._keep(partial, started))
        self._partials[run_id] = partial
        self._partials.move_to_end(run_id)
        if len(self._partials) > MOST_RUNS_KEPT:
            self._partials.popitem(last=False)
        return partial

    def _keep(self, partial: _Partial, started: float) -> None:
        """A failure is told to those who wait for it, and not kept."""
        now, computing = self._clock.monotonic(), partial.computing
        is_failed = computing.cancelled() or computing.exception() is not None
        cost = KEPT_PER_SECOND_OF_COMPUTING * (now - started)
        partial.kept_until = now if is_failed else now + max(LEAST_KEPT_SECONDS, cost)


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
