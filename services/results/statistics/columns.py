"""The labels or numbers of a task as columns, with what must be known of rollouts and clusters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
# Numbers of samples, rollouts or clusters.
Keys = NDArray[np.integer[Any]]
# Labels or numbers.
Values = NDArray[np.number[Any]]


@dataclass(frozen=True, slots=True)
class ScoreChunk:
    """Scores of some answers, one row each, by sample and rollout.

    `first` by metric, and `second` where it scores a pair; NaN where an answer has no number.
    """

    samples: Numbers
    rollouts: Numbers
    first: Mapping[str, Array]
    second: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class PairColumns:
    """One row per outcome: the label or number of the target, and the predicted one.

    A label that could not be read is -1, a number is not finite. `samples` and `rollouts`: None with one
    rollout; `clusters`: None without.
    """

    target: Values
    predicted: Values
    samples: Keys | None = None
    rollouts: Keys | None = None
    clusters: Keys | None = None

    @property
    def count(self) -> int:
        return len(self.target)

    @property
    def sample_count(self) -> int:
        return self.count if self.samples is None else _count_of(numbered(self.samples))

    @property
    def unit_count(self) -> int:
        """How many samples or clusters a bootstrap draws from."""
        return _count_of(self.units()) if self.has_units else self.count

    @property
    def has_rollouts(self) -> bool:
        if self.rollouts is None or not len(self.rollouts):
            return False
        return bool(self.rollouts.min() != self.rollouts.max())

    @property
    def has_units(self) -> bool:
        """Some rows belong together."""
        return self.samples is not None or self.clusters is not None

    def only_read(self) -> "PairColumns":
        """The rows of numbers that are finite."""
        is_read = np.isfinite(self.target) & np.isfinite(self.predicted)
        return self if is_read.all() else self._chosen(is_read)

    def by_rollout(self) -> Iterator["PairColumns"]:
        """The outcomes of each rollout, as if there were no other."""
        assert self.rollouts is not None
        for rollout in np.unique(self.rollouts):
            chosen = self.rollouts == rollout
            yield PairColumns(self.target[chosen], self.predicted[chosen])

    def units(self) -> Numbers:
        """The sample or cluster of each row, numbered from 0: what a bootstrap draws."""
        drawn = self.samples if self.clusters is None else self.clusters
        if drawn is None:
            return np.arange(self.count)
        return numbered(drawn)

    def of_units(self, chosen: Numbers) -> "PairColumns":
        """The rows of some units."""
        if not self.has_units:
            return self._chosen(np.sort(chosen))
        is_chosen = np.zeros(self.unit_count, dtype=np.bool_)
        is_chosen[chosen] = True
        return self._chosen(is_chosen[self.units()])

    def weights(self) -> Array:
        """Weight of each row: every sample counts once, however many of its rollouts there are."""
        if self.samples is None:
            return np.ones(self.count)
        numbers = numbered(self.samples)
        # The rollouts of a sample share its weight of 1.
        weights: Array = 1.0 / np.bincount(numbers)[numbers]
        return weights

    def _chosen(self, rows: NDArray[np.bool_] | Numbers) -> "PairColumns":
        keys = (None if key is None else key[rows] for key in (self.samples, self.rollouts, self.clusters))
        return PairColumns(self.target[rows], self.predicted[rows], *keys)


def numbered(keys: Keys) -> Numbers:
    """The keys as numbers from 0, in the order of the keys. Those that are sorted already take no sort."""
    # Rows come from the store by sample, so the sort is for clusters only.
    if (keys[1:] < keys[:-1]).any():
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    is_new = np.zeros(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    return np.cumsum(is_new, dtype=np.int64)


def _count_of(numbers: Numbers) -> int:
    """How many kinds there are of numbers from 0."""
    return int(numbers.max(initial=-1)) + 1
