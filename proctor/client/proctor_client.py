"""What is ordered of a model and a data set."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from proctor.client import errors as client_errors
from proctor.client.calls import GatewayCalls
from proctor.client.datasets import DatasetClient
from proctor.client.queue import QueueClient
from proctor.client.results import AnswerClient, ComparisonClient, StandingsClient
from proctor.client.suites import SuiteClient
from proctor.v1 import (
    outcome_pb2,
    results_service_pb2,
    results_service_pb2_grpc,
    run_pb2,
    sample_pb2,
    summary_pb2,
)
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc

if TYPE_CHECKING:
    from proctor.v1.results_service_pb2_grpc import ResultsServiceAsyncStub
    from proctor.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub


@dataclass(frozen=True, slots=True)
class DatasetRun:
    """One model over one data set. What its rows say of parameters wins over `params`.

    `metrics` hold answers against targets, by name or with options; none: answers are kept and not scored.
    `line_models` are names by which rows may call the model, beside its own. With `window_seconds` it fails
    when it has not ended so long after it was accepted.
    """

    dataset_id: str
    model: str
    metrics: Sequence[str | sample_pb2.MetricUse] = ()
    line_models: Sequence[str] = ()
    limit: int | None = None
    rollouts: int | None = None
    params: run_pb2.GenerationParams | None = None
    window_seconds: int | None = None
    project_id: int = 0

    def order(self) -> run_pb2.RunOrder:
        return run_pb2.RunOrder(
            project_id=self.project_id,
            dataset_id=self.dataset_id,
            model=self.model,
            metrics=[
                sample_pb2.MetricUse(name=metric) if isinstance(metric, str) else metric
                for metric in self.metrics
            ],
            line_models=self.line_models,
            limit=self.limit,
            rollouts=self.rollouts,
            params=self.params,
            completion_window_seconds=self.window_seconds,
        )


FINAL_STATES = frozenset(
    {run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED},
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
    dataset_id: str = ""
    kind: scheduler_pb2.RunKind.ValueType = scheduler_pb2.RUN_KIND_UNSPECIFIED


class ProctorClient:
    """Use as an async context manager; every method raises ClientError and its kinds only."""

    def __init__(self, address: str, *, user: str = "", timeout_seconds: float = 30.0) -> None:
        self.address = address
        self._user = user
        self._calls = GatewayCalls(address, timeout_seconds, user)
        channel = self._calls.channel
        self._scheduler: SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(channel)
        self._results: ResultsServiceAsyncStub = results_service_pb2_grpc.ResultsServiceStub(channel)
        self.suites = SuiteClient(self._calls, user)
        self.comparisons = ComparisonClient(self._calls)
        self.standings = StandingsClient(self._calls)
        self.answers = AnswerClient(self._calls)
        self.queue = QueueClient(self._calls)
        self.datasets = DatasetClient(self._calls, user)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._calls.close()

    async def submit_run(self, order: run_pb2.RunOrder) -> scheduler_pb2.SubmitRunResponse:
        # The id is made once, so that a call that is repeated over an outage finds the run of the first.
        request = scheduler_pb2.SubmitRunRequest(order=order, user=self._user, request_id=str(uuid.uuid4()))
        return await self._calls.call(self._scheduler.SubmitRun, request)

    async def run_dataset(self, wanted: DatasetRun) -> scheduler_pb2.SubmitRunResponse:
        return await self.submit_run(wanted.order())

    async def get_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=run_id)
        response = await self._calls.call(self._scheduler.GetRun, request)
        return response.run

    async def list_runs(
        self, chosen: RunFilter | None = None, *, page_size: int = 20, page_token: str = ""
    ) -> scheduler_pb2.ListRunsResponse:
        by = chosen or RunFilter()
        request = scheduler_pb2.ListRunsRequest(
            page_size=page_size,
            page_token=page_token,
            state=by.state,
            suite=by.suite,
            model=by.model,
            dataset_id=by.dataset_id,
            kind=by.kind,
        )
        if by.project_id is not None:
            request.project_id = by.project_id
        return await self._calls.call(self._scheduler.ListRuns, request)

    async def cancel_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.CancelRunRequest(run_id=run_id)
        response = await self._calls.call_once(self._scheduler.CancelRun, request)
        return response.run

    async def retry_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.RetryRunRequest(run_id=run_id)
        response = await self._calls.call_once(self._scheduler.RetryRun, request)
        return response.run

    async def pause_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.PauseRunRequest(run_id=run_id)
        response = await self._calls.call(self._scheduler.PauseRun, request)
        return response.run

    async def resume_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.ResumeRunRequest(run_id=run_id)
        response = await self._calls.call_once(self._scheduler.ResumeRun, request)
        return response.run

    async def delete_run(self, run_id: str) -> None:
        """One that is over, with its answers."""
        request = scheduler_pb2.DeleteRunRequest(run_id=run_id)
        await self._calls.call_once(self._scheduler.DeleteRun, request)

    async def list_suites(self) -> list[scheduler_pb2.SuiteInfo]:
        request = scheduler_pb2.ListSuitesRequest()
        response = await self._calls.call(self._scheduler.ListSuites, request)
        return list(response.suites)

    async def list_models(self, provider: str = "") -> scheduler_pb2.ListModelsResponse:
        """Models, and the sources that were asked for them: some may have told nothing."""
        request = scheduler_pb2.ListModelsRequest(provider=provider)
        return await self._calls.call(self._scheduler.ListModels, request)

    async def list_workers(self) -> list[scheduler_pb2.WorkerInfo]:
        request = scheduler_pb2.ListWorkersRequest()
        response = await self._calls.call(self._scheduler.ListWorkers, request)
        return list(response.workers)

    async def get_summary(self, run_id: str) -> summary_pb2.RunSummary:
        request = results_service_pb2.GetSummaryRequest(run_id=run_id)
        response = await self._calls.call(self._results.GetSummary, request)
        return response.summary

    async def list_outcomes(
        self, request: results_service_pb2.ListOutcomesRequest
    ) -> tuple[list[outcome_pb2.RecordedOutcome], str]:
        """One page and the token of the next, empty on the last."""
        response = await self._calls.call(self._results.ListOutcomes, request)
        return list(response.outcomes), response.next_page_token

    async def watch_run(self, run_id: str, reconnect: Reconnect | None = None) -> AsyncGenerator[run_pb2.Run]:
        """Every change of a run until it is final and closed; outlives restarts of the gateway."""
        policy = reconnect or Reconnect()
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        request = scheduler_pb2.WatchRunRequest(run_id=run_id)
        while True:
            run = run_pb2.Run()
            try:
                async for response in self._calls.stream(self._scheduler.WatchRun, request):
                    lost_at = None
                    run = response.run
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
