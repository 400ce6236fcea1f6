"""Metrics that are not known."""

from services.common.errors import DomainError, ErrorKind


class UnknownMetric(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_METRIC"):
    """No metric {metric!r} here. Supported: {supported}."""
