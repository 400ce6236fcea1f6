"""How far raters agree beyond chance: Cohen's kappa of two, and Krippendorff's alpha of any number."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from services.results.statistics.columns import Array
from services.results.statistics.intervals import NORMAL_975, RESAMPLES, SEED, percentile_interval

# Bounds the memory of a bootstrap: weights of so many draws and units at a time.
_CELLS_AT_A_TIME = 2_000_000
# Below any error of fewer than a billion units.
_ROUNDING = 1e-6


class Scale(StrEnum):
    """Which differences between two values count, and how much."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class Agreement:
    """1: always agree, 0: as by chance. None where undefined: too few units, or one value only.

    `units`: those that two raters or more have rated.
    """

    units: int
    value: float | None = None
    stderr: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


def cohens_kappa(first: Array, second: Array) -> Agreement:
    """Unweighted (Cohen 1960), with the large-sample error of Fleiss, Cohen & Everitt 1969.

    One value per unit and rater, NaN where a rater has none; units with two values count.
    """
    both = np.isfinite(first) & np.isfinite(second)
    units = int(both.sum())
    values, codes = np.unique(np.concatenate([first[both], second[both]]), return_inverse=True)
    if len(values) < 2:  # one value leaves nothing to agree on
        return Agreement(units)
    shares = np.zeros((len(values), len(values)))
    np.add.at(shares, (codes[:units], codes[units:]), 1 / units)
    of_first, of_second = shares.sum(axis=1), shares.sum(axis=0)
    seen, chance = float(np.trace(shares)), float(of_first @ of_second)
    if chance == 1:
        return Agreement(units)
    kappa = (seen - chance) / (1 - chance)
    kept = 1 - kappa
    # Of the cells on the diagonal, and of the others.
    diagonal = np.diag(shares) @ np.square(1 - (of_first + of_second) * kept)
    sums = np.square(of_second[:, np.newaxis] + of_first[np.newaxis, :])
    others = kept**2 * float((shares * sums).sum() - np.diag(shares) @ np.diag(sums))
    variance = (diagonal + others - (kappa - chance * kept) ** 2) / (units * (1 - chance) ** 2)
    stderr = math.sqrt(max(0.0, float(variance)))
    # Of raters who always agree, and of one who says one thing only, the formula has no error but rounding.
    if stderr < _ROUNDING:
        return Agreement(units, round(kappa, 9) + 0.0)
    half = NORMAL_975 * stderr
    return Agreement(units, kappa, stderr, max(-1.0, kappa - half), min(1.0, kappa + half))


def krippendorffs_alpha(ratings: Array, scale: Scale) -> Agreement:
    """`ratings` (raters, units), NaN where a rater has none (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability"). The interval is the percentiles of a bootstrap over units (Zapf et al. 2016)."""
    rated = ratings[:, np.isfinite(ratings).sum(axis=0) > 1]
    units = rated.shape[1]
    values = np.unique(rated[np.isfinite(rated)])
    if len(values) < 2:  # one value leaves nothing to agree on
        return Agreement(units)
    counts = np.stack([(rated == value).sum(axis=0) for value in values], axis=1).astype(np.float64)
    # Pairs of values within a unit, each unit with the weight of its ratings: (units, values * values).
    pairs = counts[:, :, np.newaxis] * counts[:, np.newaxis, :] - counts[:, :, np.newaxis] * np.eye(
        len(values)
    )
    coincidences = (pairs / (counts.sum(axis=1) - 1)[:, np.newaxis, np.newaxis]).reshape(units, -1)
    [alpha] = _alphas(coincidences.sum(axis=0, keepdims=True), values, scale)
    draws = _resampled(coincidences, values, scale)
    if len(draws) < 2 or draws.std() == 0:  # a spread takes two
        return Agreement(units, float(alpha))
    return Agreement(units, float(alpha), float(draws.std(ddof=1)), *percentile_interval(draws))


def _alphas(coincidences: Array, values: Array, scale: Scale) -> Array:
    """1 - observed / expected disagreement of each row (draws, values * values); NaN with one value only."""
    matrices = coincidences.reshape(-1, len(values), len(values))
    totals = matrices.sum(axis=2)
    distances = _distances(totals, values, scale)
    observed = (matrices * distances).sum(axis=(1, 2))
    expected = (totals[:, :, np.newaxis] * totals[:, np.newaxis, :] * distances).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas: Array = 1 - (totals.sum(axis=1) - 1) * observed / expected
    return alphas


def _distances(totals: Array, values: Array, scale: Scale) -> Array:
    """Squared distances of two values (draws, values, values); ordinal ones by the ranks between them."""
    if scale is Scale.NOMINAL:
        return (1 - np.eye(len(values)))[np.newaxis]
    places = np.cumsum(totals, axis=1) - totals / 2 if scale is Scale.ORDINAL else values[np.newaxis]
    distances: Array = np.square(places[:, :, np.newaxis] - places[:, np.newaxis, :])
    return distances


def _resampled(coincidences: Array, values: Array, scale: Scale) -> Array:
    """Without the draws that have one value only."""
    units, generator, found = len(coincidences), np.random.default_rng(SEED), []
    at_a_time = max(1, _CELLS_AT_A_TIME // units)
    for start in range(0, RESAMPLES, at_a_time):
        size = min(at_a_time, RESAMPLES - start)
        weights = generator.multinomial(units, np.full(units, 1 / units), size).astype(np.float64)
        found.append(_alphas(weights @ coincidences, values, scale))
    draws = np.concatenate(found)
    defined: Array = draws[np.isfinite(draws)]
    return defined
