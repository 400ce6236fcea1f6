"""Which metric a name means: the name of a figure, a word of a user, the first of a task's metrics."""

from collections.abc import Container, Mapping, Sequence

from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.metric import Metric, ScoreKind, Unit
from proctor.values.scoring import MetricUse, OutputType

ALIASES: Mapping[str, str] = {metric.alias: metric.name for metric in METRICS.values() if metric.alias}
# Figures over several rollouts: any of k is right, all of k are.
PASSES = ("pass@", "pass^")


def metric_of(figure: str) -> Metric | None:
    """The metric of a figure, whose name may have a filter behind it (`acc,none`) or be a pass@k or pass^k.

    None for the score of a benchmark, which has no unit of its own, and for names that are not known.
    """
    name = figure.partition(",")[0]
    return METRICS["pass@1"] if name.startswith(PASSES) else METRICS.get(name)


def unit_of(figure: str) -> Unit | None:
    metric = metric_of(figure)
    return metric.unit if metric else None


def kind_of(figure: str) -> ScoreKind:
    """A name that is not known is graded: the statistics of such scores assume the least."""
    metric = metric_of(figure)
    return metric.kind if metric else ScoreKind.GRADED


def is_right_or_wrong(figure: str) -> bool:
    """Whether each answer scores 1 or 0; means over rollouts, pass@k and pass^k may lie between."""
    return kind_of(figure) is ScoreKind.JUDGED


def full_name(word: str, known: Container[str]) -> str:
    """The name of the metric that a user means: one of those that are known, or what its alias stands for."""
    return word if word in known else ALIASES.get(word, word)


def ready_metrics(output_type: OutputType) -> Sequence[Metric]:
    """The metrics that every task of this output can have."""
    return [metric for metric in METRICS.values() if metric.is_ready_for(output_type)]


def _may_be_headline(use: MetricUse) -> bool:
    """What Python code of a task scores is no metric of the catalogue."""
    known = METRICS.get(use.name)
    return not use.less_is_better and (known is None or (known.may_be_headline and known.higher_is_better))


def headline_first(uses: Sequence[MetricUse]) -> tuple[MetricUse, ...]:
    """The first metric of a task is its main one: the first that may be goes before those that may not."""
    headline = next((use for use in uses if _may_be_headline(use)), None)
    return (*([headline] if headline else []), *(use for use in uses if use is not headline))
