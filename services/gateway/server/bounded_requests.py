"""Bounds of the number of parts of a request: parameters, headers, cookies, fields of a form, values of JSON.

Bytes are bounded elsewhere. FastAPI looks for each parameter in all others, which costs the square of their
number, and pydantic writes an error for each value.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.http.error_handlers import plain_problem, problem_response
from services.gateway.http.uploads import FORM, media_type_of

MAX_QUERY_BYTES = 8 * 1024
MAX_PARAMETERS = 100
MAX_HEADERS = 100
MAX_COOKIES = 100
MAX_FORM_FIELDS = 100
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
    cookies = sum(value.count(b";") + 1 for name, value in scope["headers"] if name == b"cookie")
    if cookies > MAX_COOKIES:
        return 431, "TOO_MANY_HEADERS", f"The request has more than {MAX_COOKIES} cookies; send fewer."
    return None


class PartCount:
    """Counts the parts of a body while it comes."""

    def __init__(self, scope: Scope) -> None:
        kind = media_type_of(Headers(scope=scope).get("content-type", ""))
        self._is_json = kind == "application/json" or kind.endswith("+json")
        self._mark = {_URL_FORM: b"&", FORM: b"form-data"}.get(kind, b"")
        self._found = 0
        self._is_in_text = self._is_escaped = False

    def problem(self, chunk: bytes) -> str:
        """Why no more is read, with this chunk; "" where it is not so."""
        if self._is_json:
            self._count_json(chunk)
            if self._found > MAX_JSON_VALUES:
                return f"The body has more than {MAX_JSON_VALUES} values; send fewer."
        elif self._mark:
            self._found += chunk.count(self._mark)
            if self._found > MAX_FORM_FIELDS:
                return f"The form has more than {MAX_FORM_FIELDS} fields; send fewer."
        return ""

    def _count_json(self, chunk: bytes) -> None:
        """Separators and brackets outside of texts: as many as there are values, or more."""
        if self._is_escaped:
            chunk = chunk[1:]
        whole = chunk.replace(rb"\\", b"")
        self._is_escaped = whole.endswith(b"\\")
        for i, part in enumerate(whole.replace(rb"\"", b"").split(b'"')):
            if i:
                self._is_in_text = not self._is_in_text
            if not self._is_in_text:
                self._found += part.count(b",") + part.count(b"[") + part.count(b"{")
