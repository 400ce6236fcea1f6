"""Scheduler and results as the APIs call them: calls have a time limit and fail with domain errors."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, cast

import grpc
from fastapi import Depends, Request

from proctor.client.calls import send_chunks
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import change_service_pb2_grpc as change_grpc
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import request_count_service_pb2_grpc as request_count_grpc
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc
from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import storage_service_pb2_grpc as storage_grpc
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.v1.results_service_pb2 import GetSummaryRequest, ListOutcomesRequest, ListOutcomesResponse
from proctor.values.names.user import Caller
from services.common.errors import DependencyUnavailable, DomainError, ErrorKind, RemoteError
from services.common.grpc.caller import caller_metadata
from services.common.grpc.errors import remote_error

SCHEDULER = "scheduler"
RESULTS = "results"

# Calls that are not idempotent: after a lost response, a second call would fail or count twice.
SENT_ONCE = (
    "proctor.v1.SchedulerService/CancelRun",
    "proctor.v1.SchedulerService/RetryRun",
    "proctor.v1.SchedulerService/ResumeRun",
    "proctor.v1.SchedulerService/DeleteRun",
    "proctor.v1.RequestCountService/CountRequest",
    "proctor.v1.SuiteService/DeleteSuite",
    "proctor.v1.DatasetService/DeleteDataset",
    "proctor.v1.FileService/DeleteFile",
    "proctor.v1.BatchService/CancelBatch",
    # gRPC aborts the process when it retries a client stream during a write.
    "proctor.v1.DatasetService/UploadDataset",
    "proctor.v1.FileService/UploadFile",
    "proctor.v1.RolloutService/UploadTasks",
)
# Rescoring a run, and computing the size of an export (a million rows in half a minute), take longer.
_LONG_CALL_FACTOR = 10


def backend_error(error: grpc.aio.AioRpcError, backend: str) -> DomainError:
    """The error that the backend reported, or `DependencyUnavailable` when it did not respond."""
    reported = remote_error(error)
    is_away = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return DependencyUnavailable(dependency=backend) if is_away and not reported.facts else reported


_ANONYMOUS = Caller()
# The caller of the request that is being served.
_caller: ContextVar[Caller] = ContextVar("caller", default=_ANONYMOUS)


@contextmanager
def calling_for(caller: Caller) -> Iterator[None]:
    """Calls of backends inside are made for this caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


