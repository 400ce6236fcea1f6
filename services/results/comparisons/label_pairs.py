"""Labels, or numbers, that two runs read from their answers to the samples that both answered."""

from dataclasses import dataclass

import numpy as np

from services.results.figures.score_columns import Array, Numbers


@dataclass(frozen=True, slots=True)
class Readings:
    """What one run read, one row per answer or kind of answer; row i belongs to unit `units[i]`.

    The `weights` of the rollouts of a sample sum to the number of such samples in the unit.
    """

    units: Numbers
    gold: Array
    predicted: Array
    weights: Array


@dataclass(frozen=True, slots=True)
class LabelPairs:
    """The readings of both runs; unit u is there `sizes[u]` times. `clusters`: 0 where units are samples."""

    first: Readings
    second: Readings
    sizes: Numbers
    pairs: int
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class PairedUnits:
    """What units of each pattern add to the sums that a figure is made of: (patterns, features) per run."""

    first: Array
    second: Array
    sizes: Numbers

    @property
    def count(self) -> int:
        return int(self.sizes.sum())

    def sums(self) -> tuple[Array, Array]:
        """The sums of both runs as they are: (1, features) each."""
        sizes = self.sizes[np.newaxis, :].astype(np.float64)
        return sizes @ self.first, sizes @ self.second


def unit_sums_of(readings: Readings, features: Array, units: int) -> Array:
    """Features of the rows (rows, features), weighted and summed up by unit: (units, features)."""
    columns = [
        np.bincount(readings.units, weights=readings.weights * feature, minlength=units)
        for feature in features.T
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def merged(first: Array, second: Array, sizes: Numbers) -> PairedUnits:
    """Units that add the same to both runs become one pattern."""
    both, place = np.unique(np.hstack([first, second]), axis=0, return_inverse=True)
    counted = np.bincount(place.reshape(-1), weights=sizes).astype(np.int64)
    features = first.shape[1]
    return PairedUnits(both[:, :features], both[:, features:], counted)
