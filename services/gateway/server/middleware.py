"""What surrounds every HTTP request: a count, a bound on its body and one log line when it is done."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.structured_logs import get_logger
from services.gateway.auth.identity import USER_HEADER, Identity
from services.gateway.auth.rate_limit import RequestCounts
from services.gateway.errors.http_handlers import problem_of, problem_response
from services.gateway.paths import COUNTED, UNCOUNTED

log = get_logger()

_PROBES = frozenset({"/healthz", "/readyz"})


class BodyBound:
    """Refuses a body that says it is too large, and one that turns out to be, when it is read."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, of_paths: Mapping[str, int]) -> None:
        """`of_paths` are bounds of their own."""
        self._app = app
        self._max_bytes = max_bytes
        self._of_paths = of_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bounded = self._bounded(scope, receive) if scope["type"] == "http" else receive
        await self._app(scope, bounded, send)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        declared, taken = _declared_bytes(scope), 0
        max_bytes = self._of_paths.get(scope["path"], self._max_bytes)
        # FastAPI lets an error of this class pass and takes any other for a body that cannot be parsed.
        too_large = HTTPException(413, f"The body is larger than {max_bytes} bytes; send a smaller one.")

        async def bounded() -> Message:
            nonlocal taken
            if declared > max_bytes:
                raise too_large
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > max_bytes:
                raise too_large
            return message

        return bounded


class CountedRequests:
    """Counts each request for its user before it is read: also what is malformed or leads nowhere."""

    def __init__(self, app: ASGIApp, *, identity: Identity, counts: RequestCounts) -> None:
        self._app = app
        self._identity = identity
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_counted(scope["path"]):
            try:
                await self._counts.count(self._identity.user_of(Headers(scope=scope)))
            except DomainError as error:
                # Errors out here are seen by no handler.
                await problem_response(problem_of(error, scope["path"]))(scope, receive, send)
                return
        await self._app(scope, receive, send)


class CanonicalLine:
    """Logs each request once, with what it was and how it went."""

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        status = 500
        started = self._clock.monotonic()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            milliseconds = round((self._clock.monotonic() - started) * 1000, 2)
            facts = {"method": scope["method"], "path": scope["path"], "user": _header(scope, USER_HEADER)}
            log.info("http request", status=status, ms=milliseconds, **facts)


def _is_counted(path: str) -> bool:
    return path.startswith(COUNTED) and path not in UNCOUNTED


def _declared_bytes(scope: Scope) -> int:
    declared = _header(scope, "Content-Length")
    return int(declared) if declared.isdecimal() else 0


def _header(scope: Scope, name: str) -> str:
    wanted = name.lower().encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), "")
