"""The generated stubs of scheduler and results over a channel that knows how each call is made."""

import asyncio
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar, cast

import grpc

from proctor.v1 import annotation_service_pb2_grpc as annotation_grpc
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.v1 import audit_service_pb2_grpc as audit_grpc
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import change_service_pb2_grpc as change_grpc
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.v1 import import_service_pb2_grpc as import_grpc
from proctor.v1 import key_service_pb2_grpc as key_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import notice_service_pb2_grpc as notice_grpc
from proctor.v1 import project_service_pb2_grpc as project_grpc
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc
from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import schedule_service_pb2_grpc as schedule_grpc
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import storage_service_pb2_grpc as storage_grpc
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.v1.results_service_pb2 import GetSummaryRequest
from proctor.v1.scheduler_service_pb2 import GetRunRequest
from proctor.wire.uploads import send_chunks

# Calls that are not idempotent: after a lost response, a second call would fail or count twice.
SENT_ONCE = (
    "proctor.v1.SchedulerService/CancelRun",
    "proctor.v1.SchedulerService/RetryRun",
    "proctor.v1.SchedulerService/ResumeRun",
    "proctor.v1.SchedulerService/DeleteRun",
    "proctor.v1.RequestCountService/CountRequest",
    "proctor.v1.SuiteService/DeleteSuite",
    "proctor.v1.DatasetService/DeleteDataset",
    "proctor.v1.DatasetService/DeleteMapping",
    "proctor.v1.FileService/DeleteFile",
    "proctor.v1.BatchService/CancelBatch",
    # gRPC aborts the process when it retries a client stream during a write.
    "proctor.v1.DatasetService/UploadDataset",
    "proctor.v1.FileService/UploadFile",
    "proctor.v1.RolloutService/UploadTasks",
    "proctor.v1.ImportService/ImportRun",
)
# Rescoring a run, comparing large ones, and the size of an export (a million rows in half a minute) take
# longer.
LONG_CALL_FACTOR = 10
_LONG_CALLS = frozenset(
    {
        "/proctor.v1.RescoreService/RescoreTask",
        "/proctor.v1.ComparisonService/CompareRuns",
        "/proctor.v1.ComparisonService/ListFlips",
    }
)

Metadata: TypeAlias = tuple[tuple[str, str | bytes], ...]
CallFailed: TypeAlias = grpc.aio.AioRpcError | TimeoutError
T = TypeVar("T")

log = logging.getLogger(__name__)


