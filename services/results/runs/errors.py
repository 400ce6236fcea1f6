"""Refusals about runs and their epochs. The docstring is the message."""

from services.common.errors import ErrorKind
from services.results.errors import ResultsError


class RecordNotFound(ResultsError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class EpochOver(ResultsError):
    """Epoch {epoch} of run {run_id} is over; the run is in epoch {current}."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_CLOSED"


class EpochNotOpen(ResultsError):
    """Epoch {epoch} of run {run_id} is not open yet; the run is in epoch {current}."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class RunIncomplete(ResultsError):
    """Run {run_id} still misses {missing} outcomes."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_INCOMPLETE"
