"""Refusals about runs and their epochs. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class RecordNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="RUN_NOT_FOUND"):
    """Run {run_id} not found among results: it does not exist, or ended before it had a sample."""


class EpochOver(DomainError, kind=ErrorKind.CONFLICT, reason="EPOCH_OVER"):
    """Epoch {epoch} of run {run_id} is over; the run is in epoch {current}."""


class EpochNotOpen(DomainError, kind=ErrorKind.CONFLICT, reason="EPOCH_NOT_OPEN"):
    """Epoch {epoch} of run {run_id} is not open yet; the run is in epoch {current}."""


class RunIncomplete(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_INCOMPLETE"):
    """Run {run_id} still misses {missing} outcomes."""


class RunArchived(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_ARCHIVED"):
    """The answers of run {run_id} are archived, which this does not read; restore the run first."""


class RunNotFrozen(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_FROZEN"):
    """Run {run_id} still takes outcomes, so its figures may change; wait for it or cancel it."""
