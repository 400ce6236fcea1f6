"""Around every HTTP request: its admission, a limit of its body and one log line."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.structured_logs import get_logger
from services.gateway.auth import STREAMED_BYTES, Admission
from services.gateway.backends import calling_for
from services.gateway.errors.http_handlers import problem_of, problem_response
from services.gateway.paths import PROBES
from services.gateway.permissions import Permission, route_permission

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
    """Rejects a body with too many bytes, and one that takes too long."""

    def __init__(self, app: ASGIApp, *, limit: BodyLimit) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limited = self._limited(scope, receive) if scope["type"] == "http" else receive
        await self._app(scope, limited, send)

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


class AdmittedRequests:
    """Finds the caller of each request, and serves what its permission and limits allow.

    Nothing of the body is read before.
    """

    def __init__(self, app: ASGIApp, *, admission: Admission, limit: BodyLimit) -> None:
        self._app = app
        self._admission = admission
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        permission = _permission(scope) if scope["type"] == "http" else Permission.PUBLIC
        if permission is Permission.PUBLIC:
            await self._app(scope, receive, send)
            return
        async with AsyncExitStack() as held:
            try:
                caller = self._admission.identity.principal_of(Headers(scope=scope))
                scope["state"]["caller"] = caller
                size = self._held_bytes(scope)
                await held.enter_async_context(self._admission.admitted(caller, permission, size))
            except DomainError as error:
                # Exception handlers do not see errors of middleware.
                await problem_response(problem_of(error, scope["path"]))(scope, receive, send)
                return
            held.enter_context(calling_for(caller))
            await self._app(scope, receive, send)

    def _held_bytes(self, scope: Scope) -> int:
        """Bytes that the request may hold in memory."""
        if scope["path"] in self._limit.streamed:
            return STREAMED_BYTES
        if "transfer-encoding" in Headers(scope=scope):
            return self._limit.of(scope["path"])
        return min(_declared_bytes(scope), self._limit.of(scope["path"]))


def _permission(scope: Scope) -> Permission:
    """Of the route that will serve the request."""
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    routes: Iterable[BaseRoute] = scope["app"].routes
    for route in routes:
        match, _ = route.matches({**scope, "method": method})
        if match is Match.FULL:
            return route_permission(method, getattr(route, "path", ""))
    return route_permission(method, None)


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
            caller, (peer, _) = scope["state"].get("caller"), scope.get("client") or ("", 0)
            user = caller.name if caller else ""
            facts = {"method": scope["method"], "path": scope["path"], "user": user, "peer": peer}
            log.info("http request", status=status, ms=milliseconds, **facts)


def _declared_bytes(scope: Scope) -> int:
    declared = Headers(scope=scope).get("content-length", "").lstrip("0")
    return int(declared[:_MAX_LENGTH_DIGITS]) if declared.isdecimal() else 0
