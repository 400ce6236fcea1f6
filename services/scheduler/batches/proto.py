"""Batches as messages."""

from dataclasses import asdict

from proctor.v1 import batch_service_pb2 as messages
from proctor.wire.convert import number_of
from proctor.wire.values import USAGE
from services.scheduler.batches.show_batch import BatchView
from services.scheduler.batches.stored_batch import (
    BatchId,
    BatchNotFound,
    BatchOrder,
    is_batch_id,
    line_counts,
    problems_of,
    state_of,
    times_of,
)
from services.scheduler.uploads.proto import file_id_from_proto


def batch_order_from_proto(request: messages.CreateBatchRequest) -> BatchOrder:
    has_expiry = request.HasField("output_expires_after_seconds")
    return BatchOrder(
        input_file_id=file_id_from_proto(request.input_file_id),
        endpoint=request.endpoint,
        completion_window=request.completion_window,
        metadata=dict(request.metadata),
        output_expires_after_seconds=request.output_expires_after_seconds if has_expiry else None,
    )


def batch_id_from_proto(text: str) -> BatchId:
    """What is no id is the name of no batch."""
    if not is_batch_id(text):
        raise BatchNotFound(batch_id=text)
    return BatchId(text)


def batch_to_proto(shown: BatchView) -> messages.Batch:
    batch, run = shown.batch, shown.batch.run
    message = messages.Batch(
        batch_id=batch.batch_id,
        user=batch.user,
        input_file_id=batch.order.input_file_id,
        endpoint=batch.order.endpoint,
        completion_window=batch.order.completion_window,
        metadata=batch.order.metadata,
        state=number_of(state_of(batch)),
        errors=[messages.BatchError(**asdict(problem)) for problem in problems_of(batch)],
        run_id=run.run_id if run else "",
        model=run.order.model if run else "",
        output_file_id=(batch.files and batch.files.output_file_id) or "",
        error_file_id=(batch.files and batch.files.error_file_id) or "",
        **asdict(line_counts(batch, shown.counts)),
    )
    if shown.counts:
        message.usage.SetInParent()
        USAGE.fill(message.usage, shown.counts.usage)
    for name, time in asdict(times_of(batch)).items():
        if time is not None:
            getattr(message, name).FromDatetime(time)
    return message
