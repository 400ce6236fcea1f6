"""Errors about runs and their states."""

from services.common.errors import DomainError, ErrorKind


class QueueFull(DomainError):
    """Queue is full. Please try again later."""

    kind = ErrorKind.EXHAUSTED
    reason = "QUEUE_FULL"


class PriorityNotAllowed(DomainError):
    """User {user} may not ask for the priority {priority}. Ask for one of these: {allowed}."""

    kind = ErrorKind.CONFLICT
    reason = "PRIORITY_NOT_ALLOWED"


class RequestIdTaken(DomainError):
    """This request_id (Idempotency-Key) is of another order, run {run_id}. Give each an id of its own."""

    kind = ErrorKind.CONFLICT
    reason = "REQUEST_ID_TAKEN"


class RunAlreadyFinished(DomainError):
    """Run {run_id} is already {state}; only a run that is not finished can be cancelled."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_ALREADY_FINISHED"


class RunNotRetryable(DomainError):
    """Run {run_id} is {state}; only a failed or cancelled run can be retried, once it is summed up."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_RETRYABLE"


class RunOfBatch(DomainError):
    """Run {run_id} is that of the batch {batch_id}, whose files are written once. Make a new batch."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_RETRYABLE"


class RunNotPausable(DomainError):
    """Run {run_id} is {state}; only a run that is running or waits can be paused."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_PAUSABLE"


class RunNotPaused(DomainError):
    """Run {run_id} is {state}; only a paused run can be resumed."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_PAUSED"


class RunNotOver(DomainError):
    """Run {run_id} is {state}, so it cannot be deleted yet. Cancel it first, or wait until it is over."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_STILL_ACTIVE"


class CostLimitStays(DomainError):
    """Run {run_id} cannot go on: {spent}. Order it again with a higher max_cost."""

    kind = ErrorKind.CONFLICT
    reason = "COST_LIMIT_REACHED"
