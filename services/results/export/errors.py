"""Errors of exports."""

from services.common.errors import DomainError, ErrorKind


class NoGoldenAnswers(DomainError, kind=ErrorKind.CONFLICT, reason="NO_GOLDEN_ANSWERS"):
    """There is no golden answer in {runs} yet; mark some first."""


class RunChanged(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_CHANGED"):
    """Run {run_id} was retried or deleted while it was exported; export it again when it is closed."""
