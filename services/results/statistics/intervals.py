"""95 % intervals: Wilson's of shares, Student's of means, both cluster-robust, and the bootstrap's."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.sample_scores import SampleMeans

# scipy.stats.norm.ppf(0.975), to the last digit of a double.
NORMAL_975 = 1.959963984540054

STUDENT_T = "student-t"
WILSON = "wilson"
_ENDS = np.array([0.025, 0.975])
# Draws of a bootstrap: a standard error from so many is itself within some 2 % (1 / √(2 · draws)).
RESAMPLES = 1000
# A fixed seed gives the same answers the same interval and p-value each time.
SEED = 1234
# Errors below it, or below this share of the largest number, come from computing, not from the answers.
ROUNDING = 1e-12
# Keeps the divisor above 0: at 0 the corrected end has no limit.
_MIN_STRETCH = 1e-9


@dataclass(frozen=True, slots=True)
class Interval:
    """`degrees_of_freedom` are those of Student's."""

    low: float
    high: float
    method: str
    degrees_of_freedom: float | None = None


def student_t_interval(mean: float, stderr: float, degrees_of_freedom: float) -> Interval | None:
    """None where nothing varies: the error of the mean is then unknown."""
    if stderr == 0:
        return None
    half = float(stdtrit(degrees_of_freedom, 0.975)) * stderr
    return Interval(mean - half, mean + half, STUDENT_T, degrees_of_freedom)


def wilson_interval(share: float, count: float, quantile: float = NORMAL_975) -> Interval:
    """Right at small counts too, and not empty where all are right or all wrong (Wilson 1927)."""
    squared = quantile**2
    centre = (share + squared / (2 * count)) / (1 + squared / count)
    half = (
        quantile / (1 + squared / count) * math.sqrt(share * (1 - share) / count + squared / (4 * count**2))
    )
    # At 0 and 1 rounding may put the end a little inside the share.
    low, high = min(share, centre - half), max(share, centre + half)
    return Interval(max(0.0, low), min(1.0, high), WILSON)


def effective_wilson_interval(share: float, stderr: float, samples: SampleMeans, scores: int) -> Interval:
    """Wilson's for as many independent samples as would have the same standard error.

    Korn and Graubard 1998; `scores`: how many right or wrong answers there are in all, which is their limit.
    Where all is right or all wrong, each cluster counts as one sample.
    """
    quantile = float(stdtrit(degrees_of_freedom(samples), 0.975))
    variance = share * (1 - share)
    if variance == 0:
        count = float(len(samples.cluster_sizes()))
    else:
        # An error of 0 by chance must not make a sample of infinite size.
        count = min(variance / stderr**2, scores) if stderr else scores
    return wilson_interval(share, count, quantile)


def degrees_of_freedom(samples: SampleMeans) -> float:
    """Clusters less one; fewer where few large clusters carry most of the mean.

    Satterthwaite's, for a variance made of the squared sums of clusters, under a model where samples of a
    cluster correlate as far as they do here (Imbens and Kolesár 2016).
    """
    sizes = samples.cluster_sizes()
    variances = sizes * (1 + (sizes - 1) * samples.intraclass_correlation())
    return max(1.0, float(variances.sum() ** 2 / np.square(variances).sum()) - 1)


def percentile_interval(draws: Array) -> tuple[float, float]:
    low, high = np.quantile(draws, _ENDS)
    return float(low), float(high)


def corrected_interval(draws: Array, figure: float, left_out: Array, sizes: Numbers) -> tuple[float, float]:
    """Corrected for bias and for a spread that changes with the figure (BCa; Efron 1987).

    `left_out[p]` is the figure without one of the `sizes[p]` units of pattern p.
    """
    below = (np.sum(draws < figure) + np.sum(draws == figure) / 2) / len(draws)
    # Where all draws are on one side the quantile would be infinite.
    bias = ndtri(np.clip(below, 1 / len(draws), 1 - 1 / len(draws)))
    shifts = np.average(left_out, weights=sizes) - left_out
    spread = 6 * float(sizes @ shifts**2) ** 1.5
    acceleration = float(sizes @ shifts**3) / spread if spread > 0 else 0.0
    shifted = bias + ndtri(_ENDS)
    # Where the correction has no end, its limit is the outermost draw.
    stretched = shifted / np.maximum(1 - acceleration * shifted, _MIN_STRETCH)
    low, high = np.quantile(draws, ndtr(bias + stretched))
    return float(low), float(high)