class StubChannel(ABC):
    """The three methods of a channel that generated stubs use. `timeout` of a call replaces its limit.

    A call lasts at most `timeout_seconds`. A streamed response has `chunk_seconds` for each chunk, or no
    limit; an upload has none, because it lasts as long as its caller sends. A call whose failure
    `is_retried` accepts is sent again after each of `pauses`, always with the same request id.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        timeout_seconds: float,
        *,
        chunk_seconds: float | None = None,
        pauses: Sequence[float] = (),
    ) -> None:
        self._channel = channel
        self._timeout = timeout_seconds
        self._chunk_timeout = chunk_seconds
        self._pauses = pauses

    @abstractmethod
    def metadata(self) -> Metadata:
        """Read for each call."""

    @abstractmethod
    def failure(self, error: CallFailed) -> Exception:
        """What is raised for it."""

    def is_retried(self, failure: Exception) -> bool:  # noqa: ARG002  # for those that have pauses
        return False

    def as_channel(self) -> grpc.aio.Channel:
        """For stubs, which use these three methods only."""
        return cast("grpc.aio.Channel", self)

    # The stubs declare the types of requests and responses, hence Any.
    def unary_unary(self, path: str, **codec: Any) -> Any:
        method: grpc.aio.UnaryUnaryMultiCallable[Any, Any] = self._channel.unary_unary(path, **codec)
        limit = self._timeout * (LONG_CALL_FACTOR if path in _LONG_CALLS else 1)
        pauses = () if path.removeprefix("/") in SENT_ONCE else self._pauses

        async def call(request: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # gRPC's own
            sent = _identified(request) if pauses else request
            left = iter(pauses)
            while True:
                try:
                    return await method(sent, timeout=timeout or limit, metadata=self.metadata())
                except grpc.aio.AioRpcError as error:
                    failure = self.failure(error)
                    pause = next(left, None)
                    if pause is None or not self.is_retried(failure):
                        raise failure from error
                log.info("%s is sent again: %s", path, failure)
                await asyncio.sleep(pause)

        return call

    def stream_unary(self, path: str, **codec: Any) -> Any:
        method: grpc.aio.StreamUnaryMultiCallable[Any, Any] = self._channel.stream_unary(path, **codec)

        async def upload(chunks: AsyncIterable[Any]) -> Any:
            with self._failures():
                return await send_chunks(method(metadata=self.metadata()), chunks)

        return upload

    def unary_stream(self, path: str, **codec: Any) -> Any:
        """The response is an async generator; closing it cancels the call."""
        method: grpc.aio.UnaryStreamMultiCallable[Any, Any] = self._channel.unary_stream(path, **codec)

        async def download(request: Any, timeout: float | None = None) -> AsyncGenerator[Any]:  # noqa: ASYNC109  # the parameter of the stubs that it stands for
            call = method(request, metadata=self.metadata())
            try:
                with self._failures():
                    while (chunk := await self._next(call, timeout or self._chunk_timeout)) is not None:
                        yield chunk
            finally:
                # Also where the reader has closed the generator: the server would go on sending.
                call.cancel()

        return download

    async def _next(self, call: grpc.aio.UnaryStreamCall[Any, Any], timeout_seconds: float | None) -> Any:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await anext(aiter(call), None)
        except TimeoutError as error:
            raise self.failure(error) from error

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise self.failure(error) from error


def _identified(request: Any) -> Any:
    """With a request id where it has room for one and has none: repeated, it is the same order."""
    if "request_id" not in request.DESCRIPTOR.fields_by_name or request.request_id:
        return request
    sent = type(request)()
    sent.CopyFrom(request)
    sent.request_id = str(uuid.uuid4())
    return sent


def chunks_of(response: AsyncIterable[T]) -> AsyncGenerator[T]:
    """The streamed response of a `StubChannel` can be closed, which the types of stubs do not say."""
    return cast("AsyncGenerator[T]", response)


class SchedulerStubs:
    """The public services of the scheduler. Calls take and return messages of `proctor.v1`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.runs: scheduler_grpc.SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(channel)
        self.suites: suite_grpc.SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(channel)
        self.queue: queue_grpc.QueueServiceAsyncStub = queue_grpc.QueueServiceStub(channel)
        self.changes: change_grpc.ChangeServiceAsyncStub = change_grpc.ChangeServiceStub(channel)
        self.audit: audit_grpc.AuditServiceAsyncStub = audit_grpc.AuditServiceStub(channel)
        self.keys: key_grpc.KeyServiceAsyncStub = key_grpc.KeyServiceStub(channel)
        self.projects: project_grpc.ProjectServiceAsyncStub = project_grpc.ProjectServiceStub(channel)
        self.datasets: dataset_grpc.DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(channel)
        self.files: file_grpc.FileServiceAsyncStub = file_grpc.FileServiceStub(channel)
        self.batches: batch_grpc.BatchServiceAsyncStub = batch_grpc.BatchServiceStub(channel)
        self.storage: storage_grpc.StorageServiceAsyncStub = storage_grpc.StorageServiceStub(channel)
        self.imports: import_grpc.ImportServiceAsyncStub = import_grpc.ImportServiceStub(channel)
        self.rollouts: rollout_grpc.RolloutServiceAsyncStub = rollout_grpc.RolloutServiceStub(channel)
        self.notices: notice_grpc.NoticeServiceAsyncStub = notice_grpc.NoticeServiceStub(channel)
        self.schedules: schedule_grpc.ScheduleServiceAsyncStub = schedule_grpc.ScheduleServiceStub(channel)
        self.artifacts: artifact_grpc.ArtifactServiceAsyncStub = artifact_grpc.ArtifactServiceStub(channel)

    async def run(self, run_id: str) -> run_pb2.Run:
        return (await self.runs.GetRun(GetRunRequest(run_id=run_id))).run


class ResultsStubs:
    """The public services of results. Calls take and return messages of `proctor.v1`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.outcomes: results_grpc.ResultsServiceAsyncStub = results_grpc.ResultsServiceStub(channel)
        self.comparisons: comparison_grpc.ComparisonServiceAsyncStub = comparison_grpc.ComparisonServiceStub(
            channel
        )
        self.leaderboard: leaderboard_grpc.LeaderboardServiceAsyncStub = (
            leaderboard_grpc.LeaderboardServiceStub(channel)
        )
        self.answers: answer_grpc.AnswerServiceAsyncStub = answer_grpc.AnswerServiceStub(channel)
        self.annotations: annotation_grpc.AnnotationServiceAsyncStub = annotation_grpc.AnnotationServiceStub(
            channel
        )
        self.exports: export_grpc.ExportServiceAsyncStub = export_grpc.ExportServiceStub(channel)
        self.rescoring: rescore_grpc.RescoreServiceAsyncStub = rescore_grpc.RescoreServiceStub(channel)

    async def summary(self, run_id: str) -> summary_pb2.RunSummary:
        return (await self.outcomes.GetSummary(GetSummaryRequest(run_id=run_id))).summary
