"""Refusals about runs and their epochs. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class RecordNotFound(DomainError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class EpochOver(DomainError):
    """Epoch {epoch} of run {run_id} is over; the run is in epoch {current}."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_CLOSED"


class EpochNotOpen(DomainError):
    """Epoch {epoch} of run {run_id} is not open yet; the run is in epoch {current}."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class RunIncomplete(DomainError):
    """Run {run_id} still misses {missing} outcomes."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_INCOMPLETE"


class RunNotFinished(DomainError):
    """Run {run_id} is not finished, so its figures may still change; wait for it or cancel it."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_FINISHED"
