"""Bodies of the OpenAI protocol, with times in seconds since 1970."""

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.values.openai import MAX_EXPIRY_SECONDS, MIN_EXPIRY_SECONDS, SummedUsage
from proctor.values.run import WINDOW_PATTERN
from proctor.wire.enums import word_of
from proctor.wire.values import USAGE
from services.gateway.http.errors import DatasetFault, fault_count_text
from services.gateway.http.parameters import NO_NUL, Keywords, RequestBody, Text
from services.gateway.http.presentation import present

T = TypeVar("T")
F = TypeVar("F", bound="FileObject")
B = TypeVar("B", bound="BatchObject")

BatchStatus = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]


class FileObject(BaseModel):
    id: str = Field(description='"file-…"')
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None = Field(description="Null: it is kept until it is deleted")
    filename: str
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed", "error"] = Field(description="error: a batch over it would fail")
    status_details: str | None = Field(description="The first fault of a file with faults")


class Deleted(BaseModel):
    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class OpenAiPage(BaseModel, Generic[T]):
    object: Literal["list"] = "list"
    data: list[T]
    first_id: str | None
    last_id: str | None = Field(description="As `after` of the next page")
    has_more: bool


_METADATA = {
    "maxProperties": 16,
    "propertyNames": {"minLength": 1, "maxLength": 64, "pattern": NO_NUL},
    "additionalProperties": {"type": "string", "maxLength": 512, "pattern": NO_NUL},
}


class OutputExpiry(RequestBody):
    """Lifetime of the output files of a batch."""

    anchor: Literal["created_at"] = Field(description="Creation of each file")
    seconds: int = Field(ge=MIN_EXPIRY_SECONDS, le=MAX_EXPIRY_SECONDS)


class BatchRequest(RequestBody):
    """An order."""

    input_file_id: Text = Field(description='"file-…" of purpose batch')
    endpoint: Annotated[Text, Keywords({"enum": ["/v1/chat/completions", "/v1/completions"]})] = Field(
        description="The endpoint of every line"
    )
    completion_window: Annotated[Text, Keywords({"pattern": WINDOW_PATTERN})] = Field(
        description='"1h" to "168h", or minutes, for example "90m"'
    )
    metadata: Annotated[dict[Text, Text], Keywords(_METADATA)] | None = Field(
        default=None, description="Up to 16 pairs"
    )
    output_expires_after: OutputExpiry | None = Field(default=None, description="Unset: its files are kept")


class BatchError(BaseModel):
    code: str
    message: str
    param: str | None
    line: int | None = Field(description="From 1; null for the whole file")


class BatchErrors(BaseModel):
    object: Literal["list"] = "list"
    data: list[BatchError]


class OpenAiRequestCounts(BaseModel):
    total: int
    completed: int
    failed: int


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
    request_counts: OpenAiRequestCounts
    usage: SummedUsage
    metadata: dict[str, str] | None


Listed = TypeVar("Listed", FileObject, BatchObject)


class ModelObject(BaseModel):
    id: str = Field(description="provider/name, or an alias of one")
    object: Literal["model"] = "model"
    created: int = Field(description="0: unknown")
    owned_by: str = Field(description="Its provider")


class ModelObjects(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelObject]


def page_of(data: list[Listed], *, has_more: bool) -> OpenAiPage[Listed]:
    return OpenAiPage(
        data=data,
        first_id=data[0].id if data else None,
        last_id=data[-1].id if data else None,
        has_more=has_more,
    )


def file_object(body: type[F], file: file_pb2.File) -> F:
    return present(
        body,
        file,
        id=file.file_id,
        bytes=file.size_bytes,
        filename=file.name,
        status="error" if file.fault_count else "processed",
        status_details=_first_fault(file),
    )


def batch_object(body: type[B], batch: batch_pb2.Batch) -> B:
    return present(
        body,
        batch,
        id=batch.batch_id,
        errors=BatchErrors(data=[present(BatchError, each) for each in batch.errors])
        if batch.errors
        else None,
        status=word_of(batch_pb2.BatchState, batch.state),
        request_counts=present(OpenAiRequestCounts, batch, completed=batch.answered),
        usage=SummedUsage.of(USAGE.from_proto(batch.usage)),
        metadata=dict(batch.metadata) or None,
    )


def _first_fault(file: file_pb2.File) -> str | None:
    if not file.fault_count:
        return None
    first = [DatasetFault(each.line, each.field, each.problem).sentence for each in file.faults[:1]]
    return ". ".join([fault_count_text(file.fault_count), *first])
