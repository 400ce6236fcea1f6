"""Errors as HTTP responses: RFC 9457 problem documents, whose `detail` is the sentence for people.

DomainError
├── kind INVALID      → 400 (422 for a parameter out of range, a suite or a file with faults, 404 for a row)
├── kind NOT_FOUND    → 404
├── kind CONFLICT     → 409
├── kind EXHAUSTED    → 429 with Retry-After (413 for a storage quota)
├── kind UNAVAILABLE  → 503 with Retry-After
├── kind UNAUTHENTICATED → 401 with WWW-Authenticate
├── kind FORBIDDEN    → 403
└── kind INTERNAL     → 500
a malformed body      → 422, with every faulty field
anything else         → 500, masked, with an incident id that the log has too

Below /v1 all of them have the form of the OpenAI protocol.
"""

import uuid
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Scope

from services.common.errors import DomainError, ErrorKind
from services.common.secret_names import secret_word
from services.common.structured_logs import get_logger
from services.gateway.http.api_errors import NO_SUCH_PAGE, with_client_ids
from services.gateway.http.errors import GatewayError
from services.gateway.http.paths import OPENAI, is_page
from services.gateway.http.problem import (
    ProblemDetails,
    RefusedField,
    openai_response,
    problem_headers,
)

MEDIA_TYPE = "application/problem+json"

_STATUS = {
    ErrorKind.INVALID: 400,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.EXHAUSTED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.INTERNAL: 500,
}
# Reasons with a status of their own.
_STATUS_OF_REASON = {
    "INVALID_PARAMETER": 422,
    "INVALID_DATASET": 422,
    "ROW_NOT_FOUND": 404,
    "DATASET_TOO_LARGE": 413,
    "FILE_TOO_LARGE": 413,
    "CHECK_STOPPED": 413,
    # Clients repeat 429, 409 and 507 by themselves, and none of them would help.
    "STORAGE_QUOTA_EXCEEDED": 413,
    "PROJECT_STORAGE_QUOTA_EXCEEDED": 413,
    "REQUEST_TIMEOUT": 408,
}
# Sentences that existing clients depend on.
_DETAILS = {
    "UNKNOWN_SUITE": "Invalid benchmark suite. Supported: {supported}",
    "RUN_NOT_FOUND": "Benchmark job {run_id} not found",
    "QUEUE_FULL": "Queue is full. Please try again later.",
}
# Sentences for pages. No client depends on them. The page itself says when to try again.
_PAGE_DETAILS = {
    "QUEUE_FULL": "Queue is full.",
    "TOO_MANY_REQUESTS": "User {user} has made the {limit} requests of this minute.",
    "TOO_MANY_READS": "Too many lists and results are read at once.",
    "READ_TOO_SLOW": "This took too long to read. Ask for less.",
    "GATEWAY_FULL": "The gateway is busy with other requests.",
    "DEPENDENCY_UNAVAILABLE": "{dependency} does not answer; it is needed for this.",
    "UNKNOWN_SUITE": "There is no such suite. Existing suites: {supported}.",
    "RUN_NOT_FOUND": "Run {run_id} not found.",
    NO_SUCH_PAGE: "This list has no such page: its address is incomplete or belongs to another list.",
}
# Each fault is written twice, as a sentence and as a field: a body may have thousands.
_MAX_SHOWN_FAULTS = 20
_NO_PAGE = "No page has this address."
# Used where the service names no time. A queue stays full for a while; a restart takes a second or two.
_DEFAULT_RETRY_SECONDS = {429: 30, 503: 2}

log = get_logger()


def handle_problems(app: FastAPI) -> None:
    app.add_exception_handler(DomainError, _domain_problem)
    app.add_exception_handler(RequestValidationError, _malformed_problem)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(Exception, _masked_problem)


def asks_for_page(scope: Scope) -> bool:
    """Whether a browser asks for a page or a part of one: what comes back is read by people."""
    headers = Headers(scope=scope)
    is_browser = "text/html" in headers.get("accept", "") or "hx-request" in headers
    return is_browser and is_page(scope["path"])


def problem_of(error: DomainError, instance: str, *, is_page_wanted: bool = False) -> ProblemDetails:
    message, facts = with_client_ids(error, instance)
    own = error if isinstance(error, GatewayError) else None
    status = (own and own.http_status) or http_status(error.kind, error.reason)
    problem = ProblemDetails(
        type=f"urn:proctor:problem:{error.reason.lower().replace('_', '-')}",
        title=error.reason.replace("_", " ").capitalize(),
        status=status,
        detail=_page_detail(error, facts, message)
        if is_page_wanted
        else _filled(_DETAILS.get(error.reason), facts, message),
        instance=instance,
        reason=error.reason,
        retry_after=_retry_after(status, facts),
    )
    return ProblemDetails.model_validate(problem.model_dump() | own.problem_fields) if own else problem


