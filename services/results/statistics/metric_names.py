"""The metric that a word of a user means, and that of the one figure which stands for several tasks."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from proctor.values.metrics.names import ALIASES, full_name
from proctor.values.scoring import GroupMetric
from services.common.errors import DomainError, ErrorKind

ACCURACY = "accuracy"
SCORE = "score"
# The word for the metric of the headline figure, whichever that is.
HEADLINE = "headline"


class UnknownMetric(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_METRIC"):
    """No metric {metric!r} here. Supported: {supported}."""


def headline_of(declared: Sequence[GroupMetric], tasks: Iterable[Iterable[str]]) -> str:
    """The metric of the one figure that stands for tasks: the first that their suite sums up, else the main
    metric that all of them share, else the score.

    `tasks`: the metrics of each task, its main one first.
    """
    by_task = [list(names) for names in tasks]
    known = [name for names in by_task for name in names]
    for use in declared[:1]:
        if (found := _named(use.metric, known)) is not None:
            return found
    mains = {names[0] for names in by_task if names}
    return mains.pop() if len(mains) == 1 else SCORE


def scored_tasks(mains: Mapping[str, str], less_is_better: Container[str]) -> Collection[str]:
    """The tasks whose main metrics make the score: those of which more is better, or all where none is such.

    `mains`: the main metric of each task.
    """
    more = [task for task, metric in mains.items() if metric not in less_is_better]
    return more or list(mains)


def less_with_score(mains: Iterable[str], less_is_better: Collection[str]) -> frozenset[str]:
    """The metrics of which less is better, with the score where it is made of such ones only."""
    known = list(mains)
    is_less = bool(known) and all(metric in less_is_better for metric in known)
    return frozenset([*less_is_better, *([SCORE] if is_less else [])])


def metric_named(word: str, metrics: Sequence[str], headline: str) -> str | None:
    """The metric that a user means: by its name, or its name without the filter it is read through.

    No word means the headline figure. A benchmark without acc has its score as accuracy.
    """
    known = list(metrics)
    if word in ("", HEADLINE):
        return headline if headline in known else metric_named(ACCURACY, known, headline)
    if word == ACCURACY:
        return next((name for name in (ALIASES[ACCURACY], SCORE) if name in known), None)
    return _named(full_name(word, known), known)


def _named(name: str, known: Iterable[str]) -> str | None:
    return next((one for one in known if one == name or one.startswith(f"{name},")), None)
