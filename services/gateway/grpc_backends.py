"""What the HTTP door asks of scheduler and results: one method per call, failures as domain errors."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

import grpc

from proctor.v1 import results_service_pb2, results_service_pb2_grpc, run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from services.common.errors import DependencyUnavailable, DomainError
from services.common.grpc_client import remote_error

if TYPE_CHECKING:
    from proctor.v1.results_service_pb2_grpc import ResultsServiceAsyncStub
    from proctor.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub

SCHEDULER = "scheduler"
RESULTS = "results"

# Where the answer to the first was lost, a second would be refused: the run is cancelled, or waits, already.
SENT_ONCE = ("proctor.v1.SchedulerService/CancelRun", "proctor.v1.SchedulerService/RetryRun")

T = TypeVar("T")


def backend_error(error: grpc.aio.AioRpcError, backend: str) -> DomainError:
    """What the backend said, or that it does not answer."""
    told = remote_error(error)
    is_away = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return DependencyUnavailable(dependency=backend) if is_away and not told.facts else told


class Backends:
    """The two services behind the gateway."""

    def __init__(
        self, scheduler: grpc.aio.Channel, results: grpc.aio.Channel, *, timeout_seconds: float
    ) -> None:
        self._scheduler: SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(scheduler)
        self._results: ResultsServiceAsyncStub = results_service_pb2_grpc.ResultsServiceStub(results)
        self._timeout = timeout_seconds

    async def submit_run(self, request: scheduler_pb2.SubmitRunRequest) -> scheduler_pb2.SubmitRunResponse:
        return await _answer(self._scheduler.SubmitRun(request, timeout=self._timeout), SCHEDULER)

    async def get_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=run_id)
        return (await _answer(self._scheduler.GetRun(request, timeout=self._timeout), SCHEDULER)).run

    async def list_runs(self, request: scheduler_pb2.ListRunsRequest) -> scheduler_pb2.ListRunsResponse:
        return await _answer(self._scheduler.ListRuns(request, timeout=self._timeout), SCHEDULER)

    async def cancel_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.CancelRunRequest(run_id=run_id)
        return (await _answer(self._scheduler.CancelRun(request, timeout=self._timeout), SCHEDULER)).run

    async def retry_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.RetryRunRequest(run_id=run_id)
        return (await _answer(self._scheduler.RetryRun(request, timeout=self._timeout), SCHEDULER)).run

    async def get_summary(self, run_id: str) -> summary_pb2.RunSummary:
        request = results_service_pb2.GetSummaryRequest(run_id=run_id)
        return (await _answer(self._results.GetSummary(request, timeout=self._timeout), RESULTS)).summary


async def _answer(call: Awaitable[T], backend: str) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise backend_error(error, backend) from error