class BackendChannel:
    """A gRPC channel as generated stubs need it; see the module for what it adds. Calls name the caller.

    `timeout` of a call replaces the limit of the channel. A streamed response has the limit for each chunk;
    an upload has none, because it lasts as long as its caller sends.
    """

    def __init__(self, channel: grpc.aio.Channel, backend: str, *, timeout_seconds: float) -> None:
        self._channel = channel
        self._backend = backend
        self._timeout = timeout_seconds

    # The stubs declare the types of requests and responses, hence Any.
    def unary_unary(self, path: str, **codec: Any) -> Any:
        method: grpc.aio.UnaryUnaryMultiCallable[Any, Any] = self._channel.unary_unary(path, **codec)

        async def call(request: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # gRPC's own
            with self._domain_errors():
                metadata = caller_metadata(_caller.get())
                return await method(request, timeout=timeout or self._timeout, metadata=metadata)

        return call

    def stream_unary(self, path: str, **codec: Any) -> Any:
        method: grpc.aio.StreamUnaryMultiCallable[Any, Any] = self._channel.stream_unary(path, **codec)

        async def upload(chunks: AsyncIterable[Any]) -> Any:
            with self._domain_errors():
                return await send_chunks(method(metadata=caller_metadata(_caller.get())), chunks)

        return upload

    def unary_stream(self, path: str, **codec: Any) -> Any:
        """The response is an async generator; closing it cancels the call."""
        method: grpc.aio.UnaryStreamMultiCallable[Any, Any] = self._channel.unary_stream(path, **codec)

        async def download(request: Any, timeout: float | None = None) -> AsyncGenerator[Any]:  # noqa: ASYNC109  # the parameter of the stubs that it stands for
            call = method(request, metadata=caller_metadata(_caller.get()))
            try:
                with self._domain_errors():
                    while (chunk := await self._next(call, timeout or self._timeout)) is not None:
                        yield chunk
            finally:
                # Also where the reader has closed the generator: the backend would go on sending.
                call.cancel()

        return download

    async def _next(self, call: grpc.aio.UnaryStreamCall[Any, Any], timeout_seconds: float) -> Any:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await anext(aiter(call), None)
        except TimeoutError as error:
            raise DependencyUnavailable(dependency=self._backend) from error

    @contextmanager
    def _domain_errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise backend_error(error, self._backend) from error


class Scheduler:
    """The scheduler's services."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        calls = _calls(channel, SCHEDULER, timeout_seconds)
        self.runs: scheduler_grpc.SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(calls)
        self.suites: suite_grpc.SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(calls)
        self.queue: queue_grpc.QueueServiceAsyncStub = queue_grpc.QueueServiceStub(calls)
        self.changes: change_grpc.ChangeServiceAsyncStub = change_grpc.ChangeServiceStub(calls)
        self.datasets: dataset_grpc.DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(calls)
        self.files: file_grpc.FileServiceAsyncStub = file_grpc.FileServiceStub(calls)
        self.batches: batch_grpc.BatchServiceAsyncStub = batch_grpc.BatchServiceStub(calls)
        self.storage: storage_grpc.StorageServiceAsyncStub = storage_grpc.StorageServiceStub(calls)
        self.rollouts: rollout_grpc.RolloutServiceAsyncStub = rollout_grpc.RolloutServiceStub(calls)
        self.artifacts: artifact_grpc.ArtifactServiceAsyncStub = artifact_grpc.ArtifactServiceStub(calls)
        self.request_counts: request_count_grpc.RequestCountServiceAsyncStub = (
            request_count_grpc.RequestCountServiceStub(calls)
        )

    async def run(self, run_id: str) -> run_pb2.Run:
        return (await self.runs.GetRun(scheduler_pb2.GetRunRequest(run_id=run_id))).run


class Results:
    """The services of results."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        calls = _calls(channel, RESULTS, timeout_seconds)
        self.outcomes: results_grpc.ResultsServiceAsyncStub = results_grpc.ResultsServiceStub(calls)
        self.comparisons: comparison_grpc.ComparisonServiceAsyncStub = comparison_grpc.ComparisonServiceStub(
            calls
        )
        self.leaderboard: leaderboard_grpc.LeaderboardServiceAsyncStub = (
            leaderboard_grpc.LeaderboardServiceStub(calls)
        )
        self.answers: answer_grpc.AnswerServiceAsyncStub = answer_grpc.AnswerServiceStub(calls)
        self.exports: export_grpc.ExportServiceAsyncStub = export_grpc.ExportServiceStub(calls)
        self.rescoring: rescore_grpc.RescoreServiceAsyncStub = rescore_grpc.RescoreServiceStub(calls)
        self.long_call_seconds = timeout_seconds * _LONG_CALL_FACTOR

    async def summary(self, run_id: str) -> summary_pb2.RunSummary:
        """The summary of a run, partial while it runs; empty before it is planned."""
        try:
            return (await self.outcomes.GetSummary(GetSummaryRequest(run_id=run_id))).summary
        except RemoteError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return summary_pb2.RunSummary(run_id=run_id)
            raise

    async def recorded_outcomes(self, request: ListOutcomesRequest) -> ListOutcomesResponse:
        """A page of outcomes; empty before the run is planned."""
        try:
            return await self.outcomes.ListOutcomes(request)
        except RemoteError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return ListOutcomesResponse()
            raise


async def _scheduler(request: Request) -> Scheduler:
    scheduler: Scheduler = request.app.state.scheduler
    return scheduler


async def _results(request: Request) -> Results:
    results: Results = request.app.state.results
    return results


# Dependencies of handlers: the backends.
SchedulerCalls = Annotated[Scheduler, Depends(_scheduler)]
ResultsCalls = Annotated[Results, Depends(_results)]


@dataclass(frozen=True, slots=True)
class Backends:
    scheduler: SchedulerCalls
    results: ResultsCalls


BackendCalls = Annotated[Backends, Depends()]


def _calls(channel: grpc.aio.Channel, backend: str, timeout_seconds: float) -> grpc.aio.Channel:
    """Stubs use three methods of a channel, and `BackendChannel` has these three."""
    return cast("grpc.aio.Channel", BackendChannel(channel, backend, timeout_seconds=timeout_seconds))
