"""The difference of two runs in the correlation of predictions with targets (pearson, spearman)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.correlations import (
    Correlation,
    correlation_of_moments,
    spearman,
    standardised,
)
from services.results.statistics.paired.difference_estimate import PAIRED_PERMUTATION, DifferenceEstimate
from services.results.statistics.paired.figure_difference import (
    figure_p_value,
    observed,
    some_units,
    with_bootstrap,
    with_normal_p_value,
)
from services.results.statistics.paired.mean_difference import MAX_PERMUTED_UNITS
from services.results.statistics.paired.pairs import (
    LabelPairs,
    PairedUnits,
    Predictions,
    merged,
    unit_sums_of,
)


def observed_correlations(pairs: LabelPairs, correlation: Correlation) -> DifferenceEstimate:
    """The correlations as they are, untested."""
    sizes = pairs.sizes[np.newaxis, :]
    first, second = (float(_of_draws(correlation, run, sizes)[0]) for run in (pairs.first, pairs.second))
    return observed(pairs, first, second)


def difference_of_correlations(pairs: LabelPairs, correlation: Correlation) -> DifferenceEstimate:
    """The bootstrap ranks each draw anew. The permutation swaps numbers (for pearson), or ranks among the
    numbers of both runs: these stay the same however the runs are swapped, which keeps the test exact."""
    estimate = observed_correlations(pairs, correlation)
    if estimate.difference is None or pairs.sizes.sum() < 2:
        return estimate
    kept, sizes, share = some_units(pairs.sizes)
    first, second = (_rows_of(run, kept) for run in (pairs.first, pairs.second))
    estimate = with_bootstrap(
        estimate,
        sizes,
        lambda draws: (_of_draws(correlation, first, draws), _of_draws(correlation, second, draws)),
        share,
    )
    # The difference of so many units is close to normal, and a permutation of them takes minutes.
    if len(pairs.sizes) > MAX_PERMUTED_UNITS:
        return with_normal_p_value(estimate)
    units = _moments(_transformed(pairs, is_ranked=correlation is spearman))
    p_value = figure_p_value(units, correlation_of_moments)
    return replace(estimate, p_value=p_value, test=PAIRED_PERMUTATION)


def _rows_of(run: Predictions, kept: NDArray[np.bool_]) -> Predictions:
    """The predictions of some units, which are numbered anew."""
    rows, number = kept[run.units], np.cumsum(kept) - 1
    return Predictions(number[run.units[rows]], run.target[rows], run.predicted[rows], run.weights[rows])


def _of_draws(correlation: Correlation, run: Predictions, draws: Numbers) -> Array:
    """The correlation of each draw, where unit u was drawn draws[d, u] times: (draws,)."""
    weights = draws[:, run.units] * run.weights
    return correlation(run.target, run.predicted, weights)


def _moments(pairs: LabelPairs) -> PairedUnits:
    """Per unit: sums of 1, x, y, x², y², xy over its rows."""
    first, second = (
        unit_sums_of(run, _powers(run.target, run.predicted), len(pairs.sizes))
        for run in (pairs.first, pairs.second)
    )
    return merged(first, second, pairs.sizes)


def _powers(x: Array, y: Array) -> Array:
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def _transformed(pairs: LabelPairs, *, is_ranked: bool) -> LabelPairs:
    """Both runs' numbers in the same units, or their ranks among each other."""
    rows = len(pairs.first.target)
    target = np.concatenate([pairs.first.target, pairs.second.target])
    predicted = np.concatenate([pairs.first.predicted, pairs.second.predicted])
    if is_ranked:
        target, predicted = mean_ranks(target), mean_ranks(predicted)
    target, predicted = standardised(target), standardised(predicted)
    first = replace(pairs.first, target=target[:rows], predicted=predicted[:rows])
    second = replace(pairs.second, target=target[rows:], predicted=predicted[rows:])
    return replace(pairs, first=first, second=second)


def mean_ranks(values: Array) -> Array:
    """Ranks from 1; equal values share the mean of theirs. Importing that of scipy.stats takes a second."""
    _, positions, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[positions]
    return ranks
