"""The differences of two runs: each task and metric, then the suite as a whole."""

from collections.abc import Iterator, Mapping, Sequence

from services.results.comparisons.answer_pairs import PairGroup, sum_of, tally_of
from services.results.comparisons.comparison import SUITE, Difference
from services.results.comparisons.metric_choice import MetricChoice
from services.results.comparisons.metric_difference import difference_if_parsed, metric_difference
from services.results.comparisons.suite_difference import suite_difference

PairsByMetric = Mapping[tuple[str, str], Sequence[PairGroup]]
"""Task and metric to what two runs scored there."""


def pair_differences(
    places: tuple[int, int], choice: MetricChoice, pairs: PairsByMetric, label_counts: Mapping[str, int]
) -> list[Difference]:
    """`places` of the two runs in the list of runs; labels by task. Takes seconds for large runs."""
    tasks = list(_task_differences(places, choice, pairs, label_counts))
    return [*tasks, *_suite_differences(places, choice, tasks)]


def _task_differences(
    places: tuple[int, int], choice: MetricChoice, pairs: PairsByMetric, label_counts: Mapping[str, int]
) -> Iterator[Difference]:
    for task, metrics in choice.by_task.items():
        for scored in metrics:
            groups = pairs.get((task, scored.key), ())
            yield Difference(
                *places,
                task,
                scored.key,
                metric_difference(scored, groups, label_counts[task]),
                tally_of(groups),
                difference_if_parsed(scored, groups, label_counts[task]),
            )


def _suite_differences(
    places: tuple[int, int], choice: MetricChoice, tasks: Sequence[Difference]
) -> Iterator[Difference]:
    by_name = {(one.task, one.metric): one for one in tasks}
    for suite in choice.of_suite:
        parts = [by_name[task, metric] for task, metric in suite.by_task.items()]
        yield Difference(
            *places,
            SUITE,
            suite.metric,
            suite_difference(
                [part.estimate for part in parts], is_weighted_by_size=suite.is_weighted_by_size
            ),
            sum_of([part.tally for part in parts]),
        )
