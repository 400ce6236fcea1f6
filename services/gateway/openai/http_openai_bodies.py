"""Bodies of the OpenAI protocol: files, batches, models and errors, with times in seconds since 1970."""

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.http_text import Text

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


class ErrorFields(BaseModel):
    message: str = Field(description="One sentence")
    type: str = Field(description="invalid_request_error, rate_limit_error or server_error")
    param: str | None
    code: str


class ErrorBody(BaseModel):
    """What every refusal below /v1 says."""

    error: ErrorFields
