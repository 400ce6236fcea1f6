"""The public gRPC endpoint: calls pass through as bytes, with deadline, cancellation and error details."""

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from proctor.client.calls import send_chunks
from proctor.v1 import (
    answer_service_pb2,
    batch_service_pb2,
    comparison_service_pb2,
    dataset_service_pb2,
    export_service_pb2,
    file_service_pb2,
    leaderboard_service_pb2,
    queue_service_pb2,
    rescore_service_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    suite_service_pb2,
)
from services.common.errors import DependencyUnavailable, MessageTooLarge
from services.common.grpc_errors import parsed
from services.gateway.api.suites import suite_names as suite_versions
from services.gateway.auth.identity import DEFAULT_USER, Identity
from services.gateway.auth.rate_limit import RequestCounts
from services.gateway.backends.calls import RESULTS, SCHEDULER, backend_error

SCHEDULER_SERVICE: ServiceDescriptor = scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"]
SUITE_SERVICE: ServiceDescriptor = suite_service_pb2.DESCRIPTOR.services_by_name["SuiteService"]
QUEUE_SERVICE: ServiceDescriptor = queue_service_pb2.DESCRIPTOR.services_by_name["QueueService"]
DATASET_SERVICE: ServiceDescriptor = dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"]
FILE_SERVICE: ServiceDescriptor = file_service_pb2.DESCRIPTOR.services_by_name["FileService"]
BATCH_SERVICE: ServiceDescriptor = batch_service_pb2.DESCRIPTOR.services_by_name["BatchService"]
ANSWER_SERVICE: ServiceDescriptor = answer_service_pb2.DESCRIPTOR.services_by_name["AnswerService"]
OF_RESULTS: tuple[ServiceDescriptor, ...] = (
    results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"],
    comparison_service_pb2.DESCRIPTOR.services_by_name["ComparisonService"],
    leaderboard_service_pb2.DESCRIPTOR.services_by_name["LeaderboardService"],
    rescore_service_pb2.DESCRIPTOR.services_by_name["RescoreService"],
    export_service_pb2.DESCRIPTOR.services_by_name["ExportService"],
)

# An operator who has made too many requests must be able to allow more.
_UNCOUNTED = frozenset(f"/{QUEUE_SERVICE.full_name}/{method}" for method in ("GetLimits", "SetLimits"))

# What gRPC itself puts on a call; the next hop gets its own.
_HOP_METADATA = ("grpc-", ":", "user-agent", "content-type", "te")

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
# Takes the request and the name that was given at the door, "" for none.
Amend: TypeAlias = Callable[[bytes, str], bytes]
LooksForRuns: TypeAlias = (
    comparison_service_pb2.CompareRunsRequest
    | leaderboard_service_pb2.GetLeaderboardRequest
    | leaderboard_service_pb2.GetHistoryRequest
    | scheduler_service_pb2.ListRunsRequest
)


@dataclass(frozen=True, slots=True)
class Doorkeeping:
    """Who asks, and whether they ask too often."""

    identity: Identity
    counts: RequestCounts

    async def name(self, path: str, context: Context) -> str:
        """The name that was given, "" for none; the call is counted for it."""
        named = self.identity.named_by(context.invocation_metadata() or ())
        if path not in _UNCOUNTED:
            await self.counts.count(named or DEFAULT_USER)
        return named


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
        amend = self.amended.get(method.name, _as_it_is)
        if method.client_streaming:
            return grpc.stream_unary_rpc_method_handler(self._forward_pieces(path, amend))
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(self._forward_stream(path))
        return grpc.unary_unary_rpc_method_handler(self._forward_call(path, amend))

    # The stubs of the handlers know only the synchronous API, hence Any.
    def _forward_call(self, path: str, amend: Amend) -> Any:
        async def forward(request: bytes, context: Context) -> bytes:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path)
            sent = amend(request, await self.door.name(path, context))
            try:
                return await call(sent, timeout=context.time_remaining(), metadata=_metadata(context))
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context, self.backend)

        return forward

    def _forward_pieces(self, path: str, amend: Amend) -> Any:
        async def forward(pieces: AsyncIterable[bytes], context: Context) -> bytes:
            named = await self.door.name(path, context)
            start: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = self.channel.stream_unary(path)
            call = start(timeout=context.time_remaining(), metadata=_metadata(context))
            try:
                return await send_chunks(call, _first_amended(pieces, amend, named))
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context, self.backend)

        return forward

    def _forward_stream(self, path: str) -> Any:
        async def forward(request: bytes, context: Context) -> AsyncIterator[bytes]:
            await self.door.name(path, context)
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
    amended = {"SubmitRun": repeatable_order, **OF_ALL_VERSIONS}
    return (
        Forwarded(SCHEDULER_SERVICE, scheduler, SCHEDULER, door, amended),
        Forwarded(SUITE_SERVICE, scheduler, SCHEDULER, door, {"AddSuite": suite_of_user}),
        Forwarded(QUEUE_SERVICE, scheduler, SCHEDULER, door),
        Forwarded(DATASET_SERVICE, scheduler, SCHEDULER, door, {"UploadDataset": repeatable_upload}),
        Forwarded(FILE_SERVICE, scheduler, SCHEDULER, door, {"UploadFile": repeatable_file}),
        Forwarded(BATCH_SERVICE, scheduler, SCHEDULER, door, {"CreateBatch": repeatable_batch}),
        Forwarded(ANSWER_SERVICE, results, RESULTS, door, {"MarkAnswers": marks_of_user}),
        *(Forwarded(service, results, RESULTS, door, OF_ALL_VERSIONS) for service in OF_RESULTS),
    )


