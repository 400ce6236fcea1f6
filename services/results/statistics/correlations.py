"""Pearson's and Spearman's correlation of expected and named numbers, and the bootstrap of both."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from services.results.statistics.columns import Array, Numbers, PairColumns

RESAMPLES = 1000
SEED = 1234
# Bounds the memory of a bootstrap over many rows (32 MB of weights).
CELLS_AT_A_TIME = 4_000_000

# Standardised numbers with less variance are constant but for rounding.
LEAST_VARIANCE = 1e-12

# From x and y (rows) and weights (draws, rows) to the correlation of each draw; NaN where undefined.
Correlation = Callable[[Array, Array, Array], Array]


def correlated(correlation: Correlation, columns: PairColumns) -> float:
    """The figure of the rows as they are."""
    return float(correlation(*_numbers(columns), columns.weights()[np.newaxis, :])[0])


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
    return columns.gold.astype(np.float64), columns.predicted.astype(np.float64)


def _draws(units: int, rows: int) -> Iterator[Numbers]:
    """How often each unit is drawn: (draws, units) at a time."""
    generator = np.random.default_rng(SEED)
    at_a_time = max(1, CELLS_AT_A_TIME // rows)
    for start in range(0, RESAMPLES, at_a_time):
        count = min(at_a_time, RESAMPLES - start)
        places = generator.integers(units, size=(count, units)) + units * np.arange(count)[:, np.newaxis]
        yield np.bincount(places.ravel(), minlength=count * units).reshape(count, units).astype(np.int64)


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
    """From the sums of 1, x, y, x², y², xy (draws, 6); NaN where one side does not vary."""
    total, x, y, xx, yy, xy = moments.T
    variance_x, variance_y = xx / total - (x / total) ** 2, yy / total - (y / total) ** 2
    covariance = xy / total - x * y / total**2
    is_defined = (variance_x > LEAST_VARIANCE) & (variance_y > LEAST_VARIANCE)
    spread = np.sqrt(np.where(is_defined, variance_x * variance_y, 1.0))
    return np.where(is_defined, np.clip(covariance / spread, -1.0, 1.0), np.nan)


def _ranks(values: Array, weights: Array) -> Array:
    """Mean ranks of equal values, rows counted by their weights, as shares of all: (draws, rows)."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    by_value = np.add.reduceat(weights[:, order], np.cumsum(counts) - counts, axis=1)
    ranks: Array = ((np.cumsum(by_value, axis=1) - by_value / 2)[:, place]) / weights.sum(
        axis=1, keepdims=True
    )
    return ranks - 0.5


def standardised(values: Array) -> Array:
    """Correlations stay, sums of squares lose no digits, and those of the largest numbers do not overflow."""
    scaled = values / (float(np.abs(values).max(initial=0.0)) or 1.0)
    shifted: Array = (scaled - scaled.mean()) / (float(scaled.std()) or 1.0)
    return shifted
