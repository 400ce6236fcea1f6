"""Files and batches of the OpenAI protocol, from their messages."""

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import outcome_pb2
from services.gateway.errors import DatasetFault
from services.gateway.openai.http_openai_bodies import (
    BatchError,
    BatchErrors,
    BatchObject,
    BatchStatus,
    BatchUsage,
    FileObject,
    InputDetails,
    OutputDetails,
    RequestCounts,
)

_STATUSES: dict[int, BatchStatus] = {
    batch_pb2.BATCH_STATE_VALIDATING: "validating",
    batch_pb2.BATCH_STATE_FAILED: "failed",
    batch_pb2.BATCH_STATE_IN_PROGRESS: "in_progress",
    batch_pb2.BATCH_STATE_FINALIZING: "finalizing",
    batch_pb2.BATCH_STATE_COMPLETED: "completed",
    batch_pb2.BATCH_STATE_EXPIRED: "expired",
    batch_pb2.BATCH_STATE_CANCELLING: "cancelling",
    batch_pb2.BATCH_STATE_CANCELLED: "cancelled",
}


def file_object(file: file_pb2.File) -> FileObject:
    return FileObject(
        id=file.file_id,
        bytes=file.size_bytes,
        created_at=file.created_at.seconds,
        expires_at=_seconds(file.expires_at),
        filename=file.name,
        purpose="batch" if file.purpose == file_pb2.FILE_PURPOSE_BATCH else "batch_output",
        status="error" if file.fault_count else "processed",
        status_details=_first_fault(file),
    )


def batch_object(batch: batch_pb2.Batch) -> BatchObject:
    return BatchObject(
        id=batch.batch_id,
        endpoint=batch.endpoint,
        model=batch.model or None,
        errors=_errors(batch),
        input_file_id=batch.input_file_id,
        completion_window=batch.completion_window,
        status=_STATUSES[batch.state],
        output_file_id=batch.output_file_id or None,
        error_file_id=batch.error_file_id or None,
        created_at=batch.created_at.seconds,
        in_progress_at=_seconds(batch.in_progress_at),
        expires_at=_seconds(batch.expires_at),
        finalizing_at=_seconds(batch.finalizing_at),
        completed_at=_seconds(batch.completed_at),
        failed_at=_seconds(batch.failed_at),
        expired_at=_seconds(batch.expired_at),
        cancelling_at=_seconds(batch.cancelling_at),
        cancelled_at=_seconds(batch.cancelled_at),
        request_counts=RequestCounts(total=batch.total, completed=batch.completed, failed=batch.failed),
        usage=_usage(batch.usage),
        metadata=dict(batch.metadata) or None,
    )


def _first_fault(file: file_pb2.File) -> str | None:
    if not file.fault_count:
        return None
    count = "1 fault" if file.fault_count == 1 else f"{file.fault_count} faults"
    first = [DatasetFault(fault.line, fault.field, fault.problem).sentence() for fault in file.faults[:1]]
    return ". ".join([count, *first])


def _errors(batch: batch_pb2.Batch) -> BatchErrors | None:
    if not batch.errors:
        return None
    data = [
        BatchError(code=error.code, message=error.message, param=error.param or None, line=error.line or None)
        for error in batch.errors
    ]
    return BatchErrors(data=data)


def _usage(usage: outcome_pb2.TokenUsage) -> BatchUsage:
    return BatchUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputDetails(cached_tokens=usage.cached_tokens),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputDetails(reasoning_tokens=usage.reasoning_tokens),
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
    )


def _seconds(moment: Timestamp) -> int | None:
    """None for a time that has not come, or will not."""
    return moment.seconds or None
