"""A gRPC server as every service has it: errors mapped in one place, health, reflection, a line per call."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status

from proctor.values.messaging import MAX_GRPC_MESSAGE_BYTES, RELEASE_KEY
from services.common.errors import CannotListen, DomainError
from services.common.grpc.errors import masked_status, parsed, status_of
from services.common.grpc.tls import server_credentials
from services.common.grpc.unauthenticated import UnauthenticatedCalls
from services.common.metrics import RPC_SECONDS
from services.common.process import bound_socket, host_and_port, release
from services.common.structured_logs import get_logger
from services.common.tls.certificate_files import CertificateFiles
from services.common.traces import TRACEPARENT, SpanKind, is_tracing, span

# A negative number is gRPC's way to forbid the retries of a client's policy.
NO_RETRY = ("grpc-retry-pushback-ms", "-1")
# By default 8 KiB, to which the gateway adds the caller and the trace.
_MAX_METADATA_BYTES = 16 * 1024
# A client whose connection ends resolves the name again, and so finds replicas that were added. Calls in
# progress on the old connection go on.
_MAX_CONNECTION_AGE_SECONDS = 300
_MIN_MS_BETWEEN_PINGS = 5_000

_RELEASE = release()
_WORDS = {
    True: health_pb2.HealthCheckResponse.SERVING,
    False: health_pb2.HealthCheckResponse.NOT_SERVING,
}

log = get_logger()

Registration = Callable[[grpc.aio.Server], None]
# The second argument of a handler, after its request.
RpcContext = grpc.aio.ServicerContext[object, object]
# Parses the bytes of a message into what a handler takes.
ReadMessage = Callable[[Any], Any]
# Reads a request for a handler, from the bytes of a message or from the context of a stream.
ReadRequest = Callable[[Any, Any], Any]
# Takes the path of a method and the context of a call; raises a DomainError where its caller may not make it.
Admit = Callable[[str, Any], None]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Maps what handlers raise to a status and logs each call once.

    `admit` is called for each call that is neither a health check nor reflection, and raises where the caller
    may not call.
    """

    def __init__(self, admit: Admit | None = None) -> None:
        self._unauthenticated = UnauthenticatedCalls()
        self._admit = admit

    async def intercept_service(
        self, continuation: Any, handler_call_details: Any
    ) -> Any:  # the library's own signature
        # None: no such method; the library answers that itself.
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None:
            return None
        if self._unauthenticated.include(method):
            return self._unauthenticated.bounded(handler)
        # Requests are parsed inside the guard: the library's own error for a malformed one names no reason.
        coding = {"request_deserializer": None, "response_serializer": handler.response_serializer}
        read_message = _reader(handler.request_deserializer)
        whole: ReadRequest = partial(_read_whole, read_message)
        pieces: ReadRequest = partial(_Pieces, read_message)
        if self._admit is not None:
            admit = partial(self._admit, method)
            whole, pieces = _admitted(admit, whole), _admitted(admit, pieces)
        if handler.unary_unary is not None:
            call = _guarded_call(method, whole, handler.unary_unary)
            return grpc.unary_unary_rpc_method_handler(call, **coding)
        if handler.stream_unary is not None:
            call = _guarded_call(method, pieces, handler.stream_unary)
            return grpc.stream_unary_rpc_method_handler(call, **coding)
        if handler.stream_stream is not None:
            stream = _guarded_stream(method, pieces, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(stream, **coding)
        if handler.unary_stream is not None:
            stream = _guarded_stream(method, whole, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(stream, **coding)
        return handler


def _reader(deserializer: ReadMessage | None) -> ReadMessage:
    """Reads a message by the class whose `FromString` it is; bytes stay where a handler takes those."""
    kind = getattr(deserializer, "__self__", None)
    return partial(parsed, kind) if kind is not None else bytes


def _read_whole(read: ReadMessage, request: bytes, context: Any) -> Any:  # noqa: ARG001  # a ReadRequest
    return read(request)


def _admitted(admit: Callable[[Any], None], read: ReadRequest) -> ReadRequest:
    """Nothing of a request is read before its caller is admitted."""

    def admitted(request: Any, context: Any) -> Any:
        admit(context)
        return read(request, context)

    return admitted


class _Pieces:
    """The messages of a stream.

    The library's own iterator keeps the last one, in a cycle of objects: until a garbage collection, which
    large messages do not bring about, a server held every message that it had ever read.
    """

    def __init__(self, read: ReadMessage, received: object, context: Any) -> None:  # noqa: ARG002  # a ReadRequest
        self._read = read
        self._context = context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        piece = await self._context.read()
        if piece is grpc.aio.EOF:
            raise StopAsyncIteration
        return self._read(piece)


def _guarded_call(
    method: str, read: ReadRequest, call: Callable[[Any, Any], Awaitable[Any]]
) -> Callable[[Any, Any], Awaitable[Any]]:
    async def guarded(request: Any, context: Any) -> Any:  # messages of any service
        async with _mapped_errors(method, context):
            return await call(read(request, context), context)

    return guarded


def _guarded_stream(
    method: str, read: ReadRequest, call: Callable[[Any, Any], AsyncIterator[Any]]
) -> Callable[[Any, Any], AsyncIterator[Any]]:
    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:  # messages of any service
        async with _mapped_errors(method, context):
            async for response in call(read(request, context), context):
                yield response

    return guarded


@asynccontextmanager
async def _mapped_errors(method: str, context: Any) -> AsyncIterator[None]:
    """Aborts the call with the status of an error, and logs one line."""
    started = time.perf_counter()
    # First, so that failed calls have it too.
    context.set_trailing_metadata(((RELEASE_KEY, _RELEASE),))

    def milliseconds() -> float:
        return round((time.perf_counter() - started) * 1000, 2)

    code = grpc.StatusCode.OK.name
    try:
        with span(method.removeprefix("/"), SpanKind.SERVER, parent=_trace_of(context)):
            yield
        log.debug("rpc", method=method, code=code, ms=milliseconds())
    # A handler that has answered by itself, as the proxy of the gateway does.
    except grpc.aio.AbortError:
        code = context.code().name
        raise
    except asyncio.CancelledError:
        code = grpc.StatusCode.CANCELLED.name
        raise
    except DomainError as error:
        log.info("rpc refused", method=method, code=error.kind, ms=milliseconds(), message=error.message)
        refusal = rpc_status.to_status(status_of(error))
        code = refusal.code.name
        # The caller's transport must not retry before the time that the error names.
        no_retry = (NO_RETRY,) if "retry_after_seconds" in error.facts else ()
        metadata = (*(refusal.trailing_metadata or ()), *no_retry)
        await context.abort(refusal.code, refusal.details, metadata)
    except Exception as error:  # the edge: nothing may leave unmapped
        if isinstance(error, grpc.aio.InternalError) and _is_left(context):
            code = grpc.StatusCode.CANCELLED.name
            raise
        incident = uuid.uuid4().hex[:12]
        log.error("rpc failed", method=method, incident=incident, exc_info=error)
        code = grpc.StatusCode.INTERNAL.name
        await context.abort_with_status(rpc_status.to_status(masked_status(incident)))
    finally:
        RPC_SECONDS.labels(method.removeprefix("/"), code).observe(time.perf_counter() - started)


def _is_left(context: Any) -> bool:
    """Whether the caller has gone or its deadline has passed: what is sent then finds nobody."""
    left = context.time_remaining()
    return context.cancelled() or (left is not None and left <= 0)


def _trace_of(context: Any) -> str:
    if not is_tracing():
        return ""
    return next((str(value) for key, value in context.invocation_metadata() if key == TRACEPARENT), "")


class GrpcServer:
    """A running server with its health service."""

    def __init__(
        self, server: grpc.aio.Server, health: HealthServicer, names: Sequence[str], port: int
    ) -> None:
        self._server = server
        self._health = health
        self._names = ("", *names)
        self.port = port

    async def set_serving(self, is_serving: bool) -> None:  # noqa: FBT001  # a state, not an option
        """Sets the answer of health checks."""
        for name in self._names:
            await self._health.set(name, _WORDS[is_serving])

    async def report(self, name: str, is_serving: bool | None) -> None:  # noqa: FBT001  # a state, not an option
        """Sets the answer of health checks that ask for `name`; None where it is not known."""
        word = health_pb2.HealthCheckResponse.UNKNOWN if is_serving is None else _WORDS[is_serving]
        await self._health.set(name, word)

    async def stop(self, grace_seconds: float) -> None:
        """Refuses new calls and gives those that run some time."""
        await self._server.stop(grace_seconds)


def reflecting(service_names: Sequence[str]) -> Registration:
    """Registers reflection, for a public server that lists its services to every caller."""
    named = (health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
    return partial(reflection.enable_server_reflection, (*service_names, *named))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Further calls, and larger messages, fail; further connections are closed."""

    calls: int = 2000
    message_bytes: int = MAX_GRPC_MESSAGE_BYTES
    connections: int = 2000
    # Sent by each caller before it is read; None: as much as the connection transports in a round trip.
    unread_bytes: int | None = None
    # A connection without a call is closed after this time. None: it stays until its age.
    idle_seconds: float | None = None


def _unread(size: int) -> list[tuple[str, int]]:
    """Otherwise gRPC measures the bandwidth and lets each call send megabytes before they are read."""
    return [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", size)]


def _idle(seconds: float) -> list[tuple[str, int]]:
    """Pings of a client do not count as calls."""
    return [("grpc.max_connection_idle_ms", round(seconds * 1000))]


_SERVICE_LIMITS = ServerLimits()


async def serve_grpc(
    address: str,
    registrations: Sequence[Registration],
    service_names: Sequence[str],
    limits: ServerLimits = _SERVICE_LIMITS,
    *,
    tls: CertificateFiles | None = None,
    admit: Admit | None = None,
) -> GrpcServer:
    """Starts a server that is not yet SERVING; the caller says when its dependencies answer.

    With `tls` it takes calls of peers with a certificate only.
    """
    server = grpc.aio.server(
        interceptors=[ErrorInterceptor(admit)],
        maximum_concurrent_rpcs=limits.calls,
        options=[
            ("grpc.max_receive_message_length", limits.message_bytes),
            ("grpc.max_concurrent_streams", limits.calls),
            ("grpc.max_metadata_size", _MAX_METADATA_BYTES),
            ("grpc.max_allowed_incoming_connections", limits.connections),
            ("grpc.max_connection_age_ms", _MAX_CONNECTION_AGE_SECONDS * 1000),
            *([] if limits.unread_bytes is None else _unread(limits.unread_bytes)),
            *([] if limits.idle_seconds is None else _idle(limits.idle_seconds)),
            # Callers ping during calls; by default a server takes that for an attack.
            ("grpc.http2.min_ping_interval_without_data_ms", _MIN_MS_BETWEEN_PINGS),
            # By default a connection that sends nothing takes up a slot for 120 s.
            ("grpc.server_handshake_timeout_ms", 10_000),
            ("grpc.max_send_message_length", MAX_GRPC_MESSAGE_BYTES),
            # By default a second server shares the port in silence, and gets half of the calls.
            ("grpc.so_reuseport", 0),
        ],
    )
    for register in registrations:
        register(server)
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = _bind(server, address, tls)
    # Set before the start, so that no health check is answered with SERVING too early.
    running = GrpcServer(server, health, service_names, port)
    await running.set_serving(False)
    await server.start()
    return running


def _bind(server: grpc.aio.Server, address: str, tls: CertificateFiles | None) -> int:
    """The port. Raises CannotListen."""
    # The port is tried first without gRPC, which gives no reason and takes port 70000 for 4464.
    if not address.startswith("unix:"):
        bound_socket(address).close()
        host, port = host_and_port(address)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if tls is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, server_credentials(tls))
    except RuntimeError as error:
        raise CannotListen(address=address, problem="gRPC could not bind it") from error
