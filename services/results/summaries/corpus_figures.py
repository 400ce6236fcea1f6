"""Figures of what all answers count together, such as BLEU, with a bootstrap over samples or clusters."""

from collections.abc import Mapping, Sequence

import numpy as np

from services.common.threads.cancellable_threads import check_cancelled
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.corpus_metrics import Counts, figure_of_counts
from services.results.scoring.score import StoredValue
from services.results.statistics.columns import Array, Numbers
from services.results.statistics.figure import BOOTSTRAP, Figure
from services.results.statistics.intervals import RESAMPLES, SEED, percentile_interval
from services.results.summaries.task_columns import Clusters

# The number of a sample, and what an answer to it scores.
SampleScores = tuple[int, Mapping[str, StoredValue]]


def corpus_figures(
    scoring: CompiledScoring, scores: Sequence[SampleScores], clusters: Clusters | None
) -> Mapping[str, Figure]:
    """By the keys of the metrics whose figure is of counts. Blocks."""
    wanted = {scored.key: scored.metric.name for scored in scoring.counted_metrics}
    figures: dict[str, Figure] = {}
    for key, name in wanted.items():
        rows = [(sample, values[key]) for sample, values in scores if isinstance(values.get(key), list)]
        samples = np.array([sample for sample, _ in rows], dtype=np.int64)
        counts = np.array([counted for _, counted in rows], dtype=np.float64)
        figures[key] = _figure(name, counts, samples, clusters) if rows else Figure()
    return figures


def _figure(name: str, counts: Array, samples: Numbers, clusters: Clusters | None) -> Figure:
    by_unit = _sums(counts, clusters(samples) if clusters else samples)
    mean, count = figure_of_counts(name, _listed(by_unit.sum(axis=0))), len(np.unique(samples))
    if len(by_unit) < 2:
        return Figure(mean, n=count)
    generator, draws = np.random.default_rng(SEED), np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        check_cancelled()
        drawn = np.bincount(generator.integers(len(by_unit), size=len(by_unit)), minlength=len(by_unit))
        draws[number] = figure_of_counts(name, _listed(drawn @ by_unit))
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