def repeatable_order(request: bytes, named: str) -> bytes:
    """With who orders, and an id where its caller gave none: the second finds the run of the first."""
    submission = parsed(scheduler_service_pb2.SubmitRunRequest, request)
    submission.user = named or submission.user
    submission.request_id = submission.request_id or str(uuid.uuid4())
    return submission.SerializeToString()


def suite_of_user(request: bytes, named: str) -> bytes:
    addition = parsed(suite_service_pb2.AddSuiteRequest, request)
    addition.user = named or addition.user
    return addition.SerializeToString()


def marks_of_user(request: bytes, named: str) -> bytes:
    order = parsed(answer_service_pb2.MarkAnswersRequest, request)
    order.user = named or order.user
    return order.SerializeToString()


def repeatable_upload(piece: bytes, named: str) -> bytes:
    """As an order; where no header comes first, the scheduler says so."""
    first = parsed(dataset_service_pb2.UploadDatasetRequest, piece)
    if first.HasField("header"):
        first.header.user = named or first.header.user
        first.header.request_id = first.header.request_id or str(uuid.uuid4())
    return first.SerializeToString()


def repeatable_file(piece: bytes, named: str) -> bytes:
    """As an upload of a data set."""
    first = parsed(file_service_pb2.UploadFileRequest, piece)
    if first.HasField("header"):
        first.header.user = named or first.header.user
        first.header.request_id = first.header.request_id or str(uuid.uuid4())
    return first.SerializeToString()


def repeatable_batch(request: bytes, named: str) -> bytes:
    """As an order."""
    order = parsed(batch_service_pb2.CreateBatchRequest, request)
    order.user = named or order.user
    order.request_id = order.request_id or str(uuid.uuid4())
    return order.SerializeToString()


def of_all_versions(kind: type[LooksForRuns]) -> Amend:
    """Refuses what names a version of a suite; else the request as it is."""

    def checked(request: bytes, named: str) -> bytes:  # noqa: ARG001  # of no account here
        suite_versions.of_all_versions(parsed(kind, request).suite)
        return request

    return checked


def _as_it_is(request: bytes, named: str) -> bytes:  # noqa: ARG001  # of no account here
    return request


OF_ALL_VERSIONS: Mapping[str, Amend] = {
    "CompareRuns": of_all_versions(comparison_service_pb2.CompareRunsRequest),
    "GetLeaderboard": of_all_versions(leaderboard_service_pb2.GetLeaderboardRequest),
    "GetHistory": of_all_versions(leaderboard_service_pb2.GetHistoryRequest),
    "ListRuns": of_all_versions(scheduler_service_pb2.ListRunsRequest),
}


async def _first_amended(pieces: AsyncIterable[bytes], amend: Amend, named: str) -> AsyncIterator[bytes]:
    is_first = True
    async for piece in pieces:
        yield amend(piece, named) if is_first else piece
        is_first = False


async def _pass_on(error: grpc.aio.AioRpcError, context: Context, backend: str) -> NoReturn:
    told = backend_error(error, backend)
    if isinstance(told, DependencyUnavailable | MessageTooLarge):
        raise told from error
    await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata()))


def _metadata(context: Context) -> tuple[tuple[str, str | bytes], ...]:
    received = context.invocation_metadata() or ()
    return tuple((key, value) for key, value in received if not key.startswith(_HOP_METADATA))
