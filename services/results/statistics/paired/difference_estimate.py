"""The estimated difference of two runs in one metric, and Holm's correction over many tests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from proctor.values.comparison import Verdict
from services.results.statistics.paired.pairs import UnitSums
from services.results.statistics.paired.rollout_noise import RolloutNoise

# Both are the usual ones (Cohen 1988): a false finding in 20, and one in five missed.
LEVEL = 0.05
POWER = 0.8

EXACT_MCNEMAR = "exact McNemar"
PAIRED_PERMUTATION = "paired permutation"
PAIRED_T = "paired t (normal approximation)"
STRATIFIED_PERMUTATION = "stratified permutation"
STRATIFIED_T = "stratified t"


@dataclass(frozen=True, slots=True)
class DifferenceEstimate:
    """First minus second over the pairs; None where undefined. `clusters` is 0 where samples share nothing.

    `smallest_detectable`: the true difference that as many pairs with the same spread show at the level of
    5 % (two-sided) in 80 % of repetitions. `degrees_of_freedom`: of the standard error; infinite for a normal
    one. `units`: what the difference is the mean of, where it is a mean. `noise`: what rollouts alone bring
    to the standard error; None where a run has one rollout, and of figures that are no means.
    """

    pairs: int = 0
    first_mean: float | None = None
    second_mean: float | None = None
    difference: float | None = None
    stderr: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    test: str = ""
    clusters: int = 0
    smallest_detectable: float | None = None
    only_first_right: int = 0
    only_second_right: int = 0
    remark: str = ""
    degrees_of_freedom: float | None = None
    units: UnitSums | None = field(default=None, compare=False, repr=False)
    noise: RolloutNoise | None = None

    @property
    def noise_floor(self) -> float | None:
        """What a difference of two such runs of one model stays below in 95 % of repetitions."""
        return None if self.noise is None else t_quantile(math.inf, 1 - LEVEL / 2) * self.noise.stderr


def undefined(pairs: int, remark: str) -> DifferenceEstimate:
    """No figure, and why."""
    return DifferenceEstimate(pairs=pairs, remark=remark)


def with_interval(
    estimate: DifferenceEstimate, stderr: float, degrees_of_freedom: float
) -> DifferenceEstimate:
    """Adds the 95 % interval of Student's t (normal with infinite degrees), and what could be detected.

    Without any spread both stay undefined: an interval of no width would claim more than the pairs show.
    """
    if stderr <= 0.0 or estimate.difference is None:
        return estimate
    half = t_quantile(degrees_of_freedom, 1 - LEVEL / 2) * stderr
    return replace(
        estimate,
        stderr=stderr,
        ci_low=estimate.difference - half,
        ci_high=estimate.difference + half,
        smallest_detectable=smallest_detectable(stderr, degrees_of_freedom),
        degrees_of_freedom=degrees_of_freedom,
    )


def smallest_detectable(stderr: float, degrees_of_freedom: float) -> float:
    """(t(0.975) + t(0.8)) × standard error of the difference: the formula for sample sizes turned round
    (Chow, Shao & Wang 2008, "Sample size calculations in clinical research", 3.1).

    Assumes that as many pairs come again, and with the spread that was observed.
    """
    return (t_quantile(degrees_of_freedom, 1 - LEVEL / 2) + t_quantile(degrees_of_freedom, POWER)) * stderr


def t_quantile(degrees_of_freedom: float, share: float) -> float:
    return float(ndtri(share) if math.isinf(degrees_of_freedom) else stdtrit(degrees_of_freedom, share))


def verdict_of(
    estimate: DifferenceEstimate, adjusted_p_value: float | None, *, less_is_better: bool = False
) -> Verdict:
    """The verdict of an estimate after its p-value was corrected."""
    if adjusted_p_value is None or estimate.difference is None:
        return Verdict.UNDEFINED
    # A difference of 0 names no better run, whatever its p-value.
    if adjusted_p_value > LEVEL or estimate.difference == 0.0:
        return Verdict.NOT_SHOWN
    is_first = (estimate.difference > 0.0) != less_is_better
    return Verdict.FIRST_BETTER if is_first else Verdict.SECOND_BETTER


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in the order given; tests that gave none take no part (Holm 1979, "A simple
    sequentially rejective multiple test procedure").

    They hold whatever the tests have in common (pairs of runs share runs, a benchmark shares its tasks): the
    chance of any false finding among all of them stays below the level. Equal to statsmodels'
    `multipletests`, which cannot be used here: it collects the garbage of the whole process at each call.
    """
    known = np.array([p_value for p_value in p_values if p_value is not None], dtype=np.float64)
    order = np.argsort(known)
    # The smallest p-value by the number of tests, the next by one less, and so on.
    steps = known[order] * np.arange(len(known), 0, -1)
    adjusted = np.empty_like(known)
    # A later step cannot be less certain than one before it.
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    ascending = iter(adjusted.tolist())
    return [None if p_value is None else next(ascending) for p_value in p_values]
