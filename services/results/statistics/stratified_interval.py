"""The 95 % interval of a weighted mean of the figures of several tasks, which are drawn independently."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from services.results.statistics.figure import Figure
from services.results.statistics.intervals import (
    NORMAL_975,
    WILSON,
    Interval,
    student_t_interval,
    wilson_interval,
)

MOVER = "mover"

# Samples scored as the whole that are added to each task, so that no task counts as without error.
PSEUDO_COUNT = 2


@dataclass(frozen=True, slots=True)
class Stratum:
    """The mean and interval of a task, and its weight: those of all tasks sum to 1."""

    mean: float
    stderr: float
    interval: Interval
    weight: float

    @property
    def is_share(self) -> bool:
        return self.interval.method == WILSON

    @property
    def degrees_of_freedom(self) -> float:
        known = self.interval.degrees_of_freedom
        return math.inf if known is None else known

    @property
    def quantile(self) -> float:
        """The multiplier of the standard error."""
        known = self.interval.degrees_of_freedom
        return NORMAL_975 if known is None else float(stdtrit(known, 0.975))


def stratum(figure: Figure, weight: float) -> Stratum | None:
    """None where the figure has no interval."""
    if figure.mean is None or figure.stderr is None or figure.ci_low is None or figure.ci_high is None:
        return None
    interval = Interval(figure.ci_low, figure.ci_high, figure.interval_method)
    if figure.degrees_of_freedom is not None:
        # Computed anew, because the ends that the figure shows are cut at 0 and 1.
        interval = student_t_interval(figure.mean, figure.stderr, figure.degrees_of_freedom) or interval
    return Stratum(figure.mean, figure.stderr, interval, weight)


def stratified_interval(strata: Sequence[Stratum]) -> Interval:
    """Shares of right answers are taken together as one; what is not a share is added to them by its squares.

    Square and add, MOVER: Zou and Donner 2008, "Construction of confidence limits about effect measures".
    """
    shares = [one for one in strata if one.is_share]
    others = [one for one in strata if not one.is_share]
    if not others:
        return _of_shares(shares)
    reaches = [_reach(one, _student_quantile(others)) for one in others]
    if shares:
        taken_together = _of_shares(shares)
        weight, share = sum(one.weight for one in shares), _mean(shares)
        reaches.append((weight * (share - taken_together.low), weight * (taken_together.high - share)))
    mean = sum(one.weight * one.mean for one in strata)
    below, above = (math.hypot(*side) for side in zip(*reaches, strict=True))
    return Interval(mean - below, mean + above, MOVER)


def _reach(one: Stratum, student_quantile: float) -> tuple[float, float]:
    """How far its interval moves the ends of the whole: below and above the mean."""
    scale = student_quantile / one.quantile if one.interval.degrees_of_freedom is not None else 1.0
    factor = one.weight * scale
    return factor * (one.mean - one.interval.low), factor * (one.interval.high - one.mean)


def _student_quantile(strata: Sequence[Stratum]) -> float:
    """The quantile for the sum of their errors, with Welch's and Satterthwaite's degrees of freedom."""
    largest = max(one.weight * one.stderr for one in strata)
    if largest == 0:
        return NORMAL_975
    variances = [(one.weight * one.stderr / largest) ** 2 for one in strata]
    doubt = sum(variance**2 / one.degrees_of_freedom for one, variance in zip(strata, variances, strict=True))
    return float(stdtrit(sum(variances) ** 2 / doubt, 0.975)) if doubt else NORMAL_975


def _of_shares(strata: Sequence[Stratum]) -> Interval:
    """Wilson's of their mean, for as many samples as would have the same error (Korn and Graubard 1998).

    Tasks that are all right or all wrong have an error too: each is drawn a little to the mean of all.
    """
    mean, whole = _mean(strata), sum(one.weight for one in strata)
    counts = [_count(one) for one in strata]
    per_task = [(one.weight / whole) ** 2 / count for one, count in zip(strata, counts, strict=True)]
    if mean in (0.0, 1.0):
        return wilson_interval(mean, 1 / sum(per_task))
    spreads = [_spread(one.mean, count, mean) for one, count in zip(strata, counts, strict=True)]
    variance = sum(part * spread for part, spread in zip(per_task, spreads, strict=True))
    return wilson_interval(mean, mean * (1 - mean) / variance)


def _spread(share: float, count: float, mean: float) -> float:
    """p (1 − p) of a task drawn to the mean; unbiased where tasks are equally hard."""
    drawn = (share * count + PSEUDO_COUNT * mean) / (count + PSEUDO_COUNT)
    return drawn * (1 - drawn) / (1 - count / (count + PSEUDO_COUNT) ** 2)


def _mean(strata: Sequence[Stratum]) -> float:
    # Exactly equal means: their weighted sum may miss the bound of 0 or 1 by rounding.
    if len({one.mean for one in strata}) == 1:
        return strata[0].mean
    return sum(one.weight * one.mean for one in strata) / sum(one.weight for one in strata)


def _count(one: Stratum) -> float:
    """The number of samples for which Wilson's interval is as wide: with a = z² / n its width squared is
    (4 p (1 − p) a + a²) / (1 + a)²."""
    squared = (one.interval.high - one.interval.low) ** 2
    half = 2 * one.mean * (1 - one.mean) - squared
    return NORMAL_975**2 * (math.sqrt(half**2 + (1 - squared) * squared) + half) / squared
