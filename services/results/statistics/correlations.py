"""Pearson's and Spearman's correlation of target numbers and named ones, and the bootstrap of both."""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from services.common.threads.cancellable_threads import check_cancelled
from services.results.statistics.columns import Array, Numbers, PairColumns, Values
from services.results.statistics.intervals import RESAMPLES, SEED

# Bounds the memory of a bootstrap over many rows: some ten arrays of so many numbers.
CELLS_AT_A_TIME = 500_000
# Rows that a figure over all rows takes at a time.
BLOCK_ROWS = 500_000

# Standardised numbers with less variance are constant but for rounding.
MIN_VARIANCE = 1e-12

# From x and y (rows) and weights (draws, rows) to the correlation of each draw; NaN where undefined.
Correlation = Callable[[Array, Array, Array], Array]
Positions = NDArray[np.uint32]
# From rows to the values of them that are correlated.
Lookup = Callable[[slice], Array]


def correlated(correlation: Correlation, columns: PairColumns) -> float:
    """The figure of the rows as they are, block by block: of 10^7 rows no further column is made."""
    weights = None if columns.samples is None else columns.weights()
    values_of = _rank_lookup if correlation is spearman else _standard_lookup
    x_of, y_of = values_of(columns.target, weights), values_of(columns.predicted, weights)
    moments = np.zeros(6)
    for rows in _blocks(columns.count):
        x, y = x_of(rows), y_of(rows)
        counted = np.ones_like(x) if weights is None else weights[rows]
        moments += counted @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return float(correlation_of_moments(moments[np.newaxis, :])[0])


def resampled_correlations(correlation: Correlation, columns: PairColumns) -> Array:
    """The figure of each bootstrap sample of samples (or clusters), without those where it is undefined."""
    x, y = _numbers(columns)
    units, weights = columns.units(), columns.weights()
    figures: Array = np.concatenate(
        [correlation(x, y, drawn[:, units] * weights) for drawn in _draws(int(units.max()) + 1, len(x))]
    )
    defined: Array = figures[~np.isnan(figures)]
    return defined


def _numbers(columns: PairColumns) -> tuple[Array, Array]:
    return columns.target.astype(np.float64), columns.predicted.astype(np.float64)


def _draws(units: int, rows: int) -> Iterator[Numbers]:
    """How often each unit is drawn: (draws, units) at a time."""
    generator = np.random.default_rng(SEED)
    at_a_time = max(1, CELLS_AT_A_TIME // rows)
    for start in range(0, RESAMPLES, at_a_time):
        check_cancelled()
        count = min(at_a_time, RESAMPLES - start)
        positions = generator.integers(units, size=(count, units)) + units * np.arange(count)[:, np.newaxis]
        yield np.bincount(positions.ravel(), minlength=count * units).reshape(count, units).astype(np.int64)


def positions_of(values: Values) -> Positions:
    """How many different values are below each value: all that a rank correlation needs of them."""
    if values.dtype == np.uint32:
        return values.astype(np.uint32, copy=False)
    # Not by `np.unique`, which makes three more columns of the size of this one.
    order, positions = np.argsort(values), np.empty(len(values), dtype=np.uint32)
    position, last = 0, None
    for rows in _blocks(len(values)):
        at = order[rows]
        ascending = values[at]
        is_new = np.empty(len(at), dtype=np.bool_)
        is_new[0] = last is not None and ascending[0] != last
        np.not_equal(ascending[1:], ascending[:-1], out=is_new[1:])
        numbers = position + np.cumsum(is_new)
        positions[at] = numbers
        position, last = int(numbers[-1]), ascending[-1]
    return positions


def _rank_lookup(values: Values, weights: Array | None) -> Lookup:
    """Mean ranks of equal values, rows counted by their weights, as shares of all."""
    positions = positions_of(values)
    by_position = np.bincount(positions, weights)
    ranks = np.cumsum(by_position, dtype=np.float64)
    total = float(ranks[-1])
    for some in _blocks(len(ranks)):
        # Around 0, so that sums of squares lose no digits.
        ranks[some] = (ranks[some] - by_position[some] / 2) / total - 0.5
    return lambda rows: ranks[positions[rows]]


def _standard_lookup(values: Values, _: Array | None) -> Lookup:
    """Looks up as `standardised`."""
    scale = float(max(abs(values.max(initial=0)), abs(values.min(initial=0)))) or 1.0
    count = len(values)
    mean = sum(float((values[rows] / scale).sum()) for rows in _blocks(count)) / count
    squares = sum(float(np.square(values[rows] / scale - mean).sum()) for rows in _blocks(count))
    std = math.sqrt(squares / count) or 1.0

    def standard(rows: slice) -> Array:
        shifted: Array = (values[rows].astype(np.float64) / scale - mean) / std
        return shifted

    return standard


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, BLOCK_ROWS):
        check_cancelled()
        yield slice(start, min(start + BLOCK_ROWS, count))


def pearson(x: Array, y: Array, weights: Array) -> Array:
    x, y = standardised(x), standardised(y)
    moments = weights @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return correlation_of_moments(moments)


def spearman(x: Array, y: Array, weights: Array) -> Array:
    """Pearson's correlation of the ranks, which each draw has its own of."""
    ranks_x, ranks_y = _ranks(x, weights), _ranks(y, weights)
    products = (np.ones_like(ranks_x), ranks_x, ranks_y, ranks_x**2, ranks_y**2, ranks_x * ranks_y)
    return correlation_of_moments(np.stack([(weights * product).sum(axis=1) for product in products], axis=1))


NUMBER_FIGURES: Mapping[str, Correlation] = {"pearson": pearson, "spearman": spearman}


def correlation_of_moments(moments: Array) -> Array:
    """The correlation from the sums of 1, x, y, x², y², xy (draws, 6); NaN where one side does not vary."""
    total, x, y, xx, yy, xy = moments.T
    variance_x, variance_y = xx / total - (x / total) ** 2, yy / total - (y / total) ** 2
    covariance = xy / total - x * y / total**2
    # A draw may hold one value only; the caller leaves it out.
    is_defined = (variance_x > MIN_VARIANCE) & (variance_y > MIN_VARIANCE)
    spread = np.sqrt(np.where(is_defined, variance_x * variance_y, 1.0))
    # Rounding may carry a perfect correlation a little beyond 1.
    return np.where(is_defined, np.clip(covariance / spread, -1.0, 1.0), np.nan)


def _ranks(values: Array, weights: Array) -> Array:
    """Mean ranks of equal values, rows counted by their weights, as shares of all: (draws, rows)."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(position, kind="stable")
    by_value = np.add.reduceat(weights[:, order], np.cumsum(counts) - counts, axis=1)
    ranks: Array = ((np.cumsum(by_value, axis=1) - by_value / 2)[:, position]) / weights.sum(
        axis=1, keepdims=True
    )
    return ranks - 0.5


def standardised(values: Array) -> Array:
    """Correlations stay, sums of squares lose no digits, and those of the largest numbers do not overflow."""
    scaled = values / (float(np.abs(values).max(initial=0.0)) or 1.0)
    shifted: Array = (scaled - scaled.mean()) / (float(scaled.std()) or 1.0)
    return shifted
