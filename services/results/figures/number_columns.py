"""Pairs of an expected and a named number as columns, for figures that correlate them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.results.figures.score_columns import Array, Numbers


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
        """Every sample counts once, however many of its rollouts there are."""
        if self.samples is None:
            return np.ones(self.count)
        _, numbers = np.unique(self.samples, return_inverse=True)
        weights: Array = 1.0 / np.bincount(numbers)[numbers]
        return weights

    def _chosen(self, rows: NDArray[np.bool_]) -> "NumberColumns":
        def of(column: Numbers | None) -> Numbers | None:
            return None if column is None else column[rows]

        return NumberColumns(
            self.gold[rows], self.predicted[rows], of(self.samples), of(self.rollouts), of(self.clusters)
        )
