"""A gRPC server as every service has it: errors mapped in one place, health, reflection, a line per call."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status

from services.common.errors import DomainError
from services.common.grpc.errors import masked_status, parsed, status_of
from services.common.metrics import RPC_SECONDS
from services.common.process import CannotListen, bound_socket, host_and_port, release
from services.common.structured_logs import get_logger

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
NO_RETRY = ("grpc-retry-pushback-ms", "-1")
_MAX_CALLS = 2000
_MAX_METADATA_BYTES = 16 * 1024
# A client whose connection ends resolves the name again, and so finds replicas that were added. Calls in
# progress on the old connection go on.
_MAX_CONNECTION_AGE_SECONDS = 300
_HEALTH_PREFIXES = ("/grpc.health.", "/grpc.reflection.")

# Every answer tells the release of its server.
RELEASE_KEY = "x-proctor-release"
_RELEASE = release()

log = get_logger()

Registration = Callable[[grpc.aio.Server], None]
# What a handler is given beside its request.
RpcContext = grpc.aio.ServicerContext[object, object]
# Makes of a request on the wire what a handler takes.
ReadRequest = Callable[[Any], Any]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Maps what handlers raise to a status and logs each call once."""

    async def intercept_service(
        self, continuation: Any, handler_call_details: Any
    ) -> Any:  # the library's own signature
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None or method.startswith(_HEALTH_PREFIXES):
            return handler
        # Requests are read inside the guard: what the library does with a malformed one says nothing.
        coding = {"request_deserializer": None, "response_serializer": handler.response_serializer}
        read = _reader(handler.request_deserializer)
        if handler.unary_unary is not None:
            call = _guarded_call(method, read, handler.unary_unary)
            return grpc.unary_unary_rpc_method_handler(call, **coding)
        if handler.stream_unary is not None:
            call = _guarded_call(method, partial(_read_pieces, read), handler.stream_unary)
            return grpc.stream_unary_rpc_method_handler(call, **coding)
        if handler.unary_stream is not None:
            stream = _guarded_stream(method, read, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(stream, **coding)
        return handler


def _reader(deserializer: ReadRequest | None) -> ReadRequest:
    """By the message whose `FromString` it is; bytes as they are where a handler takes those."""
    kind = getattr(deserializer, "__self__", None)
    return partial(parsed, kind) if kind is not None else bytes


async def _read_pieces(read: ReadRequest, pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    async for piece in pieces:
        yield read(piece)


def _guarded_call(
    method: str, read: ReadRequest, call: Callable[[Any, Any], Awaitable[Any]]
) -> Callable[[Any, Any], Awaitable[Any]]:
    async def guarded(request: Any, context: Any) -> Any:  # messages of any service
        async with _mapped_errors(method, context):
            return await call(read(request), context)

    return guarded


def _guarded_stream(
    method: str, read: ReadRequest, call: Callable[[Any, Any], AsyncIterator[Any]]
) -> Callable[[Any, Any], AsyncIterator[Any]]:
    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:  # messages of any service
        async with _mapped_errors(method, context):
            async for response in call(read(request), context):
                yield response

    return guarded


@asynccontextmanager
async def _mapped_errors(method: str, context: Any) -> AsyncIterator[None]:
    """Aborts the call with the status of an error, and logs one line."""
    started = time.perf_counter()
    context.set_trailing_metadata(((RELEASE_KEY, _RELEASE),))

    def milliseconds() -> float:
        return round((time.perf_counter() - started) * 1000, 2)

    code = grpc.StatusCode.OK.name
    try:
        yield
        log.debug("rpc", method=method, code=code, ms=milliseconds())
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
        # An error that says when to try again is not repeated by the caller's transport before.
        no_retry = (NO_RETRY,) if "retry_after_seconds" in error.facts else ()
        metadata = (*(refusal.trailing_metadata or ()), *no_retry)
        await context.abort(refusal.code, refusal.details, metadata)
    except Exception as error:  # the edge: nothing may leave unmapped
        incident = uuid.uuid4().hex[:12]
        log.error("rpc failed", method=method, incident=incident, exc_info=error)
        code = grpc.StatusCode.INTERNAL.name
        await context.abort_with_status(rpc_status.to_status(masked_status(incident)))
    finally:
        RPC_SECONDS.labels(method.removeprefix("/"), code).observe(time.perf_counter() - started)


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
        """Tells health checks whether calls are welcome."""
        word = (
            health_pb2.HealthCheckResponse.SERVING
            if is_serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in self._names:
            await self._health.set(name, word)

    async def stop(self, grace_seconds: float) -> None:
        """Refuses new calls and gives those that run some time."""
        await self._server.stop(grace_seconds)


def reflecting(service_names: Sequence[str]) -> Registration:
    """For a public server, which lists its services to every caller."""
    named = (health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
    return partial(reflection.enable_server_reflection, (*service_names, *named))


async def serve_grpc(
    address: str,
    registrations: Sequence[Registration],
    service_names: Sequence[str],
    *,
    max_calls: int = _MAX_CALLS,
    max_received_bytes: int = MAX_MESSAGE_BYTES,
) -> GrpcServer:
    """Starts a server that is not yet SERVING; the caller says when its dependencies answer.

    Calls beyond `max_calls` in progress fail with RESOURCE_EXHAUSTED.
    """
    server = grpc.aio.server(
        interceptors=[ErrorInterceptor()],
        maximum_concurrent_rpcs=max_calls,
        options=[
            ("grpc.max_receive_message_length", max_received_bytes),
            ("grpc.max_concurrent_streams", max_calls),
            ("grpc.max_metadata_size", _MAX_METADATA_BYTES),
            ("grpc.max_connection_age_ms", _MAX_CONNECTION_AGE_SECONDS * 1000),
            ("grpc.server_handshake_timeout_ms", 10_000),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
        ],
    )
    for register in registrations:
        register(server)
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    # gRPC does not say why it cannot, and takes port 70000 for 4464; the system is asked first.
    if not address.startswith("unix:"):
        bound_socket(address).close()
        host, port_text = host_and_port(address)
        address = f"[{host}]:{port_text}" if ":" in host else f"{host}:{port_text}"
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise CannotListen(address=address, problem="gRPC could not bind it") from error
    running = GrpcServer(server, health, service_names, port)
    await running.set_serving(False)
    await server.start()
    return running
