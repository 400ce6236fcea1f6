"""The typed client of a gateway: runs by its own methods, every other topic by an attribute."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from proctor.client.calls import GatewayCalls
from proctor.client.datasets import DatasetClient
from proctor.client.errors import Unreachable
from proctor.client.results import AnswerClient, ComparisonClient, LeaderboardClient
from proctor.client.rollouts import RolloutClient
from proctor.client.run_results import RunResults
from proctor.v1 import (
    change_service_pb2,
    outcome_pb2,
    run_pb2,
    summary_pb2,
)
from proctor.v1 import change_service_pb2_grpc as change_grpc
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1 import storage_service_pb2_grpc as storage_grpc
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.values.run import FINAL_NUMBERS

log = logging.getLogger(__name__)


class SuiteClient:
    """`client.suites`."""

    def __init__(self, calls: GatewayCalls, user: str) -> None:
        self._calls = calls
        self._user = user
        self._stub = suite_grpc.SuiteServiceStub(calls.channel)

    async def check(self, document: suite_pb2.SuiteDocument) -> suite_pb2.CheckSuiteResponse:
        return await self._calls.call(self._stub.CheckSuite, suite_pb2.CheckSuiteRequest(document=document))

    async def add(self, document: suite_pb2.SuiteDocument, project_id: int = 0) -> suite_pb2.AddSuiteResponse:
        """The same content added twice is one version."""
        request = suite_pb2.AddSuiteRequest(document=document, user=self._user, project_id=project_id)
        return await self._calls.call(self._stub.AddSuite, request)

    async def delete(self, suite: str, version: int) -> None:
        request = suite_pb2.DeleteSuiteRequest(suite=suite, version=version)
        await self._calls.call_once(self._stub.DeleteSuite, request)

    async def show_sample(self, request: suite_pb2.ShowSampleRequest) -> suite_pb2.ShowSampleResponse:
        return await self._calls.call(self._stub.ShowSample, request)


class QueueClient:
    """`client.queue`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub = queue_grpc.QueueServiceStub(calls.channel)

    async def show(self, size: int = 100) -> queue_pb2.GetQueueResponse:
        """`size` limits the pending runs, and the paused runs."""
        return await self._calls.call(self._stub.GetQueue, queue_pb2.GetQueueRequest(page_size=size))

    async def limits(self) -> queue_pb2.GetLimitsResponse:
        """The limits, and their latest change."""
        return await self._calls.call(self._stub.GetLimits, queue_pb2.GetLimitsRequest())

    async def change_limits(
        self, limits: queue_pb2.QueueLimits, reset: Sequence[str] = ()
    ) -> queue_pb2.QueueLimits:
        """Sets the given limits, reverts those named in `reset` to the settings, and returns all limits."""
        request = queue_pb2.SetLimitsRequest(limits=limits, reset=reset)
        return (await self._calls.call(self._stub.SetLimits, request)).limits


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How long a watch waits for a lost gateway. `on_lost` is called once per outage."""

    give_up_seconds: float = 60.0
    pause_seconds: float = 0.5
    on_lost: Callable[[], None] | None = None


class ProctorClient:
    """An async context manager. Every method raises only ClientError and its subclasses.

    `address` is `host:port`, or `https://host:port`: an API key is sent to another machine by TLS only.

    A gateway with API keys takes the user from `api_key`; `user` is the name for one without keys.
    """

    def __init__(
        self, address: str, *, user: str = "", api_key: str = "", timeout_seconds: float = 30.0
    ) -> None:
        self.address = address
        self._user = user
        self._calls = GatewayCalls(address, timeout_seconds, user=user, api_key=api_key)
        channel = self._calls.channel
        self._scheduler = scheduler_grpc.SchedulerServiceStub(channel)
        self._results = results_grpc.ResultsServiceStub(channel)
        self._changes = change_grpc.ChangeServiceStub(channel)
        self._storage = storage_grpc.StorageServiceStub(channel)
        self.suites = SuiteClient(self._calls, user)
        self.rollouts = RolloutClient(self._calls, user)
        self.comparisons = ComparisonClient(self._calls)
        self.leaderboard = LeaderboardClient(self._calls)
        self.answers = AnswerClient(self._calls)
        self.queue = QueueClient(self._calls)
        self.datasets = DatasetClient(self._calls, user)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._calls.close()

    async def release(self) -> str:
        """The release of the gateway; empty for one that does not send it. The call is not retried."""
        limits = queue_grpc.QueueServiceStub(self._calls.channel).GetLimits
        return await self._calls.release(limits, queue_pb2.GetLimitsRequest())

    async def submit_run(self, order: run_pb2.RunOrder) -> scheduler_pb2.SubmitRunResponse:
        # One id for all retries, so that a call repeated after an outage returns the run of the first.
        request = scheduler_pb2.SubmitRunRequest(order=order, user=self._user, request_id=str(uuid.uuid4()))
        return await self._calls.call(self._scheduler.SubmitRun, request)

    async def estimate_run(self, order: run_pb2.RunOrder) -> scheduler_pb2.EstimateRunResponse:
        """Estimated seconds and cost of an order. Nothing is stored."""
        request = scheduler_pb2.EstimateRunRequest(order=order, user=self._user)
        return await self._calls.call(self._scheduler.EstimateRun, request)

    async def get_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=run_id)
        return (await self._calls.call(self._scheduler.GetRun, request)).run

    async def list_runs(
        self, request: scheduler_pb2.ListRunsRequest | None = None
    ) -> scheduler_pb2.ListRunsResponse:
        return await self._calls.call(self._scheduler.ListRuns, request or scheduler_pb2.ListRunsRequest())

    async def cancel_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.CancelRunRequest(run_id=run_id)
        return (await self._calls.call_once(self._scheduler.CancelRun, request)).run

    async def retry_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.RetryRunRequest(run_id=run_id)
        return (await self._calls.call_once(self._scheduler.RetryRun, request)).run

    async def pause_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.PauseRunRequest(run_id=run_id)
        return (await self._calls.call(self._scheduler.PauseRun, request)).run

    async def resume_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.ResumeRunRequest(run_id=run_id)
        return (await self._calls.call_once(self._scheduler.ResumeRun, request)).run

    async def delete_run(self, run_id: str) -> None:
        """Deletes a closed run with its answers."""
        request = scheduler_pb2.DeleteRunRequest(run_id=run_id)
        await self._calls.call_once(self._scheduler.DeleteRun, request)

    async def changes(
        self, request: change_service_pb2.ListChangesRequest
    ) -> change_service_pb2.ListChangesResponse:
        """Changes of users, latest first."""
        return await self._calls.call(self._changes.ListChanges, request)

    async def storage(self, user: str = "") -> storage_pb2.GetStorageResponse:
        """Storage and quotas of a user; without a name, of the caller."""
        request = storage_pb2.GetStorageRequest(user=user)
        return await self._calls.call(self._storage.GetStorage, request)

    async def list_suites(self) -> list[scheduler_pb2.SuiteInfo]:
        request = scheduler_pb2.ListSuitesRequest()
        return list((await self._calls.call(self._scheduler.ListSuites, request)).suites)

    async def list_models(self, provider: str = "") -> scheduler_pb2.ListModelsResponse:
        """Models, and the pools that were asked for them, some of which may not have answered."""
        request = scheduler_pb2.ListModelsRequest(provider=provider)
        return await self._calls.call(self._scheduler.ListModels, request)

    async def get_summary(self, run_id: str) -> summary_pb2.RunSummary:
        request = results_pb2.GetSummaryRequest(run_id=run_id)
        return (await self._calls.call(self._results.GetSummary, request)).summary

    async def results(self, run_id: str) -> RunResults:
        """The run with its figures, partial while it goes. A notebook shows them as a table."""
        run, summary = await asyncio.gather(self.get_run(run_id), self.get_summary(run_id))
        return RunResults(run, summary)

    async def list_outcomes(
        self, request: results_pb2.ListOutcomesRequest
    ) -> tuple[list[outcome_pb2.RecordedOutcome], str]:
        """One page and the token of the next one, empty on the last."""
        response = await self._calls.call(self._results.ListOutcomes, request)
        return list(response.outcomes), response.next_page_token

    async def watch_run(self, run_id: str, reconnect: Reconnect | None = None) -> AsyncGenerator[run_pb2.Run]:
        """Every change of a run until it is final and closed, across restarts of the gateway."""
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
                # A gateway that stops ends its streams too: then the watch goes on with another.
                if run.state in FINAL_NUMBERS:
                    return
            except Unreachable as outage:
                if lost_at is not None and loop.time() - lost_at > policy.give_up_seconds:
                    raise
                log.info("watch lost the gateway: %s", outage)
            # The outage counts from its first failure, however often the watch fails in it.
            if lost_at is None:
                lost_at = loop.time()
                if policy.on_lost:
                    policy.on_lost()
            await asyncio.sleep(policy.pause_seconds)
