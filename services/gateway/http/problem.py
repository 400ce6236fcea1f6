"""Problem documents: the body of every error over HTTP, and how a path declares its errors.

Below /v1 they have the form of the OpenAI protocol, whose clients distinguish them by status: an invalid
request has 400, also where other APIs have 422; an unknown key 401; 429 and 503 have Retry-After.
"""

from http import HTTPStatus

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from services.gateway.http.errors import DatasetFault, SuiteFault
from services.gateway.http.paths import BATCHES, FILES

Described = dict[int | str, dict[str, object]]
# Codes of the OpenAI protocol; other reasons are codes in lower case.
_CODES = {
    "TOO_MANY_REQUESTS": "rate_limit_exceeded",
    "TOO_MANY_WRONG_KEYS": "rate_limit_exceeded",
    "TOO_MANY_CALLS": "rate_limit_exceeded",
    "UNKNOWN_MODEL": "model_not_found",
    "UNAUTHENTICATED": "invalid_api_key",
    "NOT_FOUND": "unknown_url",
}
_PARAMS = {"FILE_NOT_FOUND": "file_id", "BATCH_NOT_FOUND": "batch_id", "UNKNOWN_MODEL": "model"}
# Paths without such a parameter: for a list it is the position to continue from.
_PARAMS_AT = {
    (BATCHES, "FILE_NOT_FOUND"): "input_file_id",
    (BATCHES, "BATCH_NOT_FOUND"): "after",
    (FILES, "FILE_NOT_FOUND"): "after",
}
_NOT_JSON = "JSON decode error"


class RefusedField(BaseModel):
    field: str
    message: str


class ProblemDetails(BaseModel):
    """RFC 9457; `detail` is the sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    reason: str
    retry_after: int | None = Field(default=None, description="Seconds; only with 429 and 503")
    errors: list[RefusedField] | None = Field(default=None, description="Only for a malformed body")
    faults: list[SuiteFault] | list[DatasetFault] | None = Field(
        default=None, description="Only for an invalid suite or data set, by line; of a data set the first 20"
    )
    fault_count: int | None = Field(default=None, description="Number of all faults of an invalid data set")


def problems(*statuses: int) -> Described:
    """Responses of a path, for its description."""
    return {
        status: {"model": ProblemDetails, "description": HTTPStatus(status).phrase} for status in statuses
    }


def problem_headers(problem: ProblemDetails) -> dict[str, str]:
    if problem.status == 401:
        return {"WWW-Authenticate": "Bearer"}
    return {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}


def openai_response(problem: ProblemDetails, field: str) -> JSONResponse:
    """`field` is empty when unknown."""
    status = 400 if problem.status == 422 else problem.status
    error = ErrorFields(
        message=_message(problem),
        type=_type(status),
        param=field or _param(problem),
        code=_CODES.get(problem.reason, problem.reason.lower()),
    )
    headers = problem_headers(problem)
    if status == 409:
        # The client retries conflicts, but ours do not pass by themselves.
        headers["X-Should-Retry"] = "false"
    return JSONResponse(ErrorBody(error=error).model_dump(), status, headers=headers)


def openai_problems(*statuses: int) -> Described:
    """Responses of a path, for its description."""
    return {status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in statuses}


def _type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return "rate_limit_error" if status == 429 else "invalid_request_error"


def _message(problem: ProblemDetails) -> str:
    if _is_not_json(problem):
        return "The body is not valid JSON."
    if problem.reason == "NOT_FOUND":
        return f"There is nothing at {problem.instance}; here are /v1/files, /v1/batches and /v1/models."
    if problem.reason == "METHOD_NOT_ALLOWED":
        return f"{problem.instance} cannot be called by this method."
    return problem.detail


def _param(problem: ProblemDetails) -> str | None:
    if problem.errors and not _is_not_json(problem):
        return problem.errors[0].field
    return _PARAMS_AT.get((problem.instance, problem.reason)) or _PARAMS.get(problem.reason)


def _is_not_json(problem: ProblemDetails) -> bool:
    return any(error.message.startswith(_NOT_JSON) for error in problem.errors or ())


class ErrorFields(BaseModel):
    message: str = Field(description="One sentence")
    type: str = Field(description="invalid_request_error, rate_limit_error or server_error")
    param: str | None
    code: str


class ErrorBody(BaseModel):
    """Body of every error below /v1."""

    error: ErrorFields
