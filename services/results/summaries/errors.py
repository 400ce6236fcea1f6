"""Errors of summaries."""

from services.common.errors import DomainError, ErrorKind


class CloseFailed(DomainError, kind=ErrorKind.CONFLICT):
    """Closing run {run_id} failed {starts} times (see the log of results). Retry the run."""
