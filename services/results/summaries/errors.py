"""Errors of summaries."""

from services.common.errors import DomainError, ErrorKind


class RunNotSummedUp(DomainError, kind=ErrorKind.CONFLICT):
    """Run {run_id} cannot be summed up: {tries} tries failed (see the log of results). Retry it."""
