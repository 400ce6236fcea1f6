"""Bodies of the OpenAI protocol: files, batches, models and errors, with times in seconds since 1970.
Files and batches of the OpenAI protocol, from their messages.
"""

from typing import Generic, Literal, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel, ConfigDict, Field

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import outcome_pb2
from services.gateway.errors.gateway_errors import DatasetFault
from services.gateway.http.fields import Text

T = TypeVar("T")

# How long a file may stay at least and at the most, where it goes away by itself.
SHORTEST_EXPIRY_SECONDS = 3600
LONGEST_EXPIRY_SECONDS = 30 * 24 * 3600

BatchStatus = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]


class FileObject(BaseModel):
    id: str = Field(description='"file-…"')
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None = Field(description="Null: it stays until somebody deletes it")
    filename: str
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed", "error"] = Field(description="error: a batch over it would fail")
    status_details: str | None = Field(description="The first fault of a file with faults")


class Deleted(BaseModel):
    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class Page(BaseModel, Generic[T]):
    object: Literal["list"] = "list"
    data: list[T]
    first_id: str | None
    last_id: str | None = Field(description="As `after` of the next page")
    has_more: bool


class OutputExpiry(BaseModel):
    """When files of a batch go away by themselves."""

    model_config = ConfigDict(extra="forbid")

    anchor: Literal["created_at"] = Field(description="Of each file")
    seconds: int = Field(ge=SHORTEST_EXPIRY_SECONDS, le=LONGEST_EXPIRY_SECONDS)


class BatchRequest(BaseModel):
    """An order."""

    model_config = ConfigDict(extra="forbid")

    input_file_id: Text = Field(description='"file-…" of purpose batch')
    endpoint: Text = Field(description="/v1/chat/completions or /v1/completions, as all lines of the file")
    completion_window: Text = Field(description='"1h" to "168h", such as "24h"; also minutes, such as "90m"')
    metadata: dict[Text, Text] | None = Field(default=None, description="Up to 16 pairs")
    output_expires_after: OutputExpiry | None = Field(default=None, description="Unset: its files stay")


class BatchError(BaseModel):
    code: str
    message: str
    param: str | None
    line: int | None = Field(description="From 1; null for the whole file")


class BatchErrors(BaseModel):
    object: Literal["list"] = "list"
    data: list[BatchError]


class RequestCounts(BaseModel):
    total: int
    completed: int
    failed: int


class InputDetails(BaseModel):
    cached_tokens: int


class OutputDetails(BaseModel):
    reasoning_tokens: int


class BatchUsage(BaseModel):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class BatchObject(BaseModel):
    id: str = Field(description='"batch_…"')
    object: Literal["batch"] = "batch"
    endpoint: str
    model: str | None
    errors: BatchErrors | None
    input_file_id: str
    completion_window: str
    status: BatchStatus
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int | None
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    usage: BatchUsage
    metadata: dict[str, str] | None


class ModelObject(BaseModel):
    id: str = Field(description="provider/name, or an alias of one")
    object: Literal["model"] = "model"
    created: int = Field(description="0: nobody tells")
    owned_by: str = Field(description="Its provider")


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelObject]


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
