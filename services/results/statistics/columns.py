"""The labels or numbers of a task as columns, with what must be known of rollouts and clusters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
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
    """One row per outcome: the right label or number, and the predicted one.

    A label that could not be read is -1, a number is not finite. `samples` and `rollouts`: None with one
    rollout; `clusters`: None without.
    """

    gold: Values
    predicted: Values
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

    @property
    def has_units(self) -> bool:
        """Some rows belong together."""
        return self.samples is not None or self.clusters is not None

    def only_read(self) -> "PairColumns":
        """The rows of numbers that are finite."""
        return self._chosen(np.isfinite(self.gold) & np.isfinite(self.predicted))

    def by_rollout(self) -> Iterator["PairColumns"]:
        """The outcomes of each rollout, as if there were no other."""
        assert self.rollouts is not None
        for rollout in np.unique(self.rollouts):
            chosen = self.rollouts == rollout
            yield PairColumns(self.gold[chosen], self.predicted[chosen])

    def units(self) -> Numbers:
        """The sample or cluster of each row, numbered from 0: what a bootstrap draws."""
        drawn = self.samples if self.clusters is None else self.clusters
        if drawn is None:
            return np.arange(self.count)
        return np.unique(drawn, return_inverse=True)[1].astype(np.int64)

    def of_units(self, chosen: Numbers) -> "PairColumns":
        """The rows of some units."""
        return self._chosen(np.isin(self.units(), chosen))

    def weights(self) -> Array:
        """Weight of each row: every sample counts once, however many of its rollouts there are."""
        if self.samples is None:
            return np.ones(self.count)
        _, numbers = np.unique(self.samples, return_inverse=True)
        weights: Array = 1.0 / np.bincount(numbers)[numbers]
        return weights

    def _chosen(self, rows: NDArray[np.bool_]) -> "PairColumns":
        keys = (None if key is None else key[rows] for key in (self.samples, self.rollouts, self.clusters))
        return PairColumns(self.gold[rows], self.predicted[rows], *keys)
