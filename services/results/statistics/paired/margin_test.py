"""One-sided tests of a paired difference against a margin, and the limits that they give.

Each test has the p-value of a true difference of at most a bound (`p_above`), the bound that has a p-value
(`lower_limit`), how far above a bound a true difference is found above it with a power of 80 %
(`decided_distance`; None: unknown), how many times as many pairs find a difference of 0 above a negative
bound with that power (`times_needed`; None: unknown), and itself for the negative difference (`reversed`).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    POWER,
    DifferenceEstimate,
    t_quantile,
)
from services.results.statistics.paired.differing_pairs import DifferingPairs, least_won

# A difference of shares lies between; at the ends themselves it has no error.
_NEAR_ONE = 1 - 1e-9
_PRECISION = 1e-15
_DISTANCE_PRECISION = 1e-5

# Of one outcome, or of several.
Counts = TypeVar("Counts", float, Array)


@dataclass(frozen=True, slots=True)
class ScoreTest:
    """Of shares of right answers: the score test of Tango 1998, "Equivalence test and confidence interval for
    the difference in proportions for the paired-sample design".

    Its error is that of the bound, not of the observed pairs: a few pairs that differ by chance all to one
    side have too small an error of their own, above all at the strict levels of a correction.
    """

    only_first_right: int
    only_second_right: int
    pairs: int

    def p_above(self, bound: float) -> float:
        observed = self.only_first_right - self.only_second_right - self.pairs * bound
        share = _only_second_share(self.only_first_right, self.only_second_right, self.pairs, bound)
        variance = self.pairs * (2 * share + bound * (1 - bound))
        return float(ndtr(-observed / math.sqrt(variance))) if variance > 0 else float(observed <= 0)

    def lower_limit(self, level: float) -> float:
        if self.p_above(-_NEAR_ONE) >= level:
            return -1.0
        if self.p_above(_NEAR_ONE) <= level:
            return 1.0
        # By bisection: importing scipy.optimize would be a sixth of the start of results.
        below, above = -_NEAR_ONE, _NEAR_ONE
        while above - below > _PRECISION:
            middle = (below + above) / 2
            below, above = (middle, above) if self.p_above(middle) < level else (below, middle)
        return (below + above) / 2

    def decided_distance(self, bound: float, level: float) -> float | None:
        """As many pairs differ as in those seen, or as the difference itself needs."""
        return _decided_distance(self.pairs, self._differing, bound, level)

    def times_needed(self, bound: float, level: float) -> float:
        """The sample size of the score test (Nam 1997, "Establishing equivalence of two treatments and sample
        size requirements in matched-pairs design")."""
        differing = DifferingPairs(self.pairs, self._differing, 0.0)
        errors = -ndtri(level) * _null_error(differing, bound) + ndtri(POWER) * math.sqrt(self._differing)
        return float((errors / bound) ** 2 / self.pairs)

    @property
    def reversed(self) -> "ScoreTest":
        return ScoreTest(self.only_second_right, self.only_first_right, self.pairs)

    @property
    def _differing(self) -> float:
        return (self.only_first_right + self.only_second_right) / self.pairs


def _only_second_share(first: Counts, second: Counts, pairs: int, bound: float) -> Counts:
    """Most likely share of pairs that only the second run has right, if the difference is `bound`."""
    linear = (2 * pairs - first + second) * bound - first - second
    constant = -second * bound * (1 - bound)
    # Rounding may leave less than 0.
    root: Counts = abs(linear**2 - 8 * pairs * constant) ** 0.5
    return (root - linear) / (4 * pairs)


def _score_p_values(first: Numbers, second: Numbers, pairs: int, bound: float) -> Array:
    """As `ScoreTest.p_above`."""
    observed = first - second - pairs * bound
    share = _only_second_share(first.astype(np.float64), second.astype(np.float64), pairs, bound)
    variance = pairs * (2 * share + bound * (1 - bound))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, ndtr(-observed / np.sqrt(variance)), observed <= 0)


