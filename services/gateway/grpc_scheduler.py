"""What the HTTP door asks of the scheduler: runs, what they are over, and models, one method per call."""

from typing import TYPE_CHECKING

import grpc

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from services.gateway.grpc_calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.dataset_service_pb2_grpc import DatasetServiceAsyncStub
    from proctor.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub
    from proctor.v1.suite_service_pb2_grpc import SuiteServiceAsyncStub


class SchedulerBackend:
    """The scheduler behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._runs: SchedulerServiceAsyncStub = scheduler_grpc.SchedulerServiceStub(channel)
        self._datasets: DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(channel)
        self._suites: SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def submit_run(self, request: scheduler_pb2.SubmitRunRequest) -> scheduler_pb2.SubmitRunResponse:
        return await self._calls.ask(self._runs.SubmitRun, request)

    async def get_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=run_id)
        return (await self._calls.ask(self._runs.GetRun, request)).run

    async def list_runs(self, request: scheduler_pb2.ListRunsRequest) -> scheduler_pb2.ListRunsResponse:
        return await self._calls.ask(self._runs.ListRuns, request)

    async def cancel_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.CancelRunRequest(run_id=run_id)
        return (await self._calls.ask(self._runs.CancelRun, request)).run

    async def retry_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.RetryRunRequest(run_id=run_id)
        return (await self._calls.ask(self._runs.RetryRun, request)).run

    async def pause_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.PauseRunRequest(run_id=run_id)
        return (await self._calls.ask(self._runs.PauseRun, request)).run

    async def resume_run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.ResumeRunRequest(run_id=run_id)
        return (await self._calls.ask(self._runs.ResumeRun, request)).run

    async def delete_run(self, run_id: str) -> None:
        await self._calls.ask(self._runs.DeleteRun, scheduler_pb2.DeleteRunRequest(run_id=run_id))

    async def list_suites(self) -> list[scheduler_pb2.SuiteInfo]:
        response = await self._calls.ask(self._runs.ListSuites, scheduler_pb2.ListSuitesRequest())
        return list(response.suites)

    async def get_dataset(self, dataset_id: str) -> dataset_pb2.Dataset:
        request = dataset_pb2.GetDatasetRequest(dataset_id=dataset_id)
        return (await self._calls.ask(self._datasets.GetDataset, request)).dataset

    async def list_models(self, provider: str = "") -> scheduler_pb2.ListModelsResponse:
        request = scheduler_pb2.ListModelsRequest(provider=provider)
        return await self._calls.ask(self._runs.ListModels, request)

    async def check_suite(self, document: suite_pb2.SuiteDocument) -> suite_pb2.CheckSuiteResponse:
        return await self._calls.ask(self._suites.CheckSuite, suite_pb2.CheckSuiteRequest(document=document))

    async def add_suite(self, request: suite_pb2.AddSuiteRequest) -> suite_pb2.AddSuiteResponse:
        return await self._calls.ask(self._suites.AddSuite, request)

    async def delete_suite(self, suite: str, version: int) -> None:
        request = suite_pb2.DeleteSuiteRequest(suite=suite, version=version)
        await self._calls.ask(self._suites.DeleteSuite, request)

    async def show_sample(self, request: suite_pb2.ShowSampleRequest) -> suite_pb2.ShowSampleResponse:
        return await self._calls.ask(self._suites.ShowSample, request)
