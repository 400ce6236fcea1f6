"""Bounds of the number of parts of a request: parameters, headers, cookies, fields of a form, values of JSON.

Bytes are bounded elsewhere. FastAPI looks for each parameter in all others, which costs the square of their
number, and pydantic writes an error for each value.
"""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.http.error_handlers import plain_problem, problem_response
from services.gateway.http.json_values import JsonValues
from services.gateway.http.paths import MAX_QUERY_BYTES
from services.gateway.http.uploads import FORM, MAX_FORM_FIELDS, boundary_of, media_type_of

MAX_PARAMETERS = 100
MAX_HEADERS = 100
MAX_COOKIES = 100
# Of quoted values: before 3.11.10 Python looks through the rest of the header for each (CVE-2024-7592).
MAX_COOKIE_ESCAPES = 100
MAX_JSON_VALUES = 20_000

_URL_FORM = "application/x-www-form-urlencoded"
_CHECKED = ("http", "websocket")


class BoundedRequests:
    """Refuses a request with too many parts before it is routed; `PartCount` does it for bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = _problem(scope) if scope["type"] in _CHECKED else None
        if problem:
            await problem_response(plain_problem(scope["path"], *problem))(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _problem(scope: Scope) -> tuple[int, str, str] | None:
    query: bytes = scope["query_string"]
    if len(query) > MAX_QUERY_BYTES:
        return 414, "QUERY_TOO_LONG", f"The query has more than {MAX_QUERY_BYTES} bytes; send a shorter one."
    if query.count(b"&") + query.count(b";") >= MAX_PARAMETERS:
        return 414, "QUERY_TOO_LONG", f"The query has more than {MAX_PARAMETERS} parameters; send fewer."
    if len(scope["headers"]) > MAX_HEADERS:
        return 431, "TOO_MANY_HEADERS", f"The request has more than {MAX_HEADERS} headers; send fewer."
    return _cookie_problem([value for name, value in scope["headers"] if name == b"cookie"])


def _cookie_problem(headers: Sequence[bytes]) -> tuple[int, str, str] | None:
    if sum(value.count(b";") + 1 for value in headers) > MAX_COOKIES:
        return 431, "TOO_MANY_HEADERS", f"The request has more than {MAX_COOKIES} cookies; send fewer."
    if sum(value.count(b"\\") for value in headers) > MAX_COOKIE_ESCAPES:
        problem = f"The cookies have more than {MAX_COOKIE_ESCAPES} backslashes; send fewer."
        return 431, "TOO_MANY_HEADERS", problem
    return None


class PartCount:
    """Counts the parts of a body while it comes."""

    def __init__(self, scope: Scope) -> None:
        content_type = Headers(scope=scope).get("content-type", "")
        kind = media_type_of(content_type)
        self._json = JsonValues() if kind == "application/json" or kind.endswith("+json") else None
        boundary = boundary_of(content_type) if kind == FORM else b""
        # Two dashes stand before each: a short boundary may be in the text of a field.
        self._mark = b"&" if kind == _URL_FORM else b"--" + boundary if boundary else b""
        self._found = 0
        # A mark may come in two chunks.
        self._end = b""

    def check(self, chunk: bytes) -> None:
        """Raises HTTPException once no more is to be read, with this chunk."""
        if self._json:
            try:
                self._json.add(chunk)
            except ValueError as error:
                raise HTTPException(400, f"The body cannot be read: {error}.") from error
            if self._json.found > MAX_JSON_VALUES:
                raise HTTPException(413, f"The body has more than {MAX_JSON_VALUES} values; send fewer.")
        elif self._mark:
            known = self._end + chunk
            self._found += known.count(self._mark)
            self._end = known[-len(self._mark) + 1 :] if len(self._mark) > 1 else b""
            if self._found > MAX_FORM_FIELDS:
                raise HTTPException(413, f"The form has more than {MAX_FORM_FIELDS} fields; send fewer.")
