"""The scores of a task by sample, however many rollouts each has: means, pass@k, pass^k, majority votes."""

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from services.results.statistics.columns import Array, Keys, Numbers


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """One value per sample. `clusters` numbers what each belongs to; None where every sample is its own."""

    values: Array
    clusters: Numbers | None

    @property
    def has_clusters(self) -> bool:
        return self.clusters is not None

    def mean(self) -> float:
        """Equal values have exactly this mean, which their sum may miss by a rounding error."""
        return float(np.clip(self.values.mean(), self.values.min(), self.values.max()))

    def cluster_sums_around(self, mean: float) -> Array:
        deviations = self.values - mean
        if self.clusters is None:
            return deviations
        return np.bincount(self._cluster_numbers(), weights=deviations).astype(np.float64)

    def cluster_sizes(self) -> Array:
        if self.clusters is None:
            return np.ones_like(self.values)
        return np.bincount(self._cluster_numbers()).astype(np.float64)

    def intraclass_correlation(self) -> float:
        """How alike samples of a cluster are, 0 to 1: from the mean squares between and within clusters."""
        sizes, mean = self.cluster_sizes(), self.mean()
        total, clusters = len(self.values), len(sizes)
        if not 1 < clusters < total:
            return 0.0
        of_means = np.square(self.cluster_sums_around(mean)) / sizes
        between = of_means.sum() / (clusters - 1)
        within = (np.square(self.values - mean).sum() - of_means.sum()) / (total - clusters)
        typical_size = (total - np.square(sizes).sum() / total) / (clusters - 1)
        spread = between + (typical_size - 1) * within
        return float(np.clip((between - within) / spread, 0.0, 1.0)) if spread > 0 else 0.0

    def _cluster_numbers(self) -> Numbers:
        assert self.clusters is not None
        numbers: Numbers = np.unique(self.clusters, return_inverse=True)[1]
        return numbers


@dataclass(frozen=True, slots=True)
class SampleScores:
    """`answers[i]` of a sample have the mean `samples.values[i]`.

    `rollout_means`: of each rollout that has scores. `within_std`: the standard deviation among the rollouts
    of one sample, averaged over samples, where any has several. `is_whole`: all scores are 0 or 1.
    """

    samples: SampleMeans
    answers: Numbers
    rollout_means: Array
    within_std: float | None
    is_whole: bool

    @property
    def count(self) -> int:
        return int(self.answers.sum())

    @property
    def has_rollouts(self) -> bool:
        return len(self.rollout_means) > 1


@dataclass(slots=True)
class ScoreSums:
    """Adds up scores by sample, 20 bytes for each: the answers to a sample must come together."""

    # `array` grows in place; a numpy array would be copied at each chunk.
    samples: "array[int]" = field(default_factory=lambda: array("q"))
    means: "array[float]" = field(default_factory=lambda: array("d"))
    answers: "array[int]" = field(default_factory=lambda: array("i"))
    rollout_sums: Array = field(default_factory=lambda: np.zeros(0))
    rollout_counts: Array = field(default_factory=lambda: np.zeros(0))
    spread: float = 0.0
    spread_samples: int = 0
    is_whole: bool = True

    @np.errstate(all="ignore")
    def add(self, samples: Numbers, rollouts: Numbers, scores: Array) -> None:
        """One row per answer, by sample. NaN is not a score; what overflows makes the figure undefined."""
        is_number = ~np.isnan(scores)
        if not is_number.all():
            samples, rollouts, scores = samples[is_number], rollouts[is_number], scores[is_number]
        if not len(scores):
            return
        # The first row counts as new: the number before it is another one.
        starts = np.flatnonzero(np.diff(samples, prepend=samples[0] - 1))
        answers = np.diff(starts, append=len(scores))
        means = np.add.reduceat(scores, starts) / answers
        self.samples.frombytes(samples[starts].astype(np.int64).tobytes())
        self.means.frombytes(means.tobytes())
        self.answers.frombytes(answers.astype(np.int32).tobytes())
        self.is_whole = self.is_whole and bool(np.isin(scores, (0.0, 1.0)).all())
        self._add_rollouts(rollouts, scores)
        self._add_spread(scores - np.repeat(means, answers), starts, answers)

    def scores(self, clusters: Numbers | None) -> SampleScores:
        """`clusters`: of each of the samples."""
        has_scores = self.rollout_counts > 0
        return SampleScores(
            SampleMeans(np.array(self.means), clusters),
            np.array(self.answers, dtype=np.int64),
            self.rollout_sums[has_scores] / self.rollout_counts[has_scores],
            self.spread / self.spread_samples if self.spread_samples else None,
            self.is_whole,
        )

    def _add_rollouts(self, rollouts: Numbers, scores: Array) -> None:
        length = max(len(self.rollout_sums), int(rollouts.max()) + 1)
        more = length - len(self.rollout_sums)
        self.rollout_sums = np.pad(self.rollout_sums, (0, more)) + np.bincount(rollouts, scores, length)
        self.rollout_counts = np.pad(self.rollout_counts, (0, more)) + np.bincount(rollouts, minlength=length)

    def _add_spread(self, deviations: Array, starts: Numbers, answers: Numbers) -> None:
        has_several = answers > 1
        squares = np.add.reduceat(np.square(deviations), starts)[has_several]
        self.spread += float(np.sqrt(squares / (answers[has_several] - 1)).sum())
        self.spread_samples += int(has_several.sum())


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """One row per outcome. `samples` and `rollouts`: None with one rollout; `clusters`: None without."""

    scores: Array
    samples: Numbers | None = None
    rollouts: Numbers | None = None
    clusters: Numbers | None = None

    def by_sample(self) -> SampleScores:
        sums, rows = ScoreSums(), len(self.scores)
        samples = np.arange(rows) if self.samples is None else self.samples
        rollouts = np.zeros(rows, dtype=np.int64) if self.rollouts is None else self.rollouts
        order = np.argsort(samples, kind="stable")
        sums.add(samples[order], rollouts[order], self.scores[order])
        if self.clusters is None:
            return sums.scores(None)
        ordered, wanted = samples[order], np.array(sums.samples, dtype=np.int64)
        return sums.scores(self.clusters[order][np.searchsorted(ordered, wanted)])


