"""Pairs of right and wrong answers as they truly differ, and how often a test of them finds it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrc

from services.results.statistics.columns import Array, Numbers

# Where more pairs are expected to differ, the power is that of the normal approximation to half a percent.
MAX_COUNTED = 200
# Numbers further from their mean have a chance below 1e-6 together.
_DEVIATIONS = 5


@dataclass(frozen=True, slots=True)
class DifferingPairs:
    """`differing`: the share of `pairs` that only one run has right. `difference`: first less second."""

    pairs: int
    differing: float
    difference: float

    @property
    def is_counted(self) -> bool:
        return self.pairs * self.differing <= MAX_COUNTED

    def power(self, least_won: Numbers) -> float:
        """The chance that the first run alone is right on `least_won` or more of as many pairs as differ.

        `least_won`: by number of differing pairs, as `least_won` gives it. This is the exact unconditional
        power of a test that is carried out given the number of differing pairs (Duffy 1984, "Asymptotic and
        exact power for the McNemar test and its analogue with R controls per case").
        """
        expected = self.pairs * self.differing
        half = _DEVIATIONS * (math.sqrt(expected) + 2)
        low, high = max(0, math.floor(expected - half)), min(len(least_won) - 1, math.ceil(expected + half))
        counts = np.arange(low, high + 1)
        below = bdtr(np.arange(low - 1, high + 1, dtype=np.float64), self.pairs, self.differing)
        # Of -1 it is not defined.
        shares = np.diff(np.nan_to_num(below))
        won = min(1.0, (self.differing + self.difference) / (2 * self.differing))
        # Where more than all would have to be won, nothing is found.
        most_lost = np.minimum(least_won[low : high + 1] - 1, counts).astype(np.float64)
        return float(shares @ bdtrc(most_lost, counts, won))


def least_won(pairs: int, p_value: Callable[[Numbers, Numbers], Array], level: float) -> Numbers:
    """By number of differing pairs, from 0: the fewest that must be won for a p-value of at most `level`.

    One more than all where none would do. `p_value`: of those won and those lost, less the more are won.
    """
    counts = np.arange(min(pairs, 2 * MAX_COUNTED) + 1)
    below, found = np.full_like(counts, -1), counts + 1
    for _ in range(len(counts).bit_length() + 1):
        middle = np.clip((below + found) // 2, 0, counts)
        is_found = p_value(middle, counts - middle) <= level
        found = np.where(is_found, np.minimum(found, middle), found)
        below = np.where(is_found, below, np.maximum(below, middle))
    return found
