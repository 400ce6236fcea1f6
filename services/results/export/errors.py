"""Errors of exports."""

from services.common.errors import DomainError, ErrorKind


class NoGoldenAnswers(DomainError):
    """There is no golden answer in {runs} yet; mark some first."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class RunChanged(DomainError):
    """Run {run_id} was retried or deleted while it was exported; export it again when it is finished."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_FINISHED"
