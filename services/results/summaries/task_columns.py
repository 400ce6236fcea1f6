"""Collects the scores of a task's answers row by row and computes its figures."""

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from services.results.outcomes.outcome import ScoredRow
from services.results.runs.run_plan import PlannedTask
from services.results.scoring.answer import UNREAD
from services.results.scoring.compiled_scoring import CompiledScoring, ScoredMetric
from services.results.statistics.columns import Array, LabelColumns, NumberColumns, Numbers, ScoreColumns
from services.results.statistics.figure import Columns, Figure, figure_of
from services.results.statistics.metrics import is_label_metric, is_number_metric, is_right_or_wrong
from services.results.statistics.rollouts import pass_at, pass_sizes, rows_of_majority

_NO_NUMBER = (math.nan, math.nan)

Clusters = Callable[[Numbers], Numbers]
OnError = Callable[[str, Exception], None]


def _raise(_: str, error: Exception) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class _Places:
    """Sample, rollout, cluster of each row: `rollouts` is None with one rollout, `clusters` without any."""

    samples: Numbers
    rollouts: Numbers | None
    clusters: Numbers | None

    @property
    def keys(self) -> Mapping[str, Numbers | None]:
        samples = None if self.rollouts is None else self.samples
        return {"samples": samples, "rollouts": self.rollouts, "clusters": self.clusters}

    def of_majority(self, votes: Array) -> tuple[Numbers, "_Places"]:
        """The rows that represent their samples, with their sample and cluster."""
        if self.rollouts is None:
            return np.arange(len(votes)), self
        rows = rows_of_majority(self.samples, self.rollouts, votes)
        return rows, _Places(self.samples[rows], None, None if self.clusters is None else self.clusters[rows])


@dataclass(slots=True)
class _Column:
    """What a metric scored: eight bytes per answer and number. `second`: of metrics that score a pair."""

    scored: ScoredMetric
    label_count: int
    first: "array[float]" = field(default_factory=lambda: array("d"))
    second: "array[float]" = field(default_factory=lambda: array("d"))

    @property
    def key(self) -> str:
        return self.scored.key

    @property
    def is_majority(self) -> bool:
        return self.scored.pipeline.is_majority

    @property
    def is_pair(self) -> bool:
        return self.is_majority or is_label_metric(self.key) or is_number_metric(self.key)

    @property
    def is_right_or_wrong(self) -> bool:
        return not self.is_majority and is_right_or_wrong(self.key)

    def add(self, rows: Sequence[ScoredRow]) -> None:
        """A stored null (NaN or infinity) becomes NaN, which no figure counts."""
        if not self.is_pair:
            scored = np.array([scores[self.key] for _, _, scores in rows], dtype=np.float64)
            self.first.frombytes(scored.tobytes())
            return
        # A number that could not be read of an answer is left out of its scores.
        pairs = np.array([scores.get(self.key, _NO_NUMBER) for _, _, scores in rows], dtype=np.float64)
        for column, scored in zip((self.first, self.second), pairs.reshape(-1, 2).T, strict=True):
            column.frombytes(scored.tobytes())

    def figure(self, places: _Places) -> Figure:
        first, second = np.array(self.first), np.array(self.second)
        if self.is_majority:
            votes = second if is_number_metric(self.key) else np.where(second == UNREAD, np.nan, second)
            rows, places = places.of_majority(votes)
            first, second = first[rows], second[rows]
        columns = self._columns(first, second, places)
        return figure_of(self.key, columns, self.scored.metric.average, self.label_count)

    def passes(self, places: _Places, sizes: Sequence[int]) -> Iterator[tuple[str, Figure]]:
        scores = ScoreColumns(np.array(self.first), **places.keys)
        for k in sizes:
            key = self.key.replace(self.scored.metric.name, f"pass@{k}", 1)
            yield key, figure_of(key, pass_at(k, scores))

    def _columns(self, first: Array, second: Array, places: _Places) -> Columns:
        if is_label_metric(self.key):
            return LabelColumns(first.astype(np.int64), second.astype(np.int64), **places.keys)
        if is_number_metric(self.key):
            return NumberColumns(first, second, **places.keys)
        return ScoreColumns(first, **places.keys).only_numbers()


class TaskColumns:
    """`label_count`: how many choices every sample has, for figures over all labels; 0: that is not known."""

    def __init__(self, scoring: CompiledScoring, label_count: int = 0) -> None:
        self._samples = array("q")
        self._rollouts = array("q")
        self._columns = [_Column(scored, label_count) for scored in scoring.scored_metrics]

    def add(self, rows: Sequence[ScoredRow]) -> None:
        self._samples.extend([sample for sample, _, _ in rows])
        self._rollouts.extend([rollout for _, rollout, _ in rows])
        for column in self._columns:
            column.add(rows)

    def figures(
        self, *, has_rollouts: bool, clusters: Clusters | None, on_error: OnError = _raise
    ) -> dict[str, Figure]:
        """By metric, in the order of the task; behind them pass@k, where there are rollouts.

        A figure that cannot be computed is undefined once `on_error` has taken its error.
        """
        figures = self.metric_figures(has_rollouts=has_rollouts, clusters=clusters, on_error=on_error)
        if has_rollouts:
            try:
                figures |= self._pass_figures(clusters)
            except Exception as error:  # noqa: BLE001  # taken by the caller
                on_error("pass@k", error)
        return figures

    def metric_figures(
        self, *, has_rollouts: bool, clusters: Clusters | None, on_error: OnError = _raise
    ) -> dict[str, Figure]:
        """Without pass@k."""
        places = self._places(clusters, has_rollouts=has_rollouts)
        figures = {}
        for column in self._columns:
            try:
                figures[column.key] = column.figure(places)
            except Exception as error:  # noqa: BLE001  # taken by the caller
                on_error(column.key, error)
                figures[column.key] = Figure()
        return figures

    def _pass_figures(self, clusters: Clusters | None) -> dict[str, Figure]:
        """Of the first metric that is right or wrong, for each filter."""
        places = self._places(clusters, has_rollouts=True)
        sizes = pass_sizes(max(self._rollouts, default=0) + 1)
        judged = [column for column in reversed(self._columns) if column.is_right_or_wrong]
        first = {column.scored.pipeline.name: column for column in judged}
        return {key: figure for one in reversed(first.values()) for key, figure in one.passes(places, sizes)}

    def _places(self, clusters: Clusters | None, *, has_rollouts: bool) -> _Places:
        samples = np.array(self._samples, dtype=np.int64)
        rollouts = np.array(self._rollouts, dtype=np.int64) if has_rollouts else None
        return _Places(samples, rollouts, clusters(samples) if clusters else None)


def cluster_numbers(task: PlannedTask, clusters: Mapping[int, str]) -> Clusters | None:
    """Numbers the cluster of each sample; a sample without one is a cluster of its own."""
    if not clusters:
        return None
    numbers = np.arange(task.sample_count, dtype=np.int64)
    first_of: dict[str, int] = {}
    for position, cluster in clusters.items():
        numbers[position] = first_of.setdefault(cluster, position)
    return lambda samples: numbers[samples - task.first_sample]
