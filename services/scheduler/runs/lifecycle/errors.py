"""Errors about runs and their states."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


class QueueFull(SchedulerError):
    """Queue is full. Please try again later."""

    kind = ErrorKind.EXHAUSTED
    reason = "QUEUE_FULL"


class PriorityNotAllowed(SchedulerError):
    """User {user} may not ask for the priority {priority}. Ask for one of these: {allowed}."""

    kind = ErrorKind.CONFLICT
    reason = "PRIORITY_NOT_ALLOWED"


class RequestIdTaken(SchedulerError):
    """This request_id (Idempotency-Key) is of another order, run {run_id}. Give each an id of its own."""

    kind = ErrorKind.CONFLICT
    reason = "REQUEST_ID_TAKEN"


class RunNotFound(SchedulerError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class RunAlreadyFinished(SchedulerError):
    """Run {run_id} is already {state}; only a run that is not finished can be cancelled."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_ALREADY_FINISHED"


class RunNotRetryable(SchedulerError):
    """Run {run_id} is {state}; only a failed or cancelled run can be retried, once it is summed up."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_RETRYABLE"


class RunOfBatch(SchedulerError):
    """Run {run_id} is that of the batch {batch_id}, whose files are written once. Make a new batch."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_RETRYABLE"


class RunNotPausable(SchedulerError):
    """Run {run_id} is {state}; only a run that is running or waits can be paused."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_PAUSABLE"


class RunNotPaused(SchedulerError):
    """Run {run_id} is {state}; only a paused run can be resumed."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_PAUSED"


class RunNotOver(SchedulerError):
    """Run {run_id} is {state}, so it cannot be deleted yet. Cancel it first, or wait until it is over."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_STILL_ACTIVE"


class CostLimitStays(SchedulerError):
    """Run {run_id} cannot go on: {spent}. Order it again with a higher max_cost."""

    kind = ErrorKind.CONFLICT
    reason = "COST_LIMIT_REACHED"
