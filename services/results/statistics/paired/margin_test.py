"""One-sided tests of a paired difference against a margin, and the limits that they give.

Each test has the p-value of a true difference of at most a bound (`p_above`), the bound that has a p-value
(`lower_limit`), how far from a bound a true difference is found above it with a power of 80 %
(`decided_distance`; None: unknown), and itself for the negative difference (`reversed`).
"""

import math
from dataclasses import dataclass

from scipy.special import ndtr, stdtr

from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    POWER,
    DifferenceEstimate,
    t_quantile,
)
from services.results.statistics.paired.mean_difference import adjusted_wald

# A difference of shares lies between; at the ends themselves it has no error.
_NEAR_ONE = 1 - 1e-9
_PRECISION = 1e-15


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
        variance = self.pairs * (2 * self._only_second_share(bound) + bound * (1 - bound))
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

    def decided_distance(self, level: float) -> float:
        _, stderr = adjusted_wald(self.only_first_right, self.only_second_right, self.pairs)
        return _distance(stderr, math.inf, level)

    @property
    def reversed(self) -> "ScoreTest":
        return ScoreTest(self.only_second_right, self.only_first_right, self.pairs)

    def _only_second_share(self, bound: float) -> float:
        """Most likely share of pairs that only the second run has right, if the difference is `bound`."""
        first, second = self.only_first_right, self.only_second_right
        linear = (2 * self.pairs - first + second) * bound - first - second
        constant = -second * bound * (1 - bound)
        root = math.sqrt(max(0.0, linear**2 - 8 * self.pairs * constant))
        return (root - linear) / (4 * self.pairs)


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

    def decided_distance(self, level: float) -> float:
        return _distance(self.stderr, self.degrees_of_freedom, level)

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

    def decided_distance(self, level: float) -> None:  # noqa: ARG002  # as that of the others
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


def _distance(stderr: float, degrees_of_freedom: float, level: float) -> float:
    """As the smallest detectable difference, one-sided."""
    return (t_quantile(degrees_of_freedom, 1 - level) + t_quantile(degrees_of_freedom, POWER)) * stderr
