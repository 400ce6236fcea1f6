"""The typed way into a gateway, by its public gRPC endpoint: one method per call, failures as exceptions."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import grpc

from proctor import client_errors
from proctor.v1 import outcome_pb2, results_service_pb2, results_service_pb2_grpc, run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc

if TYPE_CHECKING:
    from proctor.v1.results_service_pb2_grpc import ResultsServiceAsyncStub
    from proctor.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub

Q = TypeVar("Q")
A = TypeVar("A")

FINAL_STATES = frozenset(
    {run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED},
)

# A gateway that restarts is back within these pauses.
_RETRY_PAUSES_SECONDS = (0.2, 0.5, 1.0)
_CHANNEL_OPTIONS = (
    # A proxy of the environment is for the web, not for a gateway that was named.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How long a watch looks for a gateway that went away, and who is told each time it is lost."""

    give_up_seconds: float = 60.0
    pause_seconds: float = 0.5
    on_lost: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_UNSPECIFIED
    suite: str = ""
    model: str = ""
    project_id: int | None = None


class ProctorClient:
    """Use as an async context manager; every method raises ClientError and its kinds only."""

    def __init__(self, address: str, *, user: str = "", timeout_seconds: float = 30.0) -> None:
        self.address = address
        self._user = user
        self._timeout_seconds = timeout_seconds
        self._channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self._scheduler: SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(self._channel)
        self._results: ResultsServiceAsyncStub = results_service_pb2_grpc.ResultsServiceStub(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._channel.close()

    async def submit_run(self, order: run_pb2.RunOrder) -> scheduler_pb2.SubmitRunResponse:
        # The id is made once, so that a call that is repeated over an outage finds the run of the first.
        request = scheduler_pb2.SubmitRunRequest(order=order, user=self._user, request_id=str(uuid.uuid4()))
        return await self._call(self._scheduler.SubmitRun, request)

    async def get_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=run_id)
        response = await self._call(self._scheduler.GetRun, request)
        return response.run

    async def list_runs(
        self, chosen: RunFilter | None = None, *, page_size: int = 20, page_token: str = ""
    ) -> scheduler_pb2.ListRunsResponse:
        by = chosen or RunFilter()
        request = scheduler_pb2.ListRunsRequest(
            page_size=page_size, page_token=page_token, state=by.state, suite=by.suite, model=by.model
        )
        if by.project_id is not None:
            request.project_id = by.project_id
        return await self._call(self._scheduler.ListRuns, request)

    async def cancel_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.CancelRunRequest(run_id=run_id)
        response = await self._call_once(self._scheduler.CancelRun, request)
        return response.run

    async def retry_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.RetryRunRequest(run_id=run_id)
        response = await self._call_once(self._scheduler.RetryRun, request)
        return response.run

    async def list_suites(self) -> list[scheduler_pb2.SuiteInfo]:
        request = scheduler_pb2.ListSuitesRequest()
        response = await self._call(self._scheduler.ListSuites, request)
        return list(response.suites)

    async def list_models(self, provider: str = "") -> list[scheduler_pb2.ModelInfo]:
        request = scheduler_pb2.ListModelsRequest(provider=provider)
        response = await self._call(self._scheduler.ListModels, request)
        return list(response.models)

    async def list_workers(self) -> list[scheduler_pb2.WorkerInfo]:
        request = scheduler_pb2.ListWorkersRequest()
        response = await self._call(self._scheduler.ListWorkers, request)
        return list(response.workers)

    async def get_summary(self, run_id: str) -> summary_pb2.RunSummary:
        request = results_service_pb2.GetSummaryRequest(run_id=run_id)
        response = await self._call(self._results.GetSummary, request)
        return response.summary

    async def list_outcomes(
        self, request: results_service_pb2.ListOutcomesRequest
    ) -> tuple[list[outcome_pb2.RecordedOutcome], str]:
        """One page and the token of the next, empty on the last."""
        response = await self._call(self._results.ListOutcomes, request)
        return list(response.outcomes), response.next_page_token

    async def watch_run(self, run_id: str, reconnect: Reconnect | None = None) -> AsyncGenerator[run_pb2.Run]:
        """Every change of a run until it is final and closed; outlives restarts of the gateway."""
        policy = reconnect or Reconnect()
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        while True:
            run = run_pb2.Run()
            try:
                async for run in self._watch_once(run_id):
                    lost_at = None
                    yield run
                if run.state in FINAL_STATES:
                    return
            except client_errors.Unreachable as outage:
                if lost_at is not None and loop.time() - lost_at > policy.give_up_seconds:
                    raise
                log.info("watch lost the gateway: %s", outage)
            if lost_at is None:
                lost_at = loop.time()
                if policy.on_lost:
                    policy.on_lost()
            await asyncio.sleep(policy.pause_seconds)

    async def _watch_once(self, run_id: str) -> AsyncGenerator[run_pb2.Run]:
        call = self._scheduler.WatchRun(scheduler_pb2.WatchRunRequest(run_id=run_id))
        try:
            async for response in call:
                yield response.run
        except grpc.aio.AioRpcError as error:
            raise self._watch_failure(error) from error
        finally:
            call.cancel()

    def _watch_failure(self, error: grpc.aio.AioRpcError) -> client_errors.ClientError:
        """A stream that a stopping gateway cut is an outage as well."""
        failure = client_errors.client_error(error, self.address)
        if error.code() == grpc.StatusCode.CANCELLED:
            return client_errors.Unreachable(failure.message, failure.reason, failure.facts)
        return failure

    async def _call(self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q) -> A:
        """Tries again where nobody answered; where the gateway did, it has tried for us."""
        for pause_seconds in _RETRY_PAUSES_SECONDS:
            try:
                return await self._call_once(method, request)
            except client_errors.Unreachable as outage:
                if outage.reason:
                    raise
                log.info("call found no gateway: %s", outage)
            await asyncio.sleep(pause_seconds)
        return await self._call_once(method, request)

    async def _call_once(self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q) -> A:
        """For what would be refused the second time, where only the answer to the first was lost."""
        try:
            return await method(request, timeout=self._timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise client_errors.client_error(error, self.address) from error
