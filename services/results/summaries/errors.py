"""Errors of summaries."""

from services.common.errors import DomainError, ErrorKind


class RunNotClosed(DomainError, kind=ErrorKind.CONFLICT):
    """Run {run_id} cannot be closed: it failed {starts} times (see the log of results). Retry it."""
