"""The scores of one task and metric as columns, with what must be known of rollouts and clusters."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


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
class ScoreColumns:
    """One row per outcome. `samples` and `rollouts`: None with one rollout; `clusters`: None without."""

    scores: Array
    samples: Numbers | None = None
    rollouts: Numbers | None = None
    clusters: Numbers | None = None

    @property
    def count(self) -> int:
        return len(self.scores)

    @property
    def has_rollouts(self) -> bool:
        return self.rollouts is not None and len(np.unique(self.rollouts)) > 1

    def only_numbers(self) -> "ScoreColumns":
        """Without the rows whose score is NaN."""
        is_number = ~np.isnan(self.scores)
        return self if is_number.all() else self._chosen(is_number)

    def sample_means(self) -> SampleMeans:
        if self.samples is None:
            return SampleMeans(self.scores, self.clusters)
        _, first, numbers = np.unique(self.samples, return_index=True, return_inverse=True)
        sums = np.bincount(numbers, weights=self.scores)
        clusters = None if self.clusters is None else self.clusters[first]
        return SampleMeans(sums / np.bincount(numbers), clusters)

    def within_sample_std(self) -> float | None:
        """The standard deviation of a sample's scores over its rollouts, averaged over samples."""
        if self.samples is None:
            return None
        _, numbers, counts = np.unique(self.samples, return_inverse=True, return_counts=True)
        deviations = self.scores - (np.bincount(numbers, weights=self.scores) / counts)[numbers]
        squares = np.bincount(numbers, weights=np.square(deviations))
        has_several = counts > 1
        if not has_several.any():
            return None
        return float(np.sqrt(squares[has_several] / (counts[has_several] - 1)).mean())

    def rollout_means(self) -> Array:
        assert self.rollouts is not None
        _, numbers = np.unique(self.rollouts, return_inverse=True)
        means: Array = np.bincount(numbers, weights=self.scores) / np.bincount(numbers)
        return means

    def _chosen(self, rows: NDArray[np.bool_]) -> "ScoreColumns":
        keys = (self.samples, self.rollouts, self.clusters)
        return ScoreColumns(self.scores[rows], *(None if key is None else key[rows] for key in keys))


@dataclass(frozen=True, slots=True)
class ResamplingUnits:
    """What a bootstrap draws: samples (or clusters), those with equal contributions taken together.

    Cell i of the confusion table is (gold[i], predicted[i]); `contributions[p]` is what a unit of pattern p
    adds to each cell (None: pattern p is one in cell p), and `sizes[p]` how many units have that pattern.
    """

    gold: Numbers
    predicted: Numbers
    contributions: Array | None
    sizes: Numbers

    @property
    def count(self) -> int:
        return int(self.sizes.sum())


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """One row per outcome: the right label and the predicted one (-1: none could be read)."""

    gold: Numbers
    predicted: Numbers
    samples: Numbers | None = None
    rollouts: Numbers | None = None
    clusters: Numbers | None = None

    @property
    def count(self) -> int:
        return len(self.gold)

    @property
    def sample_count(self) -> int:
        return self.count if self.samples is None else len(np.unique(self.samples))

    @property
    def has_rollouts(self) -> bool:
        return self.rollouts is not None and len(np.unique(self.rollouts)) > 1

    def by_rollout(self) -> Iterator["LabelColumns"]:
        """The outcomes of each rollout, as if there were no other."""
        assert self.rollouts is not None
        for rollout in np.unique(self.rollouts):
            chosen = self.rollouts == rollout
            yield LabelColumns(self.gold[chosen], self.predicted[chosen])

    def resampling_units(self) -> ResamplingUnits:
        pairs = np.stack([self.gold, self.predicted], axis=1)
        cells, cell_of = np.unique(pairs, axis=0, return_inverse=True)
        cell_of = cell_of.reshape(-1)
        if self.samples is None and self.clusters is None:
            return ResamplingUnits(cells[:, 0], cells[:, 1], None, np.bincount(cell_of).astype(np.int64))
        contributions, sizes = self._patterns(cell_of, len(cells))
        return ResamplingUnits(cells[:, 0], cells[:, 1], contributions, sizes)

    def _patterns(self, cell_of: Numbers, cell_count: int) -> tuple[Array, Numbers]:
        units = self.samples if self.clusters is None else self.clusters
        assert units is not None
        _, unit_of = np.unique(units, return_inverse=True)
        flat = np.bincount(
            unit_of * cell_count + cell_of,
            weights=_sample_weights(self.samples, self.count),
            minlength=(int(unit_of.max()) + 1) * cell_count,
        )
        patterns, sizes = np.unique(flat.reshape(-1, cell_count), axis=0, return_counts=True)
        return patterns.astype(np.float64), sizes.astype(np.int64)


@dataclass(frozen=True, slots=True)
class NumberColumns:
    """One row per outcome: the right number and the named one (not finite: none could be read)."""

    gold: Array
    predicted: Array
    samples: Numbers | None = None
    rollouts: Numbers | None = None
    clusters: Numbers | None = None

    @property
    def count(self) -> int:
        return len(self.gold)

    @property
    def sample_count(self) -> int:
        return self.count if self.samples is None else len(np.unique(self.samples))

    @property
    def has_rollouts(self) -> bool:
        return self.rollouts is not None and len(np.unique(self.rollouts)) > 1

    def only_read(self) -> "NumberColumns":
        return self._chosen(np.isfinite(self.gold) & np.isfinite(self.predicted))

    def by_rollout(self) -> Iterator["NumberColumns"]:
        """The outcomes of each rollout, as if there were no other."""
        assert self.rollouts is not None
        for rollout in np.unique(self.rollouts):
            chosen = self.rollouts == rollout
            yield NumberColumns(self.gold[chosen], self.predicted[chosen])

    def units(self) -> Numbers:
        """The sample or cluster of each row, numbered from 0: what a bootstrap draws."""
        drawn = self.samples if self.clusters is None else self.clusters
        if drawn is None:
            return np.arange(self.count)
        return np.unique(drawn, return_inverse=True)[1].astype(np.int64)

    def weights(self) -> Array:
        return _sample_weights(self.samples, self.count)

    def _chosen(self, rows: NDArray[np.bool_]) -> "NumberColumns":
        def of(column: Numbers | None) -> Numbers | None:
            return None if column is None else column[rows]

        return NumberColumns(
            self.gold[rows], self.predicted[rows], of(self.samples), of(self.rollouts), of(self.clusters)
        )


def _sample_weights(samples: Numbers | None, count: int) -> Array:
    """The weight of each row: every sample counts once, however many of its rollouts there are."""
    if samples is None:
        return np.ones(count)
    _, numbers = np.unique(samples, return_inverse=True)
    weights: Array = 1.0 / np.bincount(numbers)[numbers]
    return weights
