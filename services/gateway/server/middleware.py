"""Around every HTTP request: its admission, a limit of its body and one log line."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.grpc.permissions import Permission
from services.common.structured_logs import get_logger
from services.common.traces import TRACEPARENT, SpanKind, is_tracing, span
from services.gateway.auth.admission import STREAMED_BYTES, Admission
from services.gateway.auth.audit_trail import Deed
from services.gateway.auth.permissions import route_permission
from services.gateway.auth.recorded_calls import (
    admit_call,
    deed_of_route,
    is_guarded,
    is_recorded,
    method_of,
)
from services.gateway.auth.session_cookies import renewing_session, session_of
from services.gateway.auth.trusted_proxies import TrustedProxies
from services.gateway.backends.calls import calling_for
from services.gateway.grpc_proxy.message_reads import READ_SECONDS
from services.gateway.http.error_handlers import asks_for_page, problem_of, problem_response
from services.gateway.http.errors import KeyUnknown
from services.gateway.http.paths import METHODS, PROBES, READING_METHODS, is_page
from services.gateway.http.project_names import naming_projects
from services.gateway.metrics import HTTP_IN_PROGRESS, HTTP_SECONDS
from services.gateway.server.bounded_requests import PartCount

log = get_logger()

# Larger than any limit of a body: what has more digits is not read as a number.
_MAX_LENGTH_DIGITS = 19
_COUNTED = ("http", "websocket")
_REVALIDATED, _NOT_KEPT = "private, no-cache", "private, no-store"
# As RFC 6455 names it.
_POLICY_VIOLATION = 1008
# For a whole body, or for the next bytes of a streamed one.
BODY_SECONDS = READ_SECONDS


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
    """Refuses a body with too many bytes or parts, and one that takes too long."""

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
        parts = None if is_streamed else PartCount(scope)
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS
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
            until = asyncio.get_running_loop().time() + BODY_SECONDS if is_streamed else deadline
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, "The body did not come in time; send it again.") from error
            is_whole = not message.get("more_body", False)
            content = message.get("body", b"")
            received += len(content)
            if received > max_bytes:
                raise too_large
            if parts:
                parts.check(content)
            return message

        return limited


class AdmittedRequests:
    """Finds the caller of each request, and serves what its permission and limits allow.

    Nothing of the body is read before.
    """

    def __init__(self, app: ASGIApp, *, admissions: Mapping[str, Admission], limit: BodyLimit) -> None:
        """`admissions` by type of connection, "http" and "websocket", and "public" for changes without a key.

        Each has slots of its own.
        """
        self._app = app
        self._admissions = admissions
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = _called(scope) if scope["type"] in _COUNTED else _NO_CALL
        if is_guarded(call.method):
            send = self._noting_refusal(scope, send, call)
        async with AsyncExitStack() as held:
            try:
                await self._admit(scope, call, held)
            except DomainError as error:
                # Exception handlers do not see errors of middleware.
                problem = problem_of(error, scope["path"], is_page_wanted=asks_for_page(scope))
                await problem_response(problem)(scope, receive, send)
                return
            if scope["type"] == "websocket":
                await self._socket(scope, receive, send)
            else:
                await self._app(scope, receive, renewing_session(scope, send))

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A socket may stay open for days: it is closed when the key of its caller ends."""
        ring = self._admissions["websocket"].keys.ring
        try:
            async with ring.while_taken(scope["state"]["caller"]):
                await self._app(scope, receive, send)
        except KeyUnknown:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})

    def _noting_refusal(self, scope: Scope, send: Send, call: "_Call") -> Send:
        async def noting(message: Message) -> None:
            caller = scope["state"].get("caller")
            if caller and _status(message) == HTTPStatus.FORBIDDEN:
                self._admissions["http"].trail.note_refusal(call.deed(scope), caller)
            await send(message)

        return noting

    async def _admit(self, scope: Scope, call: "_Call", held: AsyncExitStack) -> None:
        """Raises errors of the caller's key, permission and limits. `held` keeps the slot."""
        address, _ = scope.get("client") or ("", 0)
        if call.permission is Permission.PUBLIC:
            if scope["type"] == "http" and _method(scope) not in READING_METHODS:
                public = self._admissions["public"]
                held.enter_context(public.admitted_peer(address, self._held_bytes(scope)))
            return
        admission = self._admissions[scope["type"]]
        session = page_session(scope)
        caller = await admission.caller_of(Headers(scope=scope), address, session)
        scope["state"]["caller"] = caller
        if caller.session_id:
            scope["state"]["renewed_session"] = admission.identity.sessions.renewed(session)
        admitted = admission.admitted(caller, call.permission, self._held_bytes(scope))
        await held.enter_async_context(admitted)
        held.enter_context(calling_for(caller))
        held.enter_context(naming_projects(admission.keys.ring.project_names, caller))
        if is_recorded(call.method, call.path, _query(scope)):
            await admit_call(admission.trail, call.deed(scope), call.method, caller)

    def _held_bytes(self, scope: Scope) -> int:
        """Bytes that the request may hold in memory."""
        if scope["path"] in self._limit.streamed:
            return STREAMED_BYTES
        # A chunked body declares no length: it counts as the largest that it may become.
        if "transfer-encoding" in Headers(scope=scope):
            return self._limit.of(scope["path"])
        return min(_declared_bytes(scope), self._limit.of(scope["path"]))


