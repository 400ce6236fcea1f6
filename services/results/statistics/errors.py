"""Metrics that are not known."""

from services.common.errors import ErrorKind
from services.results.errors import ResultsError


class UnknownMetric(ResultsError):
    """No metric {metric!r} here. Supported: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_METRIC"
