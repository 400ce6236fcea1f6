"""Metrics that are not known."""

from services.common.errors import DomainError, ErrorKind


class UnknownMetric(DomainError):
    """No metric {metric!r} here. Supported: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_METRIC"
