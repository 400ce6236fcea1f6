"""Errors of the connection to NATS."""

from services.common.errors import DependencyUnavailable, DomainError, ErrorKind


class NatsFileUnusable(DomainError, kind=ErrorKind.CONFLICT):
    """{setting}: {path} cannot be used: {problem}. Correct the file or the setting."""


class NatsAway(DependencyUnavailable):
    """NATS does not answer at {address}. Start it or correct PROCTOR_NATS_URL."""
