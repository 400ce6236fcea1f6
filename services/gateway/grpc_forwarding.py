"""The public gRPC endpoint: calls pass through as bytes, with deadline, cancellation and error details."""

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf import message
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from proctor.v1 import (
    comparison_service_pb2,
    dataset_service_pb2,
    export_service_pb2,
    queue_service_pb2,
    rescore_service_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    standings_service_pb2,
    suite_service_pb2,
)
from services.common.errors import DependencyUnavailable, MessageTooLarge
from services.gateway.errors import MalformedRequest
from services.gateway.grpc_calls import RESULTS, SCHEDULER, answer_to, backend_error
from services.gateway.grpc_request_counts import RequestCounts
from services.gateway.http_identity import Identity
from services.gateway.suites import suite_versions

SCHEDULER_SERVICE: ServiceDescriptor = scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"]
SUITE_SERVICE: ServiceDescriptor = suite_service_pb2.DESCRIPTOR.services_by_name["SuiteService"]
QUEUE_SERVICE: ServiceDescriptor = queue_service_pb2.DESCRIPTOR.services_by_name["QueueService"]
DATASET_SERVICE: ServiceDescriptor = dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"]
OF_RESULTS: tuple[ServiceDescriptor, ...] = (
    results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"],
    comparison_service_pb2.DESCRIPTOR.services_by_name["ComparisonService"],
    standings_service_pb2.DESCRIPTOR.services_by_name["StandingsService"],
    rescore_service_pb2.DESCRIPTOR.services_by_name["RescoreService"],
    export_service_pb2.DESCRIPTOR.services_by_name["ExportService"],
)

# What gRPC itself puts on a call; the next hop gets its own.
_HOP_METADATA = ("grpc-", ":", "user-agent", "content-type", "te")

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Amend: TypeAlias = Callable[[bytes], bytes]
LooksForRuns: TypeAlias = (
    comparison_service_pb2.CompareRunsRequest
    | standings_service_pb2.GetLeaderboardRequest
    | standings_service_pb2.GetHistoryRequest
    | scheduler_service_pb2.ListRunsRequest
)


