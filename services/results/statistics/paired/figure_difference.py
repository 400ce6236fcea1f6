"""The difference of two runs in a figure that is not a mean of scores, such as f1: test and interval."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.intervals import RESAMPLES, SEED
from services.results.statistics.paired.difference_estimate import (
    LEVEL,
    PAIRED_PERMUTATION,
    PAIRED_T,
    DifferenceEstimate,
    smallest_detectable,
    undefined,
)
from services.results.statistics.paired.mean_difference import (
    MAX_PERMUTED_UNITS,
    NO_PAIRS,
    NO_SPREAD,
    ONE_CLUSTER,
    ONE_PAIR,
)
from services.results.statistics.paired.pairs import LabelPairs, PairedUnits
from services.results.statistics.paired.permutation_test import SwapUnits, swap_p_value

# Draws × patterns at a time: 8 MB for each array.
CELLS_AT_A_TIME = 1_000_000
# Bounds the work of a bootstrap: of more kinds of units it draws from a random part of the units.
MAX_DRAWN_UNITS = 20_000
UNDEFINED_FIGURE = "the figure is undefined for one of the runs"

# From the sums of some features (draws, features) to the figure of each draw (draws,); NaN: undefined.
FigureOfSums = Callable[[Array], Array]

# From how often each pattern is drawn (draws, patterns) to the figures of both runs.
FiguresOfDraws = Callable[[Numbers], tuple[Array, Array]]


def difference_of_figures(pairs: LabelPairs, units: PairedUnits, figure: FigureOfSums) -> DifferenceEstimate:
    """A permutation swaps the two runs' predictions of a sample (or passage) as a whole. The interval comes
    from a bootstrap that draws samples (or passages) with both runs' predictions."""
    estimate = observed_figures(pairs, units, figure)
    if estimate.difference is None or units.count < 2:
        return estimate

    kept, sizes, share = some_units(units.sizes)
    first, second = units.first[kept], units.second[kept]

    def of_draws(draws: Numbers) -> tuple[Array, Array]:
        drawn = draws.astype(np.float64)
        return figure(drawn @ first), figure(drawn @ second)

    estimate = with_bootstrap(estimate, sizes, of_draws, share)
    if len(units.sizes) > MAX_PERMUTED_UNITS:
        return with_normal_p_value(estimate)
    return replace(estimate, p_value=figure_p_value(units, figure), test=PAIRED_PERMUTATION)


def observed_figures(pairs: LabelPairs, units: PairedUnits, figure: FigureOfSums) -> DifferenceEstimate:
    """The figures as they are, untested."""
    return observed(pairs, *(float(figure(sums)[0]) for sums in units.sums()))


def observed(pairs: LabelPairs, first: float, second: float) -> DifferenceEstimate:
    """The figures as they are; a remark where there is nothing to judge their difference by."""
    if not pairs.pairs:
        return undefined(0, NO_PAIRS)
    if not np.isfinite([first, second]).all():
        return replace(undefined(pairs.pairs, UNDEFINED_FIGURE), clusters=pairs.clusters)
    remark = "" if pairs.sizes.sum() > 1 else ONE_CLUSTER if pairs.pairs > 1 else ONE_PAIR
    return DifferenceEstimate(
        pairs.pairs, first, second, first - second, clusters=pairs.clusters, remark=remark
    )


def figure_p_value(units: PairedUnits, figure: FigureOfSums) -> float:
    """Two-sided p-value of the swap test of a figure."""
    first, second = units.sums()

    def statistic(swapped: Array) -> Array:
        # A swap may leave a figure undefined; then it shows no difference.
        return np.nan_to_num(figure(first - swapped) - figure(second + swapped))

    return swap_p_value(SwapUnits(units.first - units.second, units.sizes), statistic)


def some_units(sizes: Numbers) -> tuple[NDArray[np.bool_], Numbers, float]:
    """A random part of many units: the kinds that it has, how many units of each, and its share of all."""
    total = int(sizes.sum())
    if len(sizes) <= MAX_DRAWN_UNITS:
        return np.ones(len(sizes), dtype=np.bool_), sizes, 1.0
    chosen = np.random.default_rng(SEED).choice(total, MAX_DRAWN_UNITS, replace=False)
    kinds = np.searchsorted(np.cumsum(sizes), chosen, side="right")
    part = np.bincount(kinds, minlength=len(sizes)).astype(np.int64)
    return part > 0, part[part > 0], MAX_DRAWN_UNITS / total


def with_bootstrap(
    estimate: DifferenceEstimate, sizes: Numbers, figures: FiguresOfDraws, share: float = 1.0
) -> DifferenceEstimate:
    """Adds the standard error and the 95 % percentile interval of a paired bootstrap with a fixed seed (Efron
    & Tibshirani 1993, 13.3), and what could be detected with that standard error.

    Where the units are a `share` of all, the spread is scaled: errors shrink with the root of their number.
    """
    drawn = [first - second for first, second in map(figures, _draws(sizes))]
    differences = np.concatenate(drawn)
    differences = differences[np.isfinite(differences)]
    if share < 1 and estimate.difference is not None:
        # The spread is that of the part around the part's own figure.
        [of_part] = np.subtract(*figures(sizes[np.newaxis, :]))
        differences = estimate.difference + (differences - of_part) * np.sqrt(share)
    stderr = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    if not stderr:
        return replace(estimate, remark=NO_SPREAD)
    low, high = (float(end) for end in np.percentile(differences, (100 * LEVEL / 2, 100 - 100 * LEVEL / 2)))
    detectable = smallest_detectable(stderr, np.inf)
    return replace(
        estimate,
        stderr=stderr,
        ci_low=low,
        ci_high=high,
        smallest_detectable=detectable,
        degrees_of_freedom=np.inf,
    )


def with_normal_p_value(estimate: DifferenceEstimate) -> DifferenceEstimate:
    """The p-value for more units than are permuted.

    The difference over its bootstrap error as a standard normal.
    """
    if estimate.stderr is None or estimate.difference is None:
        return replace(estimate, p_value=None if estimate.difference else 1.0, test=PAIRED_T)
    p_value = float(2 * ndtr(-abs(estimate.difference) / estimate.stderr))
    return replace(estimate, p_value=p_value, test=PAIRED_T)


def _draws(sizes: Numbers) -> Iterator[Numbers]:
    """Bootstrap samples as counts of patterns (draws, patterns): drawing units one by one, grouped: exact."""
    generator = np.random.default_rng(SEED)
    at_a_time = max(1, min(RESAMPLES, CELLS_AT_A_TIME // len(sizes)))
    for start in range(0, RESAMPLES, at_a_time):
        yield generator.multinomial(
            int(sizes.sum()), sizes / sizes.sum(), size=min(at_a_time, RESAMPLES - start)
        )
