"""f1 and mcc over confusion tables, many at a time, and the bootstrap that draws those tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from services.common.threads.cancellable_threads import check_cancelled
from services.results.statistics.columns import Array, Numbers, PairColumns
from services.results.statistics.intervals import RESAMPLES, SEED

# Bounds the memory of a bootstrap over many patterns (32 MB of counts).
CELLS_AT_A_TIME = 4_000_000

# As in scikit-learn's `pos_label` and in lm-evaluation-harness.
POSITIVE_LABEL = 1
# A confusion table of so many positions is counted out, whatever the number of rows; a larger one is sorted.
MAX_POSITIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class ResamplingUnits:
    """Units of a bootstrap: samples (or clusters), those with equal contributions taken together.

    Cell i of the confusion table is (target[i], predicted[i]); `contributions[p]` is what a unit of pattern p
    adds to each cell (None: pattern p is one in cell p), and `sizes[p]` how many units have that pattern.
    """

    target: Numbers
    predicted: Numbers
    contributions: Array | None
    sizes: Numbers

    @property
    def count(self) -> int:
        return int(self.sizes.sum())


@dataclass(frozen=True, slots=True)
class Tables:
    """Confusion tables of one shape: `counts[t, i]` is cell (target[i], predicted[i]) of table t."""

    target: Numbers
    predicted: Numbers
    counts: Array


Measure = Callable[[Tables], Array]


def measured(measure: Measure, columns: PairColumns) -> float:
    """The figure of the rows as they are."""
    target, predicted, cell_of = _cells(columns)
    counts = np.bincount(cell_of, weights=columns.weights()).astype(np.float64)
    return float(measure(Tables(target, predicted, counts[np.newaxis, :]))[0])


def resampling_units(columns: PairColumns) -> ResamplingUnits:
    target, predicted, cell_of = _cells(columns)
    if not columns.has_units:
        return ResamplingUnits(target, predicted, None, np.bincount(cell_of).astype(np.int64))
    units, cells = columns.units(), len(target)
    size = (int(units.max()) + 1) * cells
    flat = np.bincount(units * cells + cell_of, weights=columns.weights(), minlength=size)
    # Samples have few kinds of contributions, so a draw of kinds replaces one of samples.
    patterns, sizes = np.unique(flat.reshape(-1, cells), axis=0, return_counts=True)
    return ResamplingUnits(target, predicted, patterns.astype(np.float64), sizes.astype(np.int64))


def _cells(columns: PairColumns) -> tuple[Numbers, Numbers, Numbers]:
    """The labels of each cell of the confusion table, and the cell of each row."""
    least = int(min(columns.target.min(), columns.predicted.min()))
    labels = int(max(columns.target.max(), columns.predicted.max())) - least + 1
    # In place: each further column of 10^7 rows takes 80 MB.
    positions = columns.target.astype(np.int64)
    positions -= least
    positions *= labels
    positions += columns.predicted.astype(np.int64)
    positions -= least
    cells, cell_of = _distinct(positions, labels**2)
    return cells // labels + least, cells % labels + least, cell_of


def _distinct(positions: Numbers, end: int) -> tuple[Numbers, Numbers]:
    """The different positions below `end`, sorted, and which of them each row has."""
    if end > MAX_POSITIONS:
        cells, cell_of = np.unique(positions, return_inverse=True)
        return cells, cell_of.astype(np.int64)
    cells = np.flatnonzero(np.bincount(positions))
    number_of = np.zeros(end, dtype=np.int64)
    number_of[cells] = np.arange(len(cells))
    return cells, number_of[positions]


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

    def of_draw(sizes: Numbers) -> Array:
        check_cancelled()
        return measure(_tables(units, sizes))

    return np.concatenate([of_draw(sizes) for sizes in draws])


def left_out(measure: Measure, units: ResamplingUnits) -> Array:
    """The figure without one unit of each pattern (jackknife)."""
    own = np.eye(len(units.sizes)) if units.contributions is None else units.contributions
    return measure(Tables(units.target, units.predicted, units.sizes @ own - own))


def _tables(units: ResamplingUnits, sizes: Numbers) -> Tables:
    """`sizes[t, p]`: how many units of pattern p table t is made of."""
    counts = sizes.astype(np.float64)
    if units.contributions is not None:
        counts = counts @ units.contributions
    return Tables(units.target, units.predicted, counts)


def f1(tables: Tables) -> Array:
    """The f1 of the positive label; 0 where it is neither target nor predicted, as in scikit-learn."""
    return _f1_of_label(tables, POSITIVE_LABEL)


def f1_macro(tables: Tables, label_count: int = 0) -> Array:
    """The mean over `label_count` labels, and all up to the largest one, whether they occur or not."""
    labels = range(max(label_count, len(_labels(tables))))
    figures: Array = np.mean([_f1_of_label(tables, label) for label in labels], axis=0)
    return figures


def f1_weighted(tables: Tables) -> Array:
    """The mean over labels, weighted by how often each is the target."""
    shares = [tables.counts[:, tables.target == label].sum(axis=1) for label in _labels(tables)]
    figures = [_f1_of_label(tables, label) for label in _labels(tables)]
    return _ratio(np.sum(np.multiply(shares, figures), axis=0), np.sum(shares, axis=0))


def f1_micro(tables: Tables) -> Array:
    """Over all answers at once; one that could not be read is a miss, and no false alarm."""
    is_right = (tables.target == tables.predicted) & (tables.target >= 0)
    right = tables.counts[:, is_right].sum(axis=1)
    with_target = tables.counts[:, tables.target >= 0].sum(axis=1)
    predicted = tables.counts[:, tables.predicted >= 0].sum(axis=1)
    return _ratio(2 * right, with_target + predicted)


def _labels(tables: Tables) -> range:
    """-1 means that no label could be read, and is itself no label; there is at least one."""
    return range(int(max(tables.target.max(), tables.predicted.max(), 0)) + 1)


def _f1_of_label(tables: Tables, label: int) -> Array:
    is_target = tables.target == label
    is_predicted = tables.predicted == label
    hits = tables.counts[:, is_target & is_predicted].sum(axis=1)
    misses = tables.counts[:, is_target ^ is_predicted].sum(axis=1)
    return _ratio(2 * hits, 2 * hits + misses)


def mcc(tables: Tables) -> Array:
    """The coefficient for any number of labels.

    0 where all targets or all predicted labels are the same, as scikit-learn.
    """
    total = tables.counts.sum(axis=1)
    right = tables.counts[:, tables.target == tables.predicted].sum(axis=1)
    labels = np.union1d(tables.target, tables.predicted)
    targets = np.stack([tables.counts[:, tables.target == label].sum(axis=1) for label in labels])
    predicted = np.stack([tables.counts[:, tables.predicted == label].sum(axis=1) for label in labels])
    covariance = right * total - (targets * predicted).sum(axis=0)
    spread_targets = total**2 - (targets**2).sum(axis=0)
    spread_predicted = total**2 - (predicted**2).sum(axis=0)
    return _ratio(covariance, np.sqrt(np.maximum(spread_targets * spread_predicted, 0.0)))


LABEL_FIGURES: Mapping[str, Measure] = {"f1": f1, "mcc": mcc}

_F1_BY_AVERAGE: Mapping[str, Measure] = {
    "binary": f1,
    "macro": f1_macro,
    "micro": f1_micro,
    "weighted": f1_weighted,
}


def label_measure(metric: str, average: str = "binary", label_count: int = 0) -> Measure:
    """The function from labels to the figure of a metric; `average` is for f1 over several labels.

    `label_count`: how many labels the task has, where that is known; else those up to the largest one seen.
    """
    if (metric, average) == ("f1", "macro"):
        return partial(f1_macro, label_count=label_count)
    return _F1_BY_AVERAGE[average] if metric == "f1" else LABEL_FIGURES[metric]


def _ratio(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
