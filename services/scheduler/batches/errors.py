"""Errors of batches."""

from services.common.errors import DomainError, ErrorKind


class BatchNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="BATCH_NOT_FOUND"):
    """There is no batch {batch_id}. List the batches to see those there are."""


class BatchAlreadyFinished(DomainError, kind=ErrorKind.CONFLICT, reason="BATCH_ALREADY_FINISHED"):
    """The batch {batch_id} is {state}, so it can no longer be cancelled."""


class BatchRequestTaken(DomainError, kind=ErrorKind.CONFLICT, reason="REQUEST_ID_TAKEN"):
    """This request_id (Idempotency-Key) stands for another batch, {batch_id}. Give each an id of its own."""
