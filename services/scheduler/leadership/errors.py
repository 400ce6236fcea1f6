"""Errors of leadership."""

from services.common.errors import DomainError, ErrorKind


class LeadershipLost(DomainError, kind=ErrorKind.UNAVAILABLE, reason="DEPENDENCY_UNAVAILABLE"):
    """Another scheduler leads now."""
