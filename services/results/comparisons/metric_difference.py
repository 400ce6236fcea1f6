"""The difference of two runs in one metric of a task, by whatever kind of figure the metric is."""

from collections.abc import Sequence

from services.results.comparisons.answer_pairs import PairGroup, label_pairs_of, score_pairs_of
from services.results.comparisons.correlation_difference import (
    difference_of_correlations,
    observed_correlations,
)
from services.results.comparisons.estimate import Estimate, undefined
from services.results.comparisons.label_difference import difference_of_labels, observed_labels
from services.results.comparisons.mean_difference import NO_PAIRS, difference_of_means, observed_means
from services.results.figures.label_figures import LABEL_FIGURES, label_measure
from services.results.figures.number_figures import NUMBER_FIGURES
from services.results.scoring.compiled_scoring import ScoredMetric


def has_numbers(scored: ScoredMetric) -> bool:
    """Every sample has a score of its own; else the figure is one of all samples together."""
    return scored.metric.name not in LABEL_FIGURES and scored.metric.name not in NUMBER_FIGURES


def metric_difference(scored: ScoredMetric, groups: Sequence[PairGroup], label_count: int = 0) -> Estimate:
    """Over the samples that both runs answered and that the metric could read.

    `label_count`: how many labels the task has; 0: as many as were seen.
    """
    paired, name = [group for group in groups if group.has_figures], scored.metric.name
    if not paired:
        return undefined(0, NO_PAIRS)
    if has_numbers(scored):
        return difference_of_means(score_pairs_of(paired, scored))
    if name in NUMBER_FIGURES:
        return difference_of_correlations(label_pairs_of(paired), NUMBER_FIGURES[name])
    measure = label_measure(name, scored.metric.average, label_count)
    return difference_of_labels(label_pairs_of(paired), measure)


def difference_if_parsed(
    scored: ScoredMetric, groups: Sequence[PairGroup], label_count: int = 0
) -> float | None:
    """The difference over pairs that were parsed in both runs; None when nothing that counts was unparsed."""
    counted, name = [group for group in groups if group.has_figures], scored.metric.name
    paired = [group for group in counted if group.is_parsed]
    if not paired or len(paired) == len(counted):
        return None
    if has_numbers(scored):
        return observed_means(score_pairs_of(paired, scored)).difference
    if name in NUMBER_FIGURES:
        return observed_correlations(label_pairs_of(paired), NUMBER_FIGURES[name]).difference
    measure = label_measure(name, scored.metric.average, label_count)
    return observed_labels(label_pairs_of(paired), measure).difference
