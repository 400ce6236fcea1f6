"""Errors about runs and their states."""

from services.common.errors import DomainError, ErrorKind


class QueueFull(DomainError, kind=ErrorKind.EXHAUSTED, reason="QUEUE_FULL"):
    """Queue is full. Please try again later."""


class PriorityNotAllowed(DomainError, kind=ErrorKind.CONFLICT, reason="PRIORITY_NOT_ALLOWED"):
    """User {user} may not ask for the priority {priority}. Ask for one of these: {allowed}."""


class RequestIdTaken(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_ID_TAKEN"):
    """This request_id (Idempotency-Key) is of another order, run {run_id}. Give each an id of its own."""


class RunAlreadyFinished(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_ALREADY_FINISHED"):
    """Run {run_id} is already {state}; only a run that is not finished can be cancelled."""


class RunNotRetryable(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_RETRYABLE"):
    """Run {run_id} is {state}; only a failed or cancelled run can be retried, once it is closed."""


class RunOfBatch(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_RETRYABLE"):
    """Run {run_id} is that of the batch {batch_id}, whose files are written once. Make a new batch."""


class RunNotPausable(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_PAUSABLE"):
    """Run {run_id} is {state}; only a run that is running or waits can be paused."""


class RunNotPaused(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_PAUSED"):
    """Run {run_id} is {state}; only a paused run can be resumed."""


class RunStillActive(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_STILL_ACTIVE"):
    """Run {run_id} is {state}, so it cannot be deleted yet. Cancel it first, and wait until it is closed."""


class RunNotClosed(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_CLOSED"):
    """Run {run_id} is {state} and not closed, so it cannot be deleted yet. Wait until it is closed."""


class BatchFilesUnwritten(DomainError, kind=ErrorKind.CONFLICT, reason="BATCH_FILES_UNWRITTEN"):
    """Run {run_id} cannot be deleted yet. Wait until the files of its batch {batch_id} are written."""


class RunArchived(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_ARCHIVED"):
    """The answers of run {run_id} are archived, so it cannot be retried; restore the run first."""


class RunNotArchivable(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_CLOSED"):
    """Run {run_id} is {state}; only closed runs are archived, once batches and judges have the answers."""


class CostLimitStays(DomainError, kind=ErrorKind.CONFLICT, reason="COST_LIMIT_REACHED"):
    """Run {run_id} cannot go on: {spent}. Order it again with a higher max_cost."""
