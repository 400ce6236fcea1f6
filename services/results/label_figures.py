"""f1 and mcc over confusion tables, many at a time, and the bootstrap that draws those tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from services.results.score_columns import Array, Numbers, ResamplingUnits

RESAMPLES = 1000
SEED = 1234
CELLS_AT_A_TIME = 4_000_000
"""Bounds the memory of a bootstrap over many patterns (32 MB of counts)."""

POSITIVE_LABEL = 1


@dataclass(frozen=True, slots=True)
class Tables:
    """Confusion tables of one shape: `counts[t, i]` is table t's number for cell (gold[i], predicted[i])."""

    gold: Numbers
    predicted: Numbers
    counts: Array


Measure = Callable[[Tables], Array]


def measured(measure: Measure, units: ResamplingUnits) -> float:
    """The figure of the units as they are."""
    return float(measure(_tables(units, units.sizes[np.newaxis, :]))[0])


def resampled(measure: Measure, units: ResamplingUnits) -> Array:
    """The figure of each bootstrap sample.

    Drawing n units with replacement is a multinomial draw of how often each pattern comes up: exact.
    """
    generator = np.random.default_rng(SEED)
    shares = units.sizes / units.count
    at_a_time = max(1, CELLS_AT_A_TIME // len(shares))
    draws = (
        generator.multinomial(units.count, shares, size=min(at_a_time, RESAMPLES - start))
        for start in range(0, RESAMPLES, at_a_time)
    )
    return np.concatenate([measure(_tables(units, sizes)) for sizes in draws])


def _tables(units: ResamplingUnits, sizes: Numbers) -> Tables:
    """`sizes[t, p]`: how many units of pattern p table t is made of."""
    counts = sizes.astype(np.float64)
    if units.contributions is not None:
        counts = counts @ units.contributions
    return Tables(units.gold, units.predicted, counts)


def f1(tables: Tables) -> Array:
    """Of the positive label; 0 where it is neither expected nor predicted, as scikit-learn has it."""
    expected = tables.gold == POSITIVE_LABEL
    predicted = tables.predicted == POSITIVE_LABEL
    hits = tables.counts[:, expected & predicted].sum(axis=1)
    misses = tables.counts[:, expected ^ predicted].sum(axis=1)
    return _ratio(2 * hits, 2 * hits + misses)


def mcc(tables: Tables) -> Array:
    """For any number of labels; 0 where all expected or all predicted ones are the same, as scikit-learn."""
    total = tables.counts.sum(axis=1)
    right = tables.counts[:, tables.gold == tables.predicted].sum(axis=1)
    labels = np.union1d(tables.gold, tables.predicted)
    expected = np.stack([tables.counts[:, tables.gold == label].sum(axis=1) for label in labels])
    predicted = np.stack([tables.counts[:, tables.predicted == label].sum(axis=1) for label in labels])
    covariance = right * total - (expected * predicted).sum(axis=0)
    spread_expected = total**2 - (expected**2).sum(axis=0)
    spread_predicted = total**2 - (predicted**2).sum(axis=0)
    return _ratio(covariance, np.sqrt(np.maximum(spread_expected * spread_predicted, 0.0)))


LABEL_FIGURES: Mapping[str, Measure] = {"f1": f1, "mcc": mcc}


def _ratio(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
