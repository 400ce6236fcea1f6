"""Collects the scores of a task's answers chunk by chunk and computes its figures."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from proctor.values.metrics.metric import ScoreKind
from proctor.values.metrics.names import is_right_or_wrong
from services.common.errors import WorkCancelled
from services.common.threads.cancellable_threads import check_cancelled
from services.results.outcomes.outcome import ScoredRow
from services.results.runs.run_plan import PlannedTask
from services.results.scoring.compiled_scoring import CompiledScoring, ScoredMetric
from services.results.scoring.score import UNREAD, ScoreValue
from services.results.statistics.columns import Array, Keys, Numbers, PairColumns, ScoreChunk, Values
from services.results.statistics.correlations import Positions, positions_of
from services.results.statistics.figure import Figure, figure_of
from services.results.statistics.sample_scores import (
    SampleScores,
    ScoreColumns,
    ScoreSums,
    pass_all,
    pass_at,
    pass_sizes,
    rows_of_majority,
)

# Making arrays costs more than filling them, so that rows are collected first.
PENDING_ROWS = 5000

Clusters = Callable[[Keys], Numbers]
Number = TypeVar("Number", np.uint32, np.float64)
OnError = Callable[[str, Exception], None]


def _raise(_: str, error: Exception) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class _MeanColumn:
    """Column of a metric whose figure is a mean: sums by sample."""

    scored: ScoredMetric
    sums: ScoreSums = field(default_factory=ScoreSums)

    def add(self, chunk: ScoreChunk) -> None:
        self.sums.add(chunk.samples, chunk.rollouts, chunk.first[self.scored.key])

    def figure(self, clusters: Clusters | None, *, has_rollouts: bool) -> Figure:  # noqa: ARG002  # as of pairs
        return self._figure(self.scored.key, clusters)

    def passes(self, clusters: Clusters | None, rollouts: int) -> Mapping[str, Figure]:
        """pass@k for each size, then pass^k, which for k = 1 is the same."""
        sizes = pass_sizes(rollouts)
        scores = self._scores(clusters)
        any_right = {self._key(f"pass@{k}"): pass_at(k, scores) for k in sizes}
        all_right = {self._key(f"pass^{k}"): pass_all(k, scores) for k in sizes if k > 1}
        return {key: figure_of(key, of_samples) for key, of_samples in (any_right | all_right).items()}

    def _key(self, name: str) -> str:
        """The key of a figure that is made of this metric."""
        return self.scored.key.replace(self.scored.metric.name, name, 1)

    def _figure(self, key: str, clusters: Clusters | None) -> Figure:
        return figure_of(key, self._scores(clusters))

    def _scores(self, clusters: Clusters | None) -> SampleScores:
        samples = np.array(self.sums.samples, dtype=np.int64)
        return self.sums.scores(clusters(samples) if clusters else None)


@dataclass(frozen=True, slots=True)
class _PairColumn:
    """Column of a metric whose figure is of all answers together (a correlation): 24 bytes per answer.

    A rank correlation needs only the places of its numbers among each other, 4 bytes each: they replace the
    numbers when the figure is computed.
    """

    scored: ScoredMetric
    label_count: int
    samples: "array[int]" = field(default_factory=lambda: array("I"))
    rollouts: "array[int]" = field(default_factory=lambda: array("I"))
    first: "array[float]" = field(default_factory=lambda: array("d"))
    second: "array[float]" = field(default_factory=lambda: array("d"))
    positions: list[Positions] = field(default_factory=list)

    def add(self, chunk: ScoreChunk) -> None:
        first, second = chunk.first[self.scored.key], chunk.second[self.scored.key]
        is_pair = np.isfinite(first) & np.isfinite(second)
        # A task has fewer than 2**32 samples, so half the memory of int64 will do.
        self.samples.frombytes(chunk.samples[is_pair].astype(np.uint32).tobytes())
        self.rollouts.frombytes(chunk.rollouts[is_pair].astype(np.uint32).tobytes())
        self.first.frombytes(first[is_pair].tobytes())
        self.second.frombytes(second[is_pair].tobytes())

    def figure(self, clusters: Clusters | None, *, has_rollouts: bool) -> Figure:
        samples, (first, second) = _viewed(self.samples, np.uint32), self._values()
        rollouts = _viewed(self.rollouts, np.uint32) if has_rollouts else None
        if vote := self.scored.pipeline.vote:
            if rollouts is not None:
                votes = self._votes(second.astype(np.float64), counts_unread=vote.counts_unread)
                voting = np.flatnonzero(rollouts < vote.voters)
                rows = voting[rows_of_majority(samples[voting], rollouts[voting], votes[voting])]
                samples, first, second = samples[rows], first[rows], second[rows]
            rollouts = None
        of_clusters = clusters(samples) if clusters else None
        of_samples = None if rollouts is None else samples
        key = self.scored.key
        if self.scored.metric.entry.kind.is_of_each_answer:
            return figure_of(key, ScoreColumns(first.astype(np.float64), clusters=of_clusters))
        columns = PairColumns(first, second, of_samples, rollouts, of_clusters)
        return figure_of(key, columns, self.scored.metric.average, self.label_count)

    def _values(self) -> tuple[Values, Values]:
        if self.scored.metric.entry.kind is not ScoreKind.RANKS or self.scored.pipeline.is_majority:
            return _viewed(self.first, np.float64), _viewed(self.second, np.float64)
        if not self.positions:
            for numbers in (self.first, self.second):
                self.positions.append(positions_of(_viewed(numbers, np.float64)))
                del numbers[:]
        first, second = self.positions
        return first, second

    def _votes(self, second: Array, *, counts_unread: bool) -> Array:
        """Predictions for a majority: one that is NaN does not vote."""
        is_kept = counts_unread or self.scored.metric.entry.kind.is_correlation
        return second if is_kept else np.where(second == UNREAD, np.nan, second)


_Column = _MeanColumn | _PairColumn


def _viewed(numbers: "array[Any]", kind: type[Number]) -> NDArray[Number]:
    """A view, not a copy: the array must not grow meanwhile."""
    return np.frombuffer(numbers, dtype=kind) if len(numbers) else np.empty(0, dtype=kind)


def _column_of(scored: ScoredMetric, label_count: int) -> _Column:
    is_pair = scored.pipeline.is_majority or not scored.metric.entry.kind.is_of_each_answer
    return _PairColumn(scored, label_count) if is_pair else _MeanColumn(scored)


class TaskColumns:
    """`label_count`: how many choices every sample has, for figures over all labels; 0: that is not known."""

    def __init__(self, scoring: CompiledScoring, label_count: int = 0) -> None:
        # What is made of stored values is no column: they are read apart.
        self._columns = [
            _column_of(scored, label_count)
            for scored in scoring.scored_metrics
            if not scored.metric.is_of_stored_values
        ]
        self._rollouts = 0
        self._pending: list[ScoredRow] = []

    @property
    def keys(self) -> list[str]:
        return [column.scored.key for column in self._columns]

    def add_rows(self, rows: Sequence[ScoredRow]) -> None:
        """Adds rows by sample and rollout. The answers to the last sample may go on in the next call."""
        self._pending.extend(rows)
        if len(self._pending) >= PENDING_ROWS:
            # Without the last sample, whose other rollouts may still come.
            self._add_pending(self._pending[-1][0])

    def _add_pending(self, before_sample: float) -> None:
        end = bisect_left(self._pending, before_sample, key=itemgetter(0))
        rows, self._pending = self._pending[:end], self._pending[end:]
        if rows:
            self.add(chunk_of(rows, self.keys))

    def add(self, chunk: ScoreChunk) -> None:
        """Adds a chunk by sample and rollout, all answers to a sample in one chunk."""
        self._rollouts = max(self._rollouts, int(chunk.rollouts.max(initial=-1)) + 1)
        for column in self._columns:
            column.add(chunk)

    def figures(
        self, *, has_rollouts: bool, clusters: Clusters | None, on_error: OnError = _raise
    ) -> dict[str, Figure]:
        """Figures by metric, in the order of the task; behind them pass@k and pass^k of several rollouts.

        A figure that cannot be computed is undefined once `on_error` has taken its error.
        """
        figures = self.metric_figures(has_rollouts=has_rollouts, clusters=clusters, on_error=on_error)
        if has_rollouts:
            try:
                figures |= self._pass_figures(clusters)
            except WorkCancelled:
                raise
            except Exception as error:  # noqa: BLE001  # taken by the caller
                on_error("pass@k", error)
        return figures

    def metric_figures(
        self, *, has_rollouts: bool, clusters: Clusters | None, on_error: OnError = _raise
    ) -> dict[str, Figure]:
        """Figures without pass@k and pass^k."""
        self._add_pending(math.inf)
        figures = {}
        for column in self._columns:
            check_cancelled()
            try:
                figures[column.scored.key] = column.figure(clusters, has_rollouts=has_rollouts)
            except WorkCancelled:
                raise
            except Exception as error:  # noqa: BLE001  # taken by the caller
                on_error(column.scored.key, error)
                figures[column.scored.key] = Figure()
        return figures

    def _pass_figures(self, clusters: Clusters | None) -> dict[str, Figure]:
        """pass@k and pass^k of the first metric that is right or wrong, for each filter."""
        judged = [
            column
            for column in self._columns
            if isinstance(column, _MeanColumn)
            and not column.scored.metric.coded
            and is_right_or_wrong(column.scored.key)
            # A log may have a share where ours is right or wrong.
            and column.sums.is_whole
        ]
        # Reversed, so that the first metric of a filter is the one that stays.
        first = {column.scored.pipeline.name: column for column in reversed(judged)}
        rollouts = max(self._rollouts, 1)
        return {
            key: figure
            for one in reversed(first.values())
            for key, figure in one.passes(clusters, rollouts).items()
        }


def chunk_of(rows: Sequence[ScoredRow], keys: Iterable[str]) -> ScoreChunk:
    """NaN stands for a stored null (NaN or infinity), and for a missing number of an answer."""
    samples = np.array([sample for sample, _, _ in rows], dtype=np.int64)
    rollouts = np.array([rollout for _, rollout, _ in rows], dtype=np.int64)
    pairs = {
        key: np.array([_pair(scores.get(key)) for _, _, scores in rows], dtype=np.float64) for key in keys
    }
    return ScoreChunk(
        samples,
        rollouts,
        {key: np.ascontiguousarray(pair[:, 0]) for key, pair in pairs.items()},
        {key: np.ascontiguousarray(pair[:, 1]) for key, pair in pairs.items()},
    )


def _pair(score: ScoreValue | None) -> Sequence[float | None]:
    return score if isinstance(score, Sequence) else (score, None)


def cluster_numbers(task: PlannedTask, clusters: Mapping[int, str]) -> Clusters | None:
    """Numbers the cluster of each sample; a sample without one is a cluster of its own."""
    if not clusters:
        return None
    numbers = np.arange(task.sample_count, dtype=np.int64)
    first_of: dict[str, int] = {}
    for position, cluster in clusters.items():
        numbers[position] = first_of.setdefault(cluster, position)
    return lambda samples: numbers[samples - task.first_sample]