@dataclass(frozen=True, slots=True)
class Doorkeeping:
    """Who asks, and whether they ask too often."""

    identity: Identity
    counts: RequestCounts

    async def count(self, context: Context) -> None:
        metadata = {key: value for key, value in context.invocation_metadata() or () if type(value) is str}
        await self.counts.count(self.identity.user_of(metadata))


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A public service and the channel to who implements it; `amended` calls do not pass as they are.

    Of a stream that comes in, the first piece is amended.
    """

    service: ServiceDescriptor
    channel: grpc.aio.Channel
    backend: str
    door: Doorkeeping
    amended: Mapping[str, Amend] = field(default_factory=dict)

    def register(self, server: grpc.aio.Server) -> None:
        handlers = {method.name: self._handler(method) for method in self.service.methods}
        generic = grpc.method_handlers_generic_handler(self.service.full_name, handlers)
        server.add_generic_rpc_handlers((generic,))

    def _handler(self, method: MethodDescriptor) -> "grpc.RpcMethodHandler[bytes, bytes]":
        path = f"/{self.service.full_name}/{method.name}"
        amend = self.amended.get(method.name, bytes)
        if method.client_streaming:
            return grpc.stream_unary_rpc_method_handler(self._forward_pieces(path, amend))
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(self._forward_stream(path))
        return grpc.unary_unary_rpc_method_handler(self._forward_call(path, amend))

    # The stubs of the handlers know only the synchronous API, hence Any.
    def _forward_call(self, path: str, amend: Amend) -> Any:
        async def forward(request: bytes, context: Context) -> bytes:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path)
            await self.door.count(context)
            sent = amend(request)
            try:
                return await call(sent, timeout=context.time_remaining(), metadata=_metadata(context))
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context, self.backend)

        return forward

    def _forward_pieces(self, path: str, amend: Amend) -> Any:
        async def forward(pieces: AsyncIterable[bytes], context: Context) -> bytes:
            await self.door.count(context)
            start: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = self.channel.stream_unary(path)
            call = start(timeout=context.time_remaining(), metadata=_metadata(context))
            try:
                return await answer_to(call, _first_amended(pieces, amend))
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context, self.backend)

        return forward

    def _forward_stream(self, path: str) -> Any:
        async def forward(request: bytes, context: Context) -> AsyncIterator[bytes]:
            await self.door.count(context)
            start: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self.channel.unary_stream(path)
            call = start(request, timeout=context.time_remaining(), metadata=_metadata(context))
            try:
                async for response in call:
                    yield response
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context, self.backend)
            finally:
                call.cancel()

        return forward


def public_services(
    scheduler: grpc.aio.Channel, results: grpc.aio.Channel, door: Doorkeeping
) -> tuple[Forwarded, ...]:
    amended = {"SubmitRun": with_request_id, **OF_ALL_VERSIONS}
    return (
        Forwarded(SCHEDULER_SERVICE, scheduler, SCHEDULER, door, amended),
        Forwarded(SUITE_SERVICE, scheduler, SCHEDULER, door),
        Forwarded(QUEUE_SERVICE, scheduler, SCHEDULER, door),
        Forwarded(DATASET_SERVICE, scheduler, SCHEDULER, door, {"UploadDataset": with_upload_id}),
        *(Forwarded(service, results, RESULTS, door, OF_ALL_VERSIONS) for service in OF_RESULTS),
    )


def with_request_id(request: bytes) -> bytes:
    """Makes an order repeatable where its caller did not: the second finds the run of the first."""
    try:
        submission = scheduler_service_pb2.SubmitRunRequest.FromString(request)
    except message.DecodeError as error:
        raise MalformedRequest(expected="SubmitRunRequest") from error
    submission.request_id = submission.request_id or str(uuid.uuid4())
    return submission.SerializeToString()


def with_upload_id(piece: bytes) -> bytes:
    """As an order; where no header comes first, the scheduler says so."""
    try:
        first = dataset_service_pb2.UploadDatasetRequest.FromString(piece)
    except message.DecodeError as error:
        raise MalformedRequest(expected="UploadDatasetRequest") from error
    if first.HasField("header") and not first.header.request_id:
        first.header.request_id = str(uuid.uuid4())
    return first.SerializeToString()


def of_all_versions(kind: type[LooksForRuns]) -> Amend:
    """Refuses what names a version of a suite; else the request as it is."""

    def checked(request: bytes) -> bytes:
        try:
            suite_versions.of_all_versions(kind.FromString(request).suite)
        except message.DecodeError as error:
            raise MalformedRequest(expected=kind.DESCRIPTOR.name) from error
        return request

    return checked


OF_ALL_VERSIONS: Mapping[str, Amend] = {
    "CompareRuns": of_all_versions(comparison_service_pb2.CompareRunsRequest),
    "GetLeaderboard": of_all_versions(standings_service_pb2.GetLeaderboardRequest),
    "GetHistory": of_all_versions(standings_service_pb2.GetHistoryRequest),
    "ListRuns": of_all_versions(scheduler_service_pb2.ListRunsRequest),
}


async def _first_amended(pieces: AsyncIterable[bytes], amend: Amend) -> AsyncIterator[bytes]:
    is_first = True
    async for piece in pieces:
        yield amend(piece) if is_first else piece
        is_first = False


async def _pass_on(error: grpc.aio.AioRpcError, context: Context, backend: str) -> NoReturn:
    told = backend_error(error, backend)
    if isinstance(told, DependencyUnavailable | MessageTooLarge):
        raise told from error
    await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata()))


def _metadata(context: Context) -> tuple[tuple[str, str | bytes], ...]:
    received = context.invocation_metadata() or ()
    return tuple((key, value) for key, value in received if not key.startswith(_HOP_METADATA))
