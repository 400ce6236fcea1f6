"""Errors of leadership."""

from services.common.errors import DomainError, ErrorKind


class LeadershipLost(DomainError, kind=ErrorKind.UNAVAILABLE):
    """Another scheduler leads now."""
