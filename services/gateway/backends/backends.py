"""Scheduler and results as the APIs call them: one generated stub per gRPC service."""

from typing import cast

import grpc

from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import request_count_service_pb2_grpc as request_count_grpc
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import run_pb2, scheduler_service_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.v1.results_service_pb2 import GetSummaryRequest, ListOutcomesRequest, ListOutcomesResponse
from services.common.errors import ErrorKind, RemoteError
from services.gateway.backends.channel import RESULTS, SCHEDULER, BackendChannel

# Rescoring a run, and computing the size of an export (a million rows in half a minute), take longer.
_LONG_CALL_FACTOR = 10


class Scheduler:
    """The scheduler's services."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        calls = _calls(channel, SCHEDULER, timeout_seconds)
        self.runs: scheduler_grpc.SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(calls)
        self.suites: suite_grpc.SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(calls)
        self.queue: queue_grpc.QueueServiceAsyncStub = queue_grpc.QueueServiceStub(calls)
        self.datasets: dataset_grpc.DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(calls)
        self.files: file_grpc.FileServiceAsyncStub = file_grpc.FileServiceStub(calls)
        self.batches: batch_grpc.BatchServiceAsyncStub = batch_grpc.BatchServiceStub(calls)
        self.request_counts: request_count_grpc.RequestCountServiceAsyncStub = (
            request_count_grpc.RequestCountServiceStub(calls)
        )

    async def run(self, run_id: str) -> run_pb2.Run:
        return (await self.runs.GetRun(scheduler_service_pb2.GetRunRequest(run_id=run_id))).run


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


def _calls(channel: grpc.aio.Channel, backend: str, timeout_seconds: float) -> grpc.aio.Channel:
    """Stubs use three methods of a channel, and `BackendChannel` has these three."""
    return cast("grpc.aio.Channel", BackendChannel(channel, backend, timeout_seconds=timeout_seconds))
