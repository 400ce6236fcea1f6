"""Batches as messages."""

from dataclasses import asdict
from datetime import datetime

from proctor.v1 import batch_service_pb2 as messages
from proctor.v1 import outcome_pb2
from services.scheduler.batches.show_batch import BatchView
from services.scheduler.batches.stored_batch import (
    BatchId,
    BatchNotFound,
    BatchOrder,
    BatchState,
    is_batch_id,
    line_counts,
    problems_of,
    state_of,
    times_of,
    window_of,
)
from services.scheduler.uploads.proto import file_id_from_proto

STATES: dict[BatchState, messages.BatchState.ValueType] = {
    BatchState.VALIDATING: messages.BATCH_STATE_VALIDATING,
    BatchState.FAILED: messages.BATCH_STATE_FAILED,
    BatchState.IN_PROGRESS: messages.BATCH_STATE_IN_PROGRESS,
    BatchState.FINALIZING: messages.BATCH_STATE_FINALIZING,
    BatchState.COMPLETED: messages.BATCH_STATE_COMPLETED,
    BatchState.EXPIRED: messages.BATCH_STATE_EXPIRED,
    BatchState.CANCELLING: messages.BATCH_STATE_CANCELLING,
    BatchState.CANCELLED: messages.BATCH_STATE_CANCELLED,
}


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
    lines = line_counts(batch, shown.counts)
    message = messages.Batch(
        batch_id=batch.batch_id,
        user=batch.user,
        input_file_id=batch.order.input_file_id,
        endpoint=batch.order.endpoint,
        completion_window=batch.order.completion_window,
        metadata=batch.order.metadata,
        state=STATES[state_of(batch)],
        errors=[messages.BatchError(**asdict(problem)) for problem in problems_of(batch)],
        run_id=run.run_id if run else "",
        model=run.order.model if run else "",
        output_file_id=(batch.files and batch.files.output_file_id) or "",
        error_file_id=(batch.files and batch.files.error_file_id) or "",
        total=lines.total,
        completed=lines.completed,
        failed=lines.failed,
    )
    if shown.counts:
        message.usage.CopyFrom(outcome_pb2.TokenUsage(**asdict(shown.counts.usage)))
    _fill_times(message, shown)
    return message


def _fill_times(message: messages.Batch, shown: BatchView) -> None:
    batch = shown.batch
    times: dict[str, datetime | None] = asdict(times_of(batch))
    window = window_of(batch.order.completion_window)
    times["created_at"] = batch.created_at
    times["expires_at"] = batch.created_at + window if window else None
    if batch.run and batch.run.expires_at:
        times["expires_at"] = batch.run.expires_at
    for name, time in times.items():
        if time is not None:
            getattr(message, name).FromDatetime(time)
