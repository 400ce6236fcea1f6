"""Scores of two runs on the samples of a task that both have; like pairs are counted together."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from proctor.values.metrics.names import is_right_or_wrong
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.scoring.score import ScoreValue, number_of_score, sample_score
from services.results.statistics.columns import Array, Numbers
from services.results.statistics.paired.pairs import LabelPairs, Predictions, ScorePairs
from services.results.statistics.paired.rollout_noise import RolloutNoise, rollout_noise


@dataclass(frozen=True, slots=True)
class SampleAnswers:
    """Scores of a run's answers to a sample, by rollout; nothing where the metric read nothing in them.

    A sample has failed when the machinery brought no answer to it at all.
    """

    scores: tuple[ScoreValue, ...] = ()
    unparsed: int = 0
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class PairGroup:
    """`count` samples with the same answers in both runs; `cluster` is empty where they share no passage."""

    first: SampleAnswers
    second: SampleAnswers
    count: int
    cluster: str = ""

    @property
    def is_answered(self) -> bool:
        return not (self.first.is_failed or self.second.is_failed)

    @property
    def has_figures(self) -> bool:
        return self.is_answered and bool(self.first.scores) and bool(self.second.scores)

    @property
    def is_parsed(self) -> bool:
        return not (self.first.unparsed or self.second.unparsed)


@dataclass(frozen=True, slots=True)
class PairTally:
    """Samples left out because a run failed on them, and unparsed answers among those that both answered."""

    first_failed: int = 0
    second_failed: int = 0
    first_unparsed: int = 0
    second_unparsed: int = 0


def tally_of(groups: Sequence[PairGroup]) -> PairTally:
    answered = [group for group in groups if group.is_answered]
    return PairTally(
        sum(group.count for group in groups if group.first.is_failed),
        sum(group.count for group in groups if group.second.is_failed),
        sum(group.first.unparsed * group.count for group in answered),
        sum(group.second.unparsed * group.count for group in answered),
    )


def sum_of(tallies: Sequence[PairTally]) -> PairTally:
    return PairTally(*(sum(column) for column in zip(*map(astuple, tallies), strict=True)))


def score_pairs_of(groups: Sequence[PairGroup], scored: ScoredMetric) -> ScorePairs:
    """Rollouts averaged, or voted over, by sample."""
    units, pipeline = _units_of(groups), scored.pipeline
    return ScorePairs(
        np.array(
            [sample_score(group.first.scores, pipeline.vote) for group in units.groups],
            dtype=np.float64,
        ),
        np.array(
            [sample_score(group.second.scores, pipeline.vote) for group in units.groups],
            dtype=np.float64,
        ),
        units.counts,
        units.clusters,
        is_right_or_wrong(scored.metric.name),
    )


def rollout_noise_of(groups: Sequence[PairGroup], scored: ScoredMetric) -> RolloutNoise | None:
    """None of majority votes too: one score of a sample has no spread."""
    if scored.pipeline.is_majority:
        return None
    first, second = (
        [[number_of_score(score) for score in run.scores] for run in runs] for runs in _runs(groups)
    )
    return rollout_noise(first, second, np.array([group.count for group in groups], dtype=np.int64))


def _runs(groups: Sequence[PairGroup]) -> tuple[list[SampleAnswers], list[SampleAnswers]]:
    return [group.first for group in groups], [group.second for group in groups]


def label_pairs_of(groups: Sequence[PairGroup]) -> LabelPairs:
    """Every rollout a prediction, those of a sample counting as one sample."""
    units = _units_of(groups)
    pairs = int(units.counts.sum())
    if units.clusters is None:
        indexes, sizes, weights = np.arange(len(units.groups)), units.counts, np.ones(len(units.groups))
    else:
        indexes, weights = units.clusters, units.counts.astype(np.float64)
        sizes = np.ones(int(indexes.max(initial=-1)) + 1, dtype=np.int64)
    first = _predictions([group.first.scores for group in units.groups], indexes, weights)
    second = _predictions([group.second.scores for group in units.groups], indexes, weights)
    return LabelPairs(first, second, sizes, pairs, 0 if units.clusters is None else len(sizes))


@dataclass(frozen=True, slots=True)
class _Units:
    """`clusters[i]` numbers the cluster of group i from 0; None where nothing is shared."""

    groups: Sequence[PairGroup]
    counts: Numbers
    clusters: Numbers | None = None


def _units_of(groups: Sequence[PairGroup]) -> _Units:
    """A sample without passage among samples with one is a cluster of its own."""
    if not any(group.cluster for group in groups):
        return _Units(groups, np.array([group.count for group in groups], dtype=np.int64))
    # Each is a cluster of its own, so the samples of a group cannot be counted together.
    alone = [group for group in groups if not group.cluster for _ in range(group.count)]
    shared = [group for group in groups if group.cluster]
    numbers: dict[str, int] = {}
    indexes = [numbers.setdefault(group.cluster, len(numbers)) for group in shared]
    counts = [group.count for group in shared] + [1] * len(alone)
    clusters = indexes + list(range(len(numbers), len(numbers) + len(alone)))
    return _Units([*shared, *alone], np.array(counts, dtype=np.int64), np.array(clusters, dtype=np.int64))


def _predictions(scores: Sequence[Sequence[ScoreValue]], indexes: Numbers, weights: Array) -> Predictions:
    rollouts = np.array([len(values) for values in scores], dtype=np.int64)
    rows = np.array([value for values in scores for value in values], dtype=np.float64).reshape(-1, 2)
    shared = np.repeat(weights / np.maximum(rollouts, 1), rollouts)
    return Predictions(np.repeat(indexes, rollouts), rows[:, 0], rows[:, 1], shared)
