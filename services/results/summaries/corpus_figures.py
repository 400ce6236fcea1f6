"""Figures of what all answers count together, such as BLEU, perplexities and shares of instructions.

Their intervals are of a bootstrap over samples or clusters.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from services.common.threads.cancellable_threads import check_cancelled
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.corpus_metrics import (
    CORPUS_METRICS,
    GIVEN_TEXT_FIGURES,
    SHARE_FIGURES,
    Counts,
    corpus_figure,
)
from services.results.scoring.score import StoredValue
from services.results.statistics.columns import Array, Numbers
from services.results.statistics.figure import BOOTSTRAP, Figure, only_finite
from services.results.statistics.intervals import RESAMPLES, SEED, percentile_interval
from services.results.summaries.task_columns import Clusters

# The number of a sample, and what an answer to it scores.
SampleScores = tuple[int, Mapping[str, StoredValue]]
# Of the sums of the counts of answers.
FigureOfCounts = Callable[[Counts], float]


def figure_of_counts(aggregation: str) -> FigureOfCounts:
    if aggregation in CORPUS_METRICS:
        return partial(corpus_figure, aggregation)
    return {**GIVEN_TEXT_FIGURES, **SHARE_FIGURES}[aggregation]


def corpus_figures(
    scoring: CompiledScoring, scores: Sequence[SampleScores], clusters: Clusters | None
) -> Mapping[str, Figure]:
    """By the keys of the metrics whose figure is of counts. Blocks."""
    wanted = {
        scored.key: figure_of_counts(scored.metric.entry.aggregation) for scored in scoring.counted_metrics
    }
    figures: dict[str, Figure] = {}
    for key, of_counts in wanted.items():
        rows = [(sample, values[key]) for sample, values in scores if isinstance(values.get(key), list)]
        samples = np.array([sample for sample, _ in rows], dtype=np.int64)
        counts = np.array([counted for _, counted in rows], dtype=np.float64)
        figures[key] = _figure(of_counts, counts, samples, clusters) if rows else Figure()
    return figures


def _figure(of_counts: FigureOfCounts, counts: Array, samples: Numbers, clusters: Clusters | None) -> Figure:
    """Undefined where it is no finite number."""
    by_unit = _sums(counts, clusters(samples) if clusters else samples)
    mean, count = of_counts(_listed(by_unit.sum(axis=0))), len(np.unique(samples))
    if len(by_unit) < 2 or not math.isfinite(mean):
        return only_finite(Figure(mean, n=count))
    generator, draws = np.random.default_rng(SEED), np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        check_cancelled()
        drawn = np.bincount(generator.integers(len(by_unit), size=len(by_unit)), minlength=len(by_unit))
        draws[number] = of_counts(_listed(drawn @ by_unit))
    if not np.isfinite(draws).all():
        return Figure(mean, n=count)
    stderr = float(np.std(draws, ddof=1))
    low, high = percentile_interval(draws)
    return Figure(mean, stderr, stderr, low, high, count, BOOTSTRAP)


def _sums(counts: Array, units: Numbers) -> Array:
    """A row for each sample, or cluster of samples."""
    _, places = np.unique(units, return_inverse=True)
    sums = np.zeros((int(places.max()) + 1, counts.shape[1]))
    np.add.at(sums, places, counts)
    return sums


def _listed(sums: Array) -> Counts:
    listed: list[float] = sums.tolist()
    return listed