def problem_response(problem: ProblemDetails, field: str = "") -> JSONResponse:
    """`field` is the faulty field of the request, if known."""
    if f"{problem.instance}/".startswith(f"{OPENAI}/"):
        return openai_response(problem, field)
    headers = problem_headers(problem)
    # Without the fields that it does not have; nulls further inside are kept.
    body = {name: value for name, value in problem.model_dump().items() if value is not None}
    return JSONResponse(body, problem.status, headers=headers, media_type=MEDIA_TYPE)


def http_status(kind: ErrorKind, reason: str) -> int:
    return _STATUS_OF_REASON.get(reason, _STATUS[kind])


def _page_detail(error: DomainError, facts: Mapping[str, str], message: str) -> str:
    own = error.page_message if isinstance(error, GatewayError) else ""
    return own or _filled(_PAGE_DETAILS.get(error.reason), facts, message)


def _filled(form: str | None, facts: Mapping[str, str], message: str) -> str:
    """The message where there is no form, or the error lacks one of its facts."""
    try:
        return form.format_map(facts) if form else message
    except KeyError:
        return message


def _retry_after(status: int, facts: Mapping[str, str]) -> int | None:
    given = facts.get("retry_after_seconds", "")
    if status in _DEFAULT_RETRY_SECONDS and given.isdecimal():
        return int(given)
    return _DEFAULT_RETRY_SECONDS.get(status)


def plain_problem(instance: str, status: int, reason: str, detail: str) -> ProblemDetails:
    phrase = HTTPStatus(status).phrase
    return ProblemDetails(
        type="about:blank", title=phrase, status=status, detail=detail, instance=instance, reason=reason
    )


async def _domain_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DomainError)
    problem = problem_of(error, request.url.path, is_page_wanted=asks_for_page(request.scope))
    return problem_response(problem, str(error.facts.get("field", "")))


async def _malformed_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    faults = [_field_problem(fault) for fault in found[:_MAX_SHOWN_FAULTS]]
    detail = "; ".join(f"{fault.field}: {fault.message}" for fault in faults)
    if len(found) > len(faults):
        detail += f"; and {len(found) - len(faults)} more"
    problem = plain_problem(request.url.path, 422, "INVALID_PARAMETER", detail)
    return problem_response(problem.model_copy(update={"errors": faults}))


def _field_problem(fault: Mapping[str, object]) -> RefusedField:
    location, context = fault["loc"], fault.get("ctx")
    assert isinstance(location, tuple)
    if fault.get("type") == "json_invalid" and isinstance(context, dict):
        # The second part is the position of the error in the JSON.
        message = f"{fault['msg']}: {context.get('error')} (character {location[-1]})"
        return RefusedField(field=str(location[0]), message=message)
    # The first part is "body" or "query".
    path = ".".join(str(part) for part in location[1:]) or str(location[0])
    message = str(fault["msg"]).removeprefix("Value error, ")
    given = fault.get("input")
    is_secret = any(secret_word(str(part)) for part in (*location, given))
    if not is_secret and isinstance(given, str | int | float):
        message += f" (it is {given!r:.80})"
    return RefusedField(field=path, message=message)


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, UnicodeDecodeError):
        # FastAPI reports bytes that are not text as 400, and a text that is not JSON as malformed.
        fault = {"loc": ("body",), "msg": "it is not UTF-8"}
        return await _malformed_problem(request, RequestValidationError([fault]))
    status, path = HTTPStatus(error.status_code), request.url.path
    is_lost = status is HTTPStatus.NOT_FOUND and asks_for_page(request.scope)
    detail = _NO_PAGE if is_lost else str(error.detail)
    response = problem_response(plain_problem(path, status, status.name, detail))
    response.headers.update(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(sorted(_allowed_methods(request)))
    return response


def _allowed_methods(request: Request) -> set[str]:
    """Methods of all routes of the path. The error itself names only those of the first route.

    A path that is written out comes before one with a parameter, which matches it as well.
    """
    path = request.url.path
    routes = [each for each in request.app.routes if isinstance(each, Route) and each.path_regex.match(path)]
    fewest = min((len(each.param_convertors) for each in routes), default=0)
    own = [each for each in routes if len(each.param_convertors) == fewest]
    methods = {method for route in own for method in route.methods or ()}
    return methods | {"HEAD"} if "GET" in methods else methods


async def _masked_problem(request: Request, error: Exception) -> JSONResponse:
    incident = uuid.uuid4().hex[:12]
    log.error("http request failed", path=request.url.path, incident=incident, exc_info=error)
    detail = f"Something went wrong inside (incident {incident}); the log of the gateway says what."
    return problem_response(plain_problem(request.url.path, 500, "INTERNAL", detail))