def rows_of_majority(samples: Keys, rollouts: Keys, votes: Array) -> Numbers:
    """A row of each sample whose vote most of its rollouts gave; of equals, the vote that was given first.

    NaN is not a vote: it is chosen only where no rollout of the sample has a vote.
    """
    # Infinity is equal to itself and sorts last; NaN does neither.
    votes = np.nan_to_num(votes, nan=np.inf)
    rows = np.lexsort((rollouts, votes, samples))
    is_first = np.ones(len(rows), dtype=np.bool_)
    is_first[1:] = (np.diff(samples[rows]) != 0) | (votes[rows][1:] != votes[rows][:-1])
    starts = np.flatnonzero(is_first)
    times, first = np.diff(starts, append=len(rows)), rows[starts]
    times = np.where(np.isinf(votes[first]), 0, times)
    best_first = np.lexsort((rollouts[first], -times, samples[first]))
    _, winners = np.unique(samples[first][best_first], return_index=True)
    chosen: Numbers = first[best_first[winners]]
    return chosen


def pass_sizes(rollouts: int) -> list[int]:
    """1, the powers of two up to the rollouts, and the rollouts."""
    powers = [2**power for power in range(rollouts.bit_length())]
    return sorted({*powers, rollouts})


def pass_at(k: int, scores: SampleScores) -> SampleScores:
    """pass@k, the chance that one of k answers is right: the unbiased estimate 1 − C(n−c, k) / C(n, k) of a
    sample with c right answers of n (Chen et al. 2021, "Evaluating large language models trained on code").

    Scores are 0 or 1. Samples with fewer than k answers allow no estimate and are left out.
    """
    return _of_draws(k, scores, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all(k: int, scores: SampleScores) -> SampleScores:
    """pass^k, the chance that all of k answers are right: C(c, k) / C(n, k) of each sample (Yao et al. 2024,
    "τ-bench"). As `pass_at` otherwise."""
    return _of_draws(k, scores, lambda n, c: math.comb(c, k) / math.comb(n, k))


def _of_draws(k: int, scores: SampleScores, chance: Callable[[int, int], float]) -> SampleScores:
    """`chance`: of k answers that are drawn without replacement from n, of which c are right."""
    if k == 1:
        return scores
    is_enough = scores.answers >= k
    answers, samples = scores.answers[is_enough], scores.samples
    right = np.rint(samples.values[is_enough] * answers).astype(np.int64)
    clusters = None if samples.clusters is None else samples.clusters[is_enough]
    kinds, kind_of = np.unique(np.stack([answers, right], axis=1), axis=0, return_inverse=True)
    # Python's whole numbers: C(100, 50) is far beyond what 64 bits hold.
    by_kind = np.array([chance(int(n), int(c)) for n, c in kinds])
    estimates = by_kind[kind_of.reshape(-1)] if len(kinds) else np.empty(0)
    is_whole = bool(np.isin(estimates, (0.0, 1.0)).all())
    return SampleScores(SampleMeans(estimates, clusters), np.ones_like(answers), np.zeros(0), None, is_whole)
