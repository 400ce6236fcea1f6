"""Scores and labels of two made-up runs on the same samples, as comparisons take them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from services.results.statistics.paired.margin_test import ScoreTest
from services.results.statistics.paired.pairs import LabelPairs, Predictions, ScorePairs

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def scores_of(
    first: Sequence[float] | Array | Flags,
    second: Sequence[float] | Array | Flags,
    clusters: Numbers | None = None,
) -> ScorePairs:
    """One row per sample; judged where there is nothing but 0 and 1."""
    counts = np.ones(len(first), dtype=np.int64)
    scores = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return ScorePairs(*scores, counts, clusters, is_judged=bool(np.isin(scores, (0.0, 1.0)).all()))


def right_or_wrong(both: int, only_first: int, only_second: int, neither: int) -> ScorePairs:
    """Grouped, as the database gives them."""
    counts = np.array([both, only_first, only_second, neither])
    return ScorePairs(np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0]), counts, is_judged=True)


def labels_of(targets: Array | Numbers, first: Array | Numbers, second: Array | Numbers) -> LabelPairs:
    """One unit per sample."""
    count = len(targets)
    units, ones = np.arange(count), np.ones(count)
    predictions = [
        Predictions(units, targets.astype(np.float64), run.astype(np.float64), ones)
        for run in (first, second)
    ]
    return LabelPairs(predictions[0], predictions[1], np.ones(count, dtype=np.int64), pairs=count)


def found_share(pairs: int, won: float, lost: float, bound: float, level: float) -> float:
    """How often the score test finds a difference above the bound, over every outcome."""
    fewest, most = (int(stats.binom.ppf(share, pairs, won + lost)) for share in (1e-7, 1 - 1e-7))
    found = 0.0
    for differing in range(fewest, most + 1):
        first = np.arange(differing + 1)
        share = stats.binom.pmf(differing, pairs, won + lost) * stats.binom.pmf(
            first, differing, won / (won + lost)
        )
        is_found = [ScoreTest(int(one), differing - int(one), pairs).p_above(bound) <= level for one in first]
        found += float(share @ np.array(is_found))
    return found
