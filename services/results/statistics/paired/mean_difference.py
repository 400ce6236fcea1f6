"""The difference of two means over paired samples: test, interval, smallest detectable difference."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import bdtr, stdtr

from services.results.statistics.intervals import ROUNDING
from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    PAIRED_PERMUTATION,
    PAIRED_T,
    DifferenceEstimate,
    smallest_detectable,
    t_quantile,
    undefined,
    with_interval,
)
from services.results.statistics.paired.pairs import ScorePairs, UnitSums, unit_sums
from services.results.statistics.paired.permutation_test import SwapUnits, sum_p_value

# Above it the mean of the differences is normal enough for t, which costs nothing.
MAX_PERMUTED_UNITS = 10_000

NO_PAIRS = "no sample has a figure in both runs"
ONE_PAIR = "one sample only: no spread to judge a difference by"
ONE_CLUSTER = "all samples share one passage: no spread to judge a difference by"
NO_SPREAD = "the differences do not vary: no interval"


def difference_of_means(pairs: ScorePairs) -> DifferenceEstimate:
    """Right or wrong: exact McNemar. Else, and where samples share passages, a permutation of samples or of
    passages; above 10,000 of them Student's t."""
    if not pairs.count:
        return observed_means(pairs)
    units = unit_sums(pairs)
    estimate = replace(observed_means(pairs), units=units)
    if units.count < 2:
        return replace(estimate, remark=ONE_PAIR if pairs.count < 2 else ONE_CLUSTER)
    # McNemar takes samples for independent, so clusters go another way.
    if pairs.is_right_or_wrong and pairs.clusters is None:
        return _right_or_wrong(estimate, stderr_of_mean(units))
    return _scored(estimate, units)


def observed_means(pairs: ScorePairs) -> DifferenceEstimate:
    """The means as they are, untested."""
    if not pairs.count:
        return undefined(0, NO_PAIRS)
    first_only, second_only = pairs.only_right() if pairs.is_right_or_wrong else (0, 0)
    return DifferenceEstimate(
        pairs=pairs.count,
        first_mean=pairs.mean_of(pairs.first),
        second_mean=pairs.mean_of(pairs.second),
        difference=pairs.mean_of(pairs.differences),
        clusters=0 if pairs.clusters is None else len(np.unique(pairs.clusters)),
        only_first_right=first_only,
        only_second_right=second_only,
    )


def mcnemar_p_value(only_first_right: int, only_second_right: int) -> float:
    """Exact two-sided McNemar test: the binomial test of the pairs that differ (McNemar 1947); `bdtr` is the
    binomial distribution, a hundred times faster than `binomtest`."""
    fewer, differing = min(only_first_right, only_second_right), only_first_right + only_second_right
    return min(1.0, 2 * float(bdtr(fewer, differing, 0.5)))


def permutation_p_value(units: UnitSums) -> float:
    """Sign-flip test that the differences have no side, in (0, 1]."""
    # Equal sums are one pattern: of right and wrong answers there are two.
    sums, position = np.unique(units.sums, return_inverse=True)
    sizes = np.bincount(position, weights=units.sizes).astype(np.int64)
    return sum_p_value(SwapUnits(sums[:, np.newaxis], sizes))


def t_p_value(units: UnitSums) -> float:
    """Two-sided test that the mean difference is 0, by Student's t over units - 1 degrees of freedom."""
    return float(2 * stdtr(units.count - 1, -abs(_mean(units)) / stderr_of_mean(units)))


def stderr_of_mean(units: UnitSums) -> float:
    """Standard error of the mean difference of a sample; over clusters the cluster-robust one (Miller 2024,
    "Adding error bars to evals", 2.2), with the units / (units - 1) of small numbers; 0 without spread."""
    residuals = units.sums - _mean(units) * units.samples
    squares = float(np.square(residuals) @ units.sizes)
    stderr = math.sqrt(units.count / (units.count - 1) * squares) / units.sample_count
    return stderr if stderr > ROUNDING else 0.0


def adjusted_wald(only_first_right: int, only_second_right: int, pairs: int) -> tuple[float, float]:
    """Centre and standard error of a difference of paired proportions (Bonett & Price 2012, "Adjusted Wald
    confidence interval for a difference of binomial proportions based on paired data").

    One differing pair of each kind is added: the interval keeps 95 % from some ten pairs on, and has a width
    also where no pair differs.
    """
    first, second = (only_first_right + 1) / (pairs + 2), (only_second_right + 1) / (pairs + 2)
    return first - second, math.sqrt((first + second - (first - second) ** 2) / (pairs + 2))


def _right_or_wrong(estimate: DifferenceEstimate, stderr: float) -> DifferenceEstimate:
    differing = estimate.only_first_right, estimate.only_second_right
    centre, adjusted_stderr = adjusted_wald(*differing, estimate.pairs)
    half = t_quantile(math.inf, 0.975) * adjusted_stderr
    return replace(
        estimate,
        stderr=stderr or adjusted_stderr,
        ci_low=max(-1.0, centre - half),
        ci_high=min(1.0, centre + half),
        p_value=mcnemar_p_value(*differing),
        test=EXACT_MCNEMAR,
        smallest_detectable=smallest_detectable(adjusted_stderr, math.inf),
    )


def _scored(estimate: DifferenceEstimate, units: UnitSums) -> DifferenceEstimate:
    stderr = stderr_of_mean(units)
    estimate = with_interval(estimate, stderr, units.count - 1)
    remark = "" if stderr else NO_SPREAD
    if units.count <= MAX_PERMUTED_UNITS:
        p_value = permutation_p_value(units)
        return replace(estimate, p_value=p_value, test=PAIRED_PERMUTATION, remark=remark)
    if stderr:
        return replace(estimate, p_value=t_p_value(units), test=PAIRED_T)
    return replace(estimate, p_value=None if estimate.difference else 1.0, test=PAIRED_T, remark=remark)


def _mean(units: UnitSums) -> float:
    return float(units.sums @ units.sizes) / units.sample_count
