"""The public gRPC API: forwards calls as bytes, with deadline, cancellation and error details."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from structlog.contextvars import bind_contextvars

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import (
    audit_service_pb2,
    change_service_pb2,
    comparison_service_pb2,
    key_service_pb2,
    leaderboard_service_pb2,
    project_service_pb2,
    rollout_service_pb2,
)
from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import import_service_pb2 as import_pb2
from proctor.v1 import notice_service_pb2 as notice_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import schedule_service_pb2 as schedule_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.names.user import Caller
from proctor.wire.uploads import send_chunks
from services.common.errors import DependencyUnavailable, DomainError, ErrorKind, MessageTooLarge
from services.common.grpc.caller import PREFIX, caller_metadata
from services.common.grpc.errors import parsed
from services.common.grpc.permissions import Permission, method_permission
from services.common.structured_logs import get_logger
from services.common.traces import is_tracing
from services.gateway.auth.admission import STREAMED_BYTES, Admission
from services.gateway.auth.identity import headers_of
from services.gateway.auth.recorded_calls import admit_call, deed_of_message, is_guarded, is_recorded
from services.gateway.backends.calls import RESULTS, SCHEDULER, backend_error
from services.gateway.grpc_proxy.amendments import AMENDMENTS, Amend, unchanged
from services.gateway.grpc_proxy.follow_ups import FollowUp, follow_ups
from services.gateway.grpc_proxy.message_reads import MessageReads

# Each of these files defines one service.
SCHEDULER_FILES = (
    scheduler_pb2,
    suite_pb2,
    queue_pb2,
    change_service_pb2,
    audit_service_pb2,
    key_service_pb2,
    project_service_pb2,
    dataset_pb2,
    file_pb2,
    batch_pb2,
    storage_pb2,
    rollout_service_pb2,
    artifact_pb2,
    import_pb2,
    schedule_pb2,
    notice_pb2,
)
RESULTS_FILES = (
    annotation_pb2,
    answer_pb2,
    results_pb2,
    comparison_service_pb2,
    leaderboard_service_pb2,
    rescore_pb2,
    export_pb2,
)
# Metadata that belongs to one hop: gRPC sets it for the next one, and keys and names are read here only.
_HOP_METADATA = (
    "grpc-",
    ":",
    "user-agent",
    "content-type",
    "te",
    "authorization",
    "x-api-key",
    PREFIX,
    "cookie",
)
# Where the gateway has a span of its own, that goes along instead: the caller's is its parent.
_TRACE_METADATA = ("traceparent", "tracestate")
# As many as values of a JSON body.
MAX_PARTS = 20_000
log = get_logger()
ProxyContext: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


@dataclass(slots=True)
class _Admitted:
    """A caller, and the request once it is read."""

    caller: Caller
    request: Message | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """A method as it is admitted and forwarded. `kind` is the class of its requests."""

    path: str
    kind: type[Message]
    permission: Permission
    admission: Admission
    reads: MessageReads

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @asynccontextmanager
    async def admitted(self, context: ProxyContext, size: int) -> AsyncIterator["_Admitted"]:
        """Its caller, before anything of a request is read. Raises what `Admission` raises."""
        metadata = context.invocation_metadata() or ()
        forwarded = [str(value) for key, value in metadata if key == "x-forwarded-for"]
        address = self.admission.proxies.client_of(_address(context.peer()), forwarded)
        caller = await self.admission.caller_of(headers_of(metadata), address)
        # Later lines of this call have them too.
        bind_contextvars(user=caller.name, peer=context.peer())
        log.info("grpc request", method=self.path)
        admitted = _Admitted(caller)
        try:
            async with self.admission.admitted(caller, self.permission, size):
                yield admitted
        except (DomainError, grpc.aio.AbortError) as error:
            if is_guarded(self.name) and _is_refusal(error, context):
                deed = deed_of_message(self.name, admitted.request)
                self.admission.trail.note_refusal(deed, caller)
            raise

    async def checked(self, messages: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """The messages of a stream, of which each is read. Raises what `parsed` raises."""
        async for message in messages:
            parsed(self.kind, message, max_parts=MAX_PARTS)
            yield message

    @asynccontextmanager
    async def request(
        self, context: ProxyContext, messages: AsyncIterable[bytes]
    ) -> AsyncIterator[tuple[bytes, Caller]]:
        """The only message of a call that is admitted, and its caller.

        Raises what `MessageReads` and `parsed` raise.
        """
        async with AsyncExitStack() as held:
            admitted = await held.enter_async_context(self.admitted(context, 0))
            caller = admitted.caller
            reader = _reader(caller, context.peer())
            request = await held.enter_async_context(self.reads.message(messages, reader))
            held.enter_context(self.admission.slots.counted_bytes(caller.name, len(request)))
            # What its service would refuse for its size is not sent there.
            admitted.request = parsed(self.kind, request, max_parts=MAX_PARTS)
            if is_recorded(self.name):
                deed = deed_of_message(self.name, admitted.request)
                await admit_call(self.admission.trail, deed, self.name, caller)
            yield request, caller


@dataclass(frozen=True, slots=True)
class ForwardedService:
    """A public gRPC service and the channel to its backend."""

    service: ServiceDescriptor
    channel: grpc.aio.Channel
    backend: str
    admission: Admission
    reads: MessageReads
    follow_ups: Mapping[str, FollowUp]

    def register(self, server: grpc.aio.Server) -> None:
        handlers = {method.name: self._handler(method) for method in self.service.methods}
        generic = grpc.method_handlers_generic_handler(self.service.full_name, handlers)
        server.add_generic_rpc_handlers((generic,))

    def _handler(self, method: MethodDescriptor) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """All take requests as streams: the library reads a single message before it calls a handler."""
        path = f"/{self.service.full_name}/{method.name}"
        kind = GetMessageClass(method.input_type)
        call = _Call(path, kind, method_permission(method.name), self.admission, self.reads)
        amend = AMENDMENTS.get(method.name, unchanged)
        if method.client_streaming:
            return grpc.stream_unary_rpc_method_handler(self._forward_upload(call, amend))
        if method.server_streaming:
            return grpc.stream_stream_rpc_method_handler(self._forward_download(call))
        return grpc.stream_unary_rpc_method_handler(self._forward_call(call, amend))

    # The type stubs of the handlers cover only the synchronous API, hence Any.
    def _forward_call(self, call: _Call, amend: Amend) -> Any:
        async def forward(messages: AsyncIterable[bytes], context: ProxyContext) -> bytes:
            send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(call.path)
            async with call.request(context, messages) as (request, caller):
                sent, metadata = amend(request, caller), _metadata(context, caller)
                try:
                    response = await send(sent, timeout=context.time_remaining(), metadata=metadata)
                except grpc.aio.AioRpcError as error:
                    await _pass_on(error, context, self.backend)
                if follow_up := self.follow_ups.get(call.name):
                    try:
                        await follow_up(response, metadata, context.time_remaining())
                    except grpc.aio.AioRpcError as error:
                        await _pass_on(error, context, SCHEDULER)
                return response

        return forward

    def _forward_upload(self, call: _Call, amend: Amend) -> Any:
        async def forward(messages: AsyncIterable[bytes], context: ProxyContext) -> bytes:
            start: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = self.channel.stream_unary(call.path)
            async with call.admitted(context, STREAMED_BYTES) as admitted:
                caller = admitted.caller
                upload = start(timeout=context.time_remaining(), metadata=_metadata(context, caller))
                try:
                    return await send_chunks(upload, _first_amended(call.checked(messages), amend, caller))
                except grpc.aio.AioRpcError as error:
                    await _pass_on(error, context, self.backend)

        return forward

    def _forward_download(self, call: _Call) -> Any:
        async def forward(messages: AsyncIterable[bytes], context: ProxyContext) -> AsyncIterator[bytes]:
            start: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self.channel.unary_stream(call.path)
            async with (
                call.request(context, messages) as (request, caller),
                self.admission.keys.ring.while_taken(caller),
            ):
                metadata = _metadata(context, caller)
                download = start(request, timeout=context.time_remaining(), metadata=metadata)
                try:
                    async for response in download:
                        yield response
                except grpc.aio.AioRpcError as error:
                    await _pass_on(error, context, self.backend)
                finally:
                    # The client may have gone: without it the backend would compute on.
                    download.cancel()

        return forward


def public_services(
    scheduler: grpc.aio.Channel,
    results: grpc.aio.Channel,
    admission: Admission,
    reads: MessageReads | None = None,
) -> tuple[ForwardedService, ...]:
    reads = reads or MessageReads()
    backends = ((scheduler, SCHEDULER, SCHEDULER_FILES), (results, RESULTS, RESULTS_FILES))
    following = follow_ups(scheduler)
    return tuple(
        ForwardedService(service, channel, backend, admission, reads, following)
        for channel, backend, files in backends
        for file in files
        for service in file.DESCRIPTOR.services_by_name.values()
    )


def _is_refusal(error: DomainError | grpc.aio.AbortError, context: ProxyContext) -> bool:
    if isinstance(error, DomainError):
        return error.kind is ErrorKind.FORBIDDEN
    return context.code() is grpc.StatusCode.PERMISSION_DENIED


def _address(peer: str) -> str:
    """The address in gRPC's name of a peer, such as `ipv6:%5B::1%5D:50051`."""
    return unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]")


def _reader(caller: Caller, peer: str) -> str:
    """The owner of the slots: not an unverified name, because a peer can send another one with each call."""
    return caller.name if caller.is_verified else peer.rpartition(":")[0]


async def _first_amended(
    messages: AsyncIterable[bytes], amend: Amend, caller: Caller
) -> AsyncIterator[bytes]:
    is_first = True
    async for message in messages:
        yield amend(message, caller) if is_first else message
        is_first = False


async def _pass_on(error: grpc.aio.AioRpcError, context: ProxyContext, backend: str) -> NoReturn:
    reported = backend_error(error, backend)
    if isinstance(reported, DependencyUnavailable | MessageTooLarge):
        raise reported from error
    await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata()))


def _metadata(context: ProxyContext, caller: Caller) -> tuple[tuple[str, str | bytes], ...]:
    received = context.invocation_metadata() or ()
    left_out = (*_HOP_METADATA, *_TRACE_METADATA) if is_tracing() else _HOP_METADATA
    kept = ((key, value) for key, value in received if not key.startswith(left_out))
    return (*kept, *caller_metadata(caller))
