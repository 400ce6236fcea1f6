"""What a run's figure scatters by: rows, rollouts and runs, from the run and its repetitions."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from proctor.values.scoring import benchmark_group
from services.results.leaderboard.closed_run import ClosedRun
from services.results.outcomes.ports import OutcomeStore
from services.results.runs.errors import RunNotFrozen
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.statistics.columns import Array, Numbers
from services.results.statistics.metric_names import SCORE, UnknownMetric, metric_named
from services.results.statistics.variance_split import RepeatedTask, VarianceSplit, split_variance


class RepeatedRuns(Protocol):
    """Closed runs and those that repeat them."""

    async def closed_run(self, run_id: str) -> ClosedRun | None:
        """A run as it was last closed."""
        ...

    async def repetitions(self, run_id: str, metric: str) -> Sequence[str]:
        """The newest completed runs of the model under the run's conditions, itself among them.

        Without runs that reused answers. Empty where it is not on the leaderboard of the metric.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoisyTask:
    """`rows` that all runs answered. `split`: of the mean of the task."""

    task: str
    metric: str
    rows: int
    split: VarianceSplit | None


@dataclass(frozen=True, slots=True)
class Noise:
    """`split` of the benchmark's figure; None where it is no mean of rows, or nothing was asked twice."""

    run_ids: Sequence[str]
    metric: str
    rollouts: int
    tasks: Sequence[NoisyTask]
    split: VarianceSplit | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A task of the figure; `weight` is that of the task among all, not yet divided by their sum."""

    index: int
    scored: ScoredMetric
    weight: float


@dataclass(frozen=True, slots=True)
class MeasureNoise:
    runs: RepeatedRuns
    records: RunRecordStore
    outcomes: OutcomeStore

    async def measure(self, run_id: str, word: str) -> Noise:
        """`word` "" is the headline figure. Raises RecordNotFound, RunNotFrozen, UnknownMetric."""
        plan = (await self.records.get(run_id)).plan
        closed = await self.runs.closed_run(run_id)
        if closed is None:
            raise RunNotFrozen(run_id=run_id)
        figures = closed.result.figures
        metric = metric_named(word, list(figures), closed.result.headline)
        if metric is None:
            raise UnknownMetric(metric=word, supported=", ".join(sorted(figures)))
        run_ids = await self.runs.repetitions(run_id, metric)
        if run_id not in run_ids:
            run_ids = [run_id]
        parts = _parts(plan, metric)
        total = sum(part.weight for part in parts)
        tasks, repeated = [], []
        for part in parts:
            one = await self._repeated(run_ids, plan, part, part.weight / total)
            split = await asyncio.to_thread(split_variance, [_alone(one)])
            tasks.append(NoisyTask(plan.tasks[part.index].task, part.scored.key, one.means.shape[1], split))
            repeated.append(one)
        split = await asyncio.to_thread(split_variance, repeated)
        return Noise(run_ids, metric, plan.rollouts, tasks, split)

    async def _repeated(
        self, run_ids: Sequence[str], plan: RunPlan, part: _Part, weight: float
    ) -> RepeatedTask:
        """Runs under the same conditions number their rows alike."""
        task = plan.tasks[part.index]
        shape = (len(run_ids), task.sample_count)
        means, counts, squares = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64), np.zeros(shape)
        window = range(task.first_sample, task.end_sample)
        for row, run_id in enumerate(run_ids):
            async for chunk in self.outcomes.scores(run_id, window, [part.scored.key]):
                scores = chunk.first[part.scored.key]
                known = np.isfinite(scores)
                at, scores = chunk.samples[known] - task.first_sample, scores[known]
                _add(at, scores, means[row], counts[row], squares[row])
        answered = (counts > 0).all(axis=0)
        return RepeatedTask(means[:, answered], counts[:, answered], squares[:, answered], weight)


def _add(at: Numbers, scores: Array, means: Array, counts: Numbers, squares: Array) -> None:
    """Writes what the scores of the rows `at` add up to; all scores of a row come together."""
    size = len(means)
    found = np.bincount(at, minlength=size)
    is_new = found > 0
    sums = np.bincount(at, scores, size)
    of_rows = sums[is_new] / found[is_new]
    means[is_new], counts[is_new] = of_rows, found[is_new]
    squares[is_new] = np.bincount(at, np.square(scores - means[at]), size)[is_new]


def _alone(task: RepeatedTask) -> RepeatedTask:
    return RepeatedTask(task.means, task.counts, task.squares)


def _parts(plan: RunPlan, metric: str) -> Sequence[_Part]:
    """The tasks whose means the figure is a mean of; empty where one of them is no mean of rows."""
    group = benchmark_group(plan.groups)
    names = set(group.tasks) if group else set()
    chosen = []
    for index, (task, scoring) in enumerate(zip(plan.tasks, plan.scorings, strict=True)):
        scored = _scored(scoring.scored_metrics, metric)
        if scored is None or (names and task.task not in names):
            continue
        if not scored.has_numbers or scored.pipeline.is_majority:
            return []
        chosen.append((index, scored, task.sample_count))
    by_size = metric != SCORE and all(
        use.is_weighted_by_size
        for use in (group.metrics if group else ())
        if metric == use.metric or metric.startswith(f"{use.metric},")
    )
    return [_Part(index, scored, size if by_size else 1) for index, scored, size in chosen]


def _scored(metrics: Sequence[ScoredMetric], metric: str) -> ScoredMetric | None:
    """Of the score the main metric of a task."""
    if metric == SCORE:
        return next(iter(metrics), None)
    return next((one for one in metrics if one.key == metric), None)
