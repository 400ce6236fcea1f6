"""Around every HTTP request: the request limit, a limit of its body and one log line."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.structured_logs import get_logger
from services.gateway.auth import STREAMED_BYTES, CallSlots, Identity, RequestLimit
from services.gateway.errors.http_handlers import problem_of, problem_response
from services.gateway.paths import PROBES, RATE_LIMIT_EXEMPT, RATE_LIMITED, READING_METHODS

log = get_logger()

# Larger than any limit of a body: what has more digits is not read as a number.
_MAX_LENGTH_DIGITS = 19
# For a whole body, or for the next bytes of a streamed one.
_BODY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Bytes that a body may have; `by_path` has paths with a limit of their own.

    Bodies of `streamed` paths are forwarded as they come.
    """

    max_bytes: int
    by_path: Mapping[str, int]
    streamed: Collection[str] = ()

    def of(self, path: str) -> int:
        return self.by_path.get(path, self.max_bytes)


class LimitedBodies:
    """Rejects a body with too many bytes, one that takes too long, and too many at a time."""

    def __init__(self, app: ASGIApp, *, limit: BodyLimit, slots: CallSlots) -> None:
        self._app = app
        self._limit = limit
        self._slots = slots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(RATE_LIMITED):
            await self._app(scope, receive, send)
            return
        with ExitStack() as held:
            try:
                held.enter_context(self._slots.slot(scope["state"]["user"], self._held_bytes(scope)))
            except DomainError as error:
                # Exception handlers do not see errors of middleware.
                await problem_response(problem_of(error, scope["path"]))(scope, receive, send)
                return
            await self._app(scope, self._limited(scope, receive), send)

    def _held_bytes(self, scope: Scope) -> int:
        """Bytes that the request may hold in memory."""
        if scope["path"] in self._limit.streamed:
            return STREAMED_BYTES
        if "transfer-encoding" in Headers(scope=scope):
            return self._limit.of(scope["path"])
        return min(_declared_bytes(scope), self._limit.of(scope["path"]))

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        declared, received, is_whole = _declared_bytes(scope), 0, False
        max_bytes = self._limit.of(scope["path"])
        is_streamed = scope["path"] in self._limit.streamed
        deadline = asyncio.get_running_loop().time() + _BODY_SECONDS
        # FastAPI reports any other class of error as a malformed body.
        too_large = HTTPException(413, f"The body is larger than {max_bytes} bytes; send a smaller one.")

        async def limited() -> Message:
            nonlocal received, is_whole
            if declared > max_bytes:
                raise too_large
            if is_whole:
                # The handler waits for the client to go.
                return await receive()
            # An upload lasts as long as its bytes keep coming.
            until = asyncio.get_running_loop().time() + _BODY_SECONDS if is_streamed else deadline
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, "The body did not come in time; send it again.") from error
            is_whole = not message.get("more_body", False)
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
