"""The difference of two runs in a figure over confusion tables (f1, mcc)."""

import numpy as np

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.label_figures import Measure, Tables
from services.results.statistics.paired.difference_estimate import DifferenceEstimate, undefined
from services.results.statistics.paired.figure_difference import (
    FigureOfSums,
    difference_of_figures,
)
from services.results.statistics.paired.pairs import LabelPairs, PairedUnits, Predictions, merged

# Bounds the memory of confusion tables by unit (80 MB for each run).
MAX_CELLS = 10_000_000
TOO_MANY_LABELS = "too many labels and samples for a test"


def difference_of_labels(pairs: LabelPairs, measure: Measure) -> DifferenceEstimate:
    """Difference of two runs in a figure over (target, predicted) labels; -1: no label could be read."""
    tables = _tables(pairs, measure)
    return difference_of_figures(pairs, *tables) if tables else undefined(pairs.pairs, TOO_MANY_LABELS)


def _tables(pairs: LabelPairs, measure: Measure) -> tuple[PairedUnits, FigureOfSums] | None:
    """Contribution of each unit to the confusion tables of the two runs, and the figure of such tables.

    None where that takes too much memory.
    """
    both = np.concatenate([_labels(pairs.first), _labels(pairs.second)])
    cells, cell_of = np.unique(both, axis=0, return_inverse=True)
    shape = len(pairs.sizes), len(cells)
    # Only where answers hold thousands of different labels: no figure is better than no memory.
    if shape[0] * shape[1] > MAX_CELLS:
        return None
    cell_of, rows = cell_of.reshape(-1), len(pairs.first.units)
    first = _counted(pairs.first, cell_of[:rows], shape)
    second = _counted(pairs.second, cell_of[rows:], shape)
    units = merged(first, second, pairs.sizes)
    return units, lambda counts: measure(Tables(cells[:, 0], cells[:, 1], counts))


def _labels(predictions: Predictions) -> Numbers:
    return np.stack([predictions.target, predictions.predicted], axis=1).astype(np.int64)


def _counted(predictions: Predictions, cell_of: Numbers, shape: tuple[int, int]) -> Array:
    """Weights of the rows by unit and cell: (units, cells)."""
    positions = predictions.units * shape[1] + cell_of
    counts = np.bincount(positions, weights=predictions.weights, minlength=shape[0] * shape[1])
    return counts.astype(np.float64).reshape(shape)