@dataclass(frozen=True, slots=True)
class _Call:
    """The route that will serve a request: `method` is the gRPC method behind it."""

    permission: Permission
    method: str = ""
    path: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)

    def deed(self, scope: Scope) -> Deed:
        return deed_of_route(self.method, self.path, self.parameters, _query(scope))


_NO_CALL = _Call(Permission.PUBLIC)


def _called(scope: Scope) -> _Call:
    method = "GET" if _method(scope) == "HEAD" else _method(scope)
    routes: Iterable[BaseRoute] = scope["app"].routes
    for route in routes:
        match, matched = route.matches({**scope, "method": method})
        if match is Match.FULL:
            path = getattr(route, "path", "")
            parameters = matched.get("path_params", {})
            return _Call(route_permission(method, path), method_of(method, path), path, parameters)
    return _Call(route_permission(method, None))


def _query(scope: Scope) -> str:
    return bytes(scope.get("query_string", b"")).decode("latin-1")


class ClientAddresses:
    """Names the client behind trusted proxies as the one that calls, for all that is inside."""

    def __init__(self, app: ASGIApp, *, proxies: TrustedProxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in _COUNTED and self._proxies and scope.get("client"):
            peer, port = scope["client"]
            client = self._proxies.client_of(peer, Headers(scope=scope).getlist("x-forwarded-for"))
            scope = {**scope, "client": (client, port if client == peer else 0)}
        await self._app(scope, receive, send)


class PrivateAnswers:
    """Answers belong to their caller: no cache on the way keeps one, unless the answer says otherwise.

    What has an ETag may be kept by its caller, who asks each time whether it is still the same.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def private(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", _REVALIDATED if "etag" in headers else _NOT_KEPT)
            await send(message)

        await self._app(scope, receive, private)


class RequestLog:
    """Logs one line per request, and one per socket at its end."""

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in _COUNTED or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        status = 0
        started = self._clock.monotonic()

        async def with_status(message: Message) -> None:
            nonlocal status
            status = status or _status(message)
            await send(message)

        try:
            # The route is found inside, so the span gets its name afterwards.
            with HTTP_IN_PROGRESS.track_inprogress(), _traced(scope) as traced:
                await self._app(scope, receive, with_status)
                if traced is not None:
                    traced.update_name(f"{_known_method(scope)} {_route(scope)}")
                    traced.set_attribute("http.response.status_code", status or 500)
        finally:
            seconds = self._clock.monotonic() - started
            HTTP_SECONDS.labels(_route(scope), _known_method(scope), status or 500).observe(seconds)
            milliseconds = round(seconds * 1000, 2)
            # The caller that was admitted. Other headers hold whatever their sender wrote.
            caller, (peer, _) = scope["state"].get("caller"), scope.get("client") or ("", 0)
            user = caller.name if caller else ""
            facts = {"method": _method(scope), "path": scope["path"], "user": user, "peer": peer}
            log.info("http request", status=status or 500, ms=milliseconds, **facts)


def page_session(scope: Scope) -> str:
    """The session in the cookie, for requests of pages and for reads; "" where a key is sent.

    `TrustedSources` has refused changes and sockets of foreign pages before.
    """
    headers = Headers(scope=scope)
    if "x-api-key" in headers or "authorization" in headers:
        return ""
    if not is_page(scope["path"]) and _method(scope) not in READING_METHODS:
        return ""
    return session_of(HTTPConnection(scope))


def _method(scope: Scope) -> str:
    """A socket begins as a GET."""
    return "GET" if scope["type"] == "websocket" else str(scope["method"])


def _traced(scope: Scope) -> AbstractContextManager[Any]:
    """A caller may have begun the trace. The route is not matched yet."""
    parent = Headers(scope=scope).get(TRACEPARENT, "") if is_tracing() else ""
    return span(_known_method(scope), SpanKind.SERVER, parent=parent)


def _route(scope: Scope) -> str:
    """The pattern of the path that was matched: what callers wrote into it has too many values."""
    return str(getattr(scope.get("route"), "path", "")) or "none"


def _known_method(scope: Scope) -> str:
    """A client may send any word."""
    method = _method(scope)
    return method if method in METHODS else "other"


def _status(message: Message) -> int:
    """The status that a message begins a response with; 0 for others."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return int(message["status"])
        case "websocket.accept":
            return 101
        case "websocket.close":
            return 403
    return 0


def _declared_bytes(scope: Scope) -> int:
    declared = Headers(scope=scope).get("content-length", "").lstrip("0")
    return int(declared[:_MAX_LENGTH_DIGITS]) if declared.isdecimal() else 0
