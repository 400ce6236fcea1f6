"""What is refused of batches, each as one sentence that says what is wrong and what to do."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


class BatchNotFound(SchedulerError):
    """There is no batch {batch_id}. List the batches to see those there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "BATCH_NOT_FOUND"


class BatchAlreadyEnded(SchedulerError):
    """The batch {batch_id} is {state}, so it can no longer be cancelled."""

    kind = ErrorKind.CONFLICT
    reason = "BATCH_ALREADY_ENDED"


class BatchRequestTaken(SchedulerError):
    """This request_id (Idempotency-Key) stands for another batch, {batch_id}. Give each an id of its own."""

    kind = ErrorKind.CONFLICT
    reason = "REQUEST_ID_TAKEN"
