"""Around every HTTP request: the request limit, a limit of its body and one log line."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.structured_logs import get_logger
from services.gateway.auth import Identity, RequestLimit
from services.gateway.errors.http_handlers import problem_of, problem_response
from services.gateway.paths import PROBES, RATE_LIMIT_EXEMPT, RATE_LIMITED, READING_METHODS

log = get_logger()

# Larger than any limit of a body: what has more digits is not read as a number.
_MAX_LENGTH_DIGITS = 19


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Bytes that a body may have; `by_path` has paths with a limit of their own."""

    max_bytes: int
    by_path: Mapping[str, int]

    def of(self, path: str) -> int:
        return self.by_path.get(path, self.max_bytes)


class LimitedBodies:
    """Rejects a body that declares too many bytes, and one that turns out to have them."""

    def __init__(self, app: ASGIApp, *, limit: BodyLimit) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limited = self._limited(scope, receive) if scope["type"] == "http" else receive
        await self._app(scope, limited, send)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        declared, received = _declared_bytes(scope), 0
        max_bytes = self._limit.of(scope["path"])
        # FastAPI reports any other class of error as a malformed body.
        too_large = HTTPException(413, f"The body is larger than {max_bytes} bytes; send a smaller one.")

        async def limited() -> Message:
            nonlocal received
            if declared > max_bytes:
                raise too_large
            message = await receive()
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise too_large
            return message

        return limited


class RateLimit:
    """Finds the user of each request and counts it before it is parsed, malformed ones too."""

    def __init__(self, app: ASGIApp, *, identity: Identity, limit: RequestLimit) -> None:
        self._app = app
        self._identity = identity
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(RATE_LIMITED):
            try:
                user = self._identity.user_of(Headers(scope=scope))
                scope["state"]["user"] = user
                if scope["path"] not in RATE_LIMIT_EXEMPT:
                    await self._limit.count(user, is_read=scope["method"] in READING_METHODS)
            except DomainError as error:
                # Exception handlers do not see errors of middleware.
                await problem_response(problem_of(error, scope["path"]))(scope, receive, send)
                return
        await self._app(scope, receive, send)


class RequestLog:
    """Logs one line per request."""

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        status = 500
        started = self._clock.monotonic()

        async def with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, with_status)
        finally:
            milliseconds = round((self._clock.monotonic() - started) * 1000, 2)
            # The name that counted. Other headers say what their sender likes.
            user, (peer, _) = scope["state"].get("user", ""), scope.get("client") or ("", 0)
            facts = {"method": scope["method"], "path": scope["path"], "user": user, "peer": peer}
            log.info("http request", status=status, ms=milliseconds, **facts)


def _declared_bytes(scope: Scope) -> int:
    declared = Headers(scope=scope).get("content-length", "").lstrip("0")
    return int(declared[:_MAX_LENGTH_DIGITS]) if declared.isdecimal() else 0