# Tasks of one size, and gates that are shown again, have the same.
@lru_cache(maxsize=1_000)
def _decided_distance(pairs: int, differing: float, bound: float, level: float) -> float | None:
    least = least_won(pairs, lambda won, lost: _score_p_values(won, lost, pairs, bound), level)

    def power(distance: float) -> float:
        difference = bound + distance
        true = DifferingPairs(pairs, max(differing, abs(difference)), difference)
        return true.power(least) if true.is_counted else _normal_power(true, bound, level)

    below, above = 0.0, _NEAR_ONE - bound
    if power(above) < POWER:
        return None
    while above - below > _DISTANCE_PRECISION:
        middle = (below + above) / 2
        below, above = (middle, above) if power(middle) < POWER else (below, middle)
    return above


def _normal_power(true: DifferingPairs, bound: float, level: float) -> float:
    distance = math.sqrt(true.pairs) * (true.difference - bound)
    error = math.sqrt(max(true.differing - true.difference**2, _PRECISION))
    return float(ndtr((distance + ndtri(level) * _null_error(true, bound)) / error))


def _null_error(true: DifferingPairs, bound: float) -> float:
    """What the score test takes for the error of one pair, times the root of its pairs."""
    first, second = ((true.differing + side * true.difference) / 2 for side in (1, -1))
    share = _only_second_share(first, second, 1, bound)
    return math.sqrt(max(0.0, 2 * share + bound * (1 - bound)))


@dataclass(frozen=True, slots=True)
class StudentTest:
    """Of any other figure: the difference over its standard error; normal with infinite degrees."""

    difference: float
    stderr: float
    degrees_of_freedom: float

    def p_above(self, bound: float) -> float:
        deviation = (bound - self.difference) / self.stderr
        if math.isinf(self.degrees_of_freedom):
            return float(ndtr(deviation))
        return float(stdtr(self.degrees_of_freedom, deviation))

    def lower_limit(self, level: float) -> float:
        return self.difference - t_quantile(self.degrees_of_freedom, 1 - level) * self.stderr

    def decided_distance(self, bound: float, level: float) -> float:  # noqa: ARG002  # as that of the others
        """As the smallest detectable difference, one-sided."""
        quantiles = (t_quantile(self.degrees_of_freedom, share) for share in (1 - level, POWER))
        return sum(quantiles) * self.stderr

    def times_needed(self, bound: float, level: float) -> float:
        return (self.decided_distance(bound, level) / bound) ** 2

    @property
    def reversed(self) -> "StudentTest":
        return StudentTest(-self.difference, self.stderr, self.degrees_of_freedom)


@dataclass(frozen=True, slots=True)
class NoDifferenceTest:
    """Of units (samples, or passages) none of which differs, in scores that can differ by `width` at most.

    A mean difference of −b needs a share of b / width of units that differ; that none of n is among those
    drawn has the probability (1 − b / width)ⁿ.
    """

    units: int
    width: float

    def p_above(self, bound: float) -> float:
        share = min(1.0, max(0.0, 1 + bound / self.width))
        return float(share**self.units)

    def lower_limit(self, level: float) -> float:
        return -self.width * (1 - float(level ** (1 / self.units)))

    def decided_distance(self, bound: float, level: float) -> None:  # noqa: ARG002  # as that of the others
        return None

    def times_needed(self, bound: float, level: float) -> None:  # noqa: ARG002  # as that of the others
        return None

    @property
    def reversed(self) -> "NoDifferenceTest":
        return self


MarginTest = ScoreTest | StudentTest | NoDifferenceTest


def margin_test_of(estimate: DifferenceEstimate, width: float | None) -> MarginTest | None:
    """`width`: the largest difference of two scores; None where they have no bounds. None without a test."""
    if estimate.difference is None:
        return None
    if estimate.test == EXACT_MCNEMAR:
        return ScoreTest(estimate.only_first_right, estimate.only_second_right, estimate.pairs)
    if estimate.stderr and estimate.degrees_of_freedom:
        return StudentTest(estimate.difference, estimate.stderr, estimate.degrees_of_freedom)
    units = estimate.clusters or estimate.pairs
    if estimate.difference == 0 and width and units > 1:
        return NoDifferenceTest(units, width)
    return None
