"""The differences of two runs: each task and metric, then the benchmark as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from services.results.comparison.answer_pairs import (
    PairGroup,
    label_pairs_of,
    rollout_noise_of,
    score_pairs_of,
    sum_of,
    tally_of,
)
from services.results.comparison.compared_metrics import ComparedMetrics
from services.results.comparison.comparison import BENCHMARK, Difference
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.statistics.correlations import NUMBER_FIGURES
from services.results.statistics.label_figures import label_measure
from services.results.statistics.paired.benchmark_difference import benchmark_difference
from services.results.statistics.paired.correlation_difference import difference_of_correlations
from services.results.statistics.paired.difference_estimate import DifferenceEstimate, undefined
from services.results.statistics.paired.label_difference import difference_of_labels
from services.results.statistics.paired.mean_difference import NO_PAIRS, difference_of_means

# Task and metric to what two runs scored there.
PairsByMetric = Mapping[tuple[str, str], Sequence[PairGroup]]


def metric_difference(
    scored: ScoredMetric, groups: Sequence[PairGroup], label_count: int = 0
) -> DifferenceEstimate:
    """Over the samples that both runs answered and that the metric could read.

    `label_count`: how many labels the task has; 0: as many as were seen.
    """
    paired, name = [group for group in groups if group.has_figures], scored.metric.name
    if not paired:
        return undefined(0, NO_PAIRS)
    if scored.has_numbers:
        estimate = difference_of_means(score_pairs_of(paired, scored))
        return replace(estimate, noise=rollout_noise_of(paired, scored))
    if name in NUMBER_FIGURES:
        return difference_of_correlations(label_pairs_of(paired), NUMBER_FIGURES[name])
    measure = label_measure(name, scored.metric.average, label_count)
    return difference_of_labels(label_pairs_of(paired), measure)


def estimate_if_parsed(
    scored: ScoredMetric, groups: Sequence[PairGroup], label_count: int = 0
) -> DifferenceEstimate | None:
    """The same over pairs that were parsed in both runs; None when nothing that counts was unparsed."""
    counted = [group for group in groups if group.has_figures]
    paired = [group for group in counted if group.is_parsed]
    return None if len(paired) == len(counted) else metric_difference(scored, paired, label_count)


def pair_differences(
    indexes: tuple[int, int], compared: ComparedMetrics, pairs: PairsByMetric, label_counts: Mapping[str, int]
) -> list[Difference]:
    """`indexes` of the two runs in the list of runs; labels by task. Takes seconds for large runs."""
    tasks = list(_task_differences(indexes, compared, pairs, label_counts))
    return [*tasks, *_benchmark_differences(indexes, compared, tasks)]


def _task_differences(
    indexes: tuple[int, int], compared: ComparedMetrics, pairs: PairsByMetric, label_counts: Mapping[str, int]
) -> Iterator[Difference]:
    for task, metrics in compared.by_task.items():
        for scored in metrics:
            groups = pairs.get((task, scored.key), ())
            yield Difference(
                *indexes,
                task,
                scored.key,
                metric_difference(scored, groups, label_counts[task]),
                tally_of(groups),
                estimate_if_parsed(scored, groups, label_counts[task]),
                less_is_better=not scored.metric.entry.higher_is_better,
            )


def _benchmark_differences(
    indexes: tuple[int, int], compared: ComparedMetrics, tasks: Sequence[Difference]
) -> Iterator[Difference]:
    by_name = {(one.task, one.metric): one for one in tasks}
    for each in compared.of_benchmark:
        parts = [by_name[task, metric] for task, metric in each.by_task.items()]
        yield Difference(
            *indexes,
            BENCHMARK,
            each.metric,
            benchmark_difference(
                [part.estimate for part in parts], is_weighted_by_size=each.is_weighted_by_size
            ),
            sum_of([part.tally for part in parts]),
            _benchmark_if_parsed(parts, is_weighted_by_size=each.is_weighted_by_size),
            less_is_better=each.less_is_better,
        )


def _benchmark_if_parsed(
    parts: Sequence[Difference], *, is_weighted_by_size: bool
) -> DifferenceEstimate | None:
    """Over the parsed pairs of each task; None where every task was parsed."""
    if not any(part.if_parsed for part in parts):
        return None
    estimates = [part.if_parsed or part.estimate for part in parts]
    return benchmark_difference(estimates, is_weighted_by_size=is_weighted_by_size)
