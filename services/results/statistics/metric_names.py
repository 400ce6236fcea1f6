"""The metric that a word of a user means among those of a benchmark, and the score of a benchmark."""

from collections.abc import Iterable

from proctor.values.metrics.names import ALIASES, full_name
from services.common.errors import DomainError, ErrorKind

ACCURACY = "accuracy"
SCORE = "score"


class UnknownMetric(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_METRIC"):
    """No metric {metric!r} here. Supported: {supported}."""


def metric_named(word: str, metrics: Iterable[str]) -> str | None:
    """The metric that a user means: by its name, or its name without the filter it is read through.

    No word means accuracy; a benchmark without acc is represented by its score.
    """
    known = list(metrics)
    if word in ("", ACCURACY):
        return next((name for name in (ALIASES[ACCURACY], SCORE) if name in known), None)
    name = full_name(word, known)
    return next((one for one in known if one == name or one.startswith(f"{name},")), None)
