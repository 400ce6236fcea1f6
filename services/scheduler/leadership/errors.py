"""Errors of leadership."""

from services.common.errors import DomainError, ErrorKind


class LeadershipLost(DomainError):
    """Another scheduler leads now."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"
