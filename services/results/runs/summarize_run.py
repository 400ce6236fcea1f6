"""Computes the figures of a run from the scores of its answers; gives the kept ones, or those so far."""

import asyncio
from array import array
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from services.common.clock import Clock
from services.results.errors import RecordNotFound
from services.results.figures import Figure, figure_of, is_label_metric
from services.results.ports import ScoredRow, Stores
from services.results.runs.partial_summaries import PartialSummaries
from services.results.runs.run_counts import RunCounts, TaskCount
from services.results.runs.run_record import PlannedTask, RunPlan, RunRecord
from services.results.runs.run_summary import RunSummary, TaskSummary
from services.results.score_columns import LabelColumns, Numbers, ScoreColumns
from services.results.task_scoring import metric_names


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
        costs = await self._stores.outcomes.costs(plan.run_id)
        tasks = [await self._task_summary(plan, index, counts) for index in range(len(plan.tasks))]
        return RunSummary(
            run_id=plan.run_id,
            epoch=record.epoch,
            is_partial=counts.recorded < plan.total,
            tasks=tuple(tasks),
            total=plan.total,
            computed_at=self._clock.now(),
            failures=counts.failures,
            usage=costs.usage,
            mean_timing=costs.mean_timing,
            is_truncated_left=plan.is_truncated_left,
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
        columns = _TaskColumns(metric_names(plan.scorings[index]))
        async for rows in self._stores.outcomes.scores(
            plan.run_id, range(task.first_sample, task.end_sample)
        ):
            columns.add(rows)
        clusters = await self._stores.sample_sets.clusters(task.sample_set_id)

        def computed() -> Mapping[str, Figure]:
            return columns.figures(has_rollouts=plan.rollouts > 1, clusters=_cluster_numbers(task, clusters))

        # Seconds for a large run: the service goes on recording meanwhile.
        return await asyncio.to_thread(computed)


class _TaskColumns:
    """The scores of a task, one compact column per metric: eight bytes per answer and number."""

    def __init__(self, metrics: tuple[str, ...]) -> None:
        self._samples = array("q")
        self._rollouts = array("q")
        self._values = {metric: array("d") for metric in metrics if not is_label_metric(metric)}
        self._labels = {metric: (array("q"), array("q")) for metric in metrics if is_label_metric(metric)}
        self._metrics = metrics

    def add(self, rows: Sequence[ScoredRow]) -> None:
        self._samples.extend([sample for sample, _, _ in rows])
        self._rollouts.extend([rollout for _, rollout, _ in rows])
        for metric, values in self._values.items():
            values.extend([scores[metric] for _, _, scores in rows])  # type: ignore[misc]  # a number by its metric
        for metric, (gold, predicted) in self._labels.items():
            pairs = [scores[metric] for _, _, scores in rows]
            gold.extend([pair[0] for pair in pairs])  # type: ignore[index]  # a pair by its metric
            predicted.extend([pair[1] for pair in pairs])  # type: ignore[index]  # as above

    def figures(
        self, *, has_rollouts: bool, clusters: Callable[[Numbers], Numbers] | None
    ) -> dict[str, Figure]:
        samples = np.array(self._samples, dtype=np.int64)
        keys = {
            "samples": samples if has_rollouts else None,
            "rollouts": np.array(self._rollouts, dtype=np.int64) if has_rollouts else None,
            "clusters": clusters(samples) if clusters else None,
        }
        return {metric: figure_of(metric, self._columns(metric, keys)) for metric in self._metrics}

    def _columns(self, metric: str, keys: Mapping[str, Numbers | None]) -> ScoreColumns | LabelColumns:
        if metric in self._values:
            return ScoreColumns(np.array(self._values[metric], dtype=np.float64), **keys)
        gold, predicted = (np.array(column, dtype=np.int64) for column in self._labels[metric])
        return LabelColumns(gold, predicted, **keys)


def _cluster_numbers(task: PlannedTask, clusters: Mapping[int, str]) -> Callable[[Numbers], Numbers] | None:
    """Numbers the cluster of each sample; a sample without one is a cluster of its own."""
    if not clusters:
        return None
    numbers = np.arange(task.sample_count, dtype=np.int64)
    first_of: dict[str, int] = {}
    for position, cluster in clusters.items():
        numbers[position] = first_of.setdefault(cluster, position)
    return lambda samples: numbers[samples - task.first_sample]
