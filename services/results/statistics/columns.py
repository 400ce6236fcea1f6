"""The labels or numbers of a task as columns, with what must be known of rollouts and clusters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScoreChunk:
    """What some answers scored, one row each, by sample and rollout.

    `first` by metric, and `second` where it scores a pair; NaN where an answer has no number.
    """

    samples: Numbers
    rollouts: Numbers
    first: Mapping[str, Array]
    second: Mapping[str, Array]


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

    def of_units(self, chosen: Numbers) -> "ResamplingUnits":
        """Some of the units, numbered pattern by pattern."""
        pattern_of = np.searchsorted(np.cumsum(self.sizes), chosen, side="right")
        sizes = np.bincount(pattern_of, minlength=len(self.sizes)).astype(np.int64)
        kept = sizes > 0
        own = np.eye(len(self.sizes)) if self.contributions is None else self.contributions
        return ResamplingUnits(self.gold, self.predicted, own[kept], sizes[kept])


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
        least = int(min(self.gold.min(), self.predicted.min()))
        labels = int(max(self.gold.max(), self.predicted.max())) - least + 1
        cells, cell_of = np.unique(
            (self.gold - least) * labels + (self.predicted - least), return_inverse=True
        )
        gold, predicted = cells // labels + least, cells % labels + least
        if self.samples is None and self.clusters is None:
            return ResamplingUnits(gold, predicted, None, np.bincount(cell_of).astype(np.int64))
        contributions, sizes = self._patterns(cell_of, len(cells))
        return ResamplingUnits(gold, predicted, contributions, sizes)

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

    def of_units(self, chosen: Numbers) -> "NumberColumns":
        """The rows of some units."""
        return self._chosen(np.isin(self.units(), chosen))

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
