"""Scores or predictions of two runs on the samples that both answered; equal pairs are counted together."""

from dataclasses import dataclass

import numpy as np

from services.results.statistics.columns import Array, Numbers


@dataclass(frozen=True, slots=True)
class ScorePairs:
    """`counts[i]` samples scored `first[i]` in one run and `second[i]` in the other, rollouts averaged.

    `clusters[i]` numbers the cluster they belong to; None where every sample is its own. `is_judged`: the
    metric scores an answer 1 or 0, and nothing between.
    """

    first: Array
    second: Array
    counts: Numbers
    clusters: Numbers | None = None
    is_judged: bool = False

    @property
    def count(self) -> int:
        """Samples."""
        return int(self.counts.sum())

    @property
    def differences(self) -> Array:
        return self.first - self.second

    @property
    def is_right_or_wrong(self) -> bool:
        """So every sample is, unless its rollouts disagree. Graded scores that happen to be 0 are not."""
        return self.is_judged and bool(np.isin([self.first, self.second], (0.0, 1.0)).all())

    def mean_of(self, values: Array) -> float:
        """Mean of a value per row over the samples."""
        return float(values @ self.counts) / self.count

    def only_right(self) -> tuple[int, int]:
        """Samples that only the first got right, and only the second, where scores are 0 or 1."""
        differences = self.differences
        return int(self.counts[differences > 0].sum()), int(self.counts[differences < 0].sum())


@dataclass(frozen=True, slots=True)
class UnitSums:
    """Differences summed up by unit: `sizes[i]` units have `samples[i]` samples, which sum to `sums[i]`."""

    sums: Array
    samples: Numbers
    sizes: Numbers

    @property
    def count(self) -> int:
        return int(self.sizes.sum())

    @property
    def sample_count(self) -> int:
        return int(self.samples @ self.sizes)


def unit_sums(pairs: ScorePairs) -> UnitSums:
    """Samples as units, or clusters where they share passages."""
    if pairs.clusters is None:
        return UnitSums(pairs.differences, np.ones_like(pairs.counts), pairs.counts)
    _, number = np.unique(pairs.clusters, return_inverse=True)
    sums = np.bincount(number, weights=pairs.differences * pairs.counts).astype(np.float64)
    samples = np.bincount(number, weights=pairs.counts).astype(np.int64)
    return UnitSums(sums, samples, np.ones_like(samples))


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions of one run with their targets, one row per answer or kind of answer.

    Row i belongs to unit `units[i]`. The `weights` of the rollouts of a sample sum to the number of such
    samples in the unit.
    """

    units: Numbers
    target: Array
    predicted: Array
    weights: Array


@dataclass(frozen=True, slots=True)
class LabelPairs:
    """Predictions of both runs; unit u is there `sizes[u]` times. `clusters`: 0 where units are samples."""

    first: Predictions
    second: Predictions
    sizes: Numbers
    pairs: int
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class PairedUnits:
    """Contributions of the units of each pattern to the sums of a figure: (patterns, features) per run."""

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


def unit_sums_of(predictions: Predictions, features: Array, units: int) -> Array:
    """Features of the rows (rows, features), weighted and summed up by unit: (units, features)."""
    columns = [
        np.bincount(predictions.units, weights=predictions.weights * feature, minlength=units)
        for feature in features.T
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def merged(first: Array, second: Array, sizes: Numbers) -> PairedUnits:
    """Units that add the same to both runs become one pattern."""
    both, position = np.unique(np.hstack([first, second]), axis=0, return_inverse=True)
    counted = np.bincount(position.reshape(-1), weights=sizes).astype(np.int64)
    features = first.shape[1]
    return PairedUnits(both[:, :features], both[:, features:], counted)
