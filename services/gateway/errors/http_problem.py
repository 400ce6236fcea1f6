"""Problem documents: the body of every error over HTTP, and how a path declares its errors."""

from http import HTTPStatus

from pydantic import BaseModel, Field


class FieldProblem(BaseModel):
    field: str
    message: str


class FileProblem(BaseModel):
    file: str = Field(description="Empty for the document itself")
    line: int | None = Field(description="From 1; null when unknown")
    key: str = Field(description='For example "tasks.0.doc_to_text"; may be empty')
    problem: str


class LineProblem(BaseModel):
    line: int = Field(description="From 1; 0 for the whole file")
    field: str = Field(description='For example "body.messages[0].role"; empty for the whole line')
    problem: str


class Problem(BaseModel):
    """RFC 9457; `detail` is the sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    reason: str
    retry_after: int | None = Field(default=None, description="Seconds; only with 429 and 503")
    errors: list[FieldProblem] | None = Field(default=None, description="Only for a malformed body")
    problems: list[FileProblem] | None = Field(default=None, description="Only for an invalid suite")
    faults: list[LineProblem] | None = Field(
        default=None, description="Only for an invalid data set: the first 20, by line"
    )
    fault_count: int | None = Field(default=None, description="Number of all faults of an invalid data set")


Described = dict[int | str, dict[str, object]]


def problems(*statuses: int) -> Described:
    """Responses of a path, for its description."""
    return {status: {"model": Problem, "description": HTTPStatus(status).phrase} for status in statuses}
