"""What the HTTP door asks of the scheduler: runs, what they are over, and models, one method per call.
What the HTTP door asks of the queue.
What the HTTP door asks of data sets.
What the HTTP door asks of files.
What the HTTP door asks of batches.
"""

from collections.abc import AsyncGenerator, AsyncIterable
from typing import TYPE_CHECKING

import grpc

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from services.gateway.backends.calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.batch_service_pb2_grpc import BatchServiceAsyncStub
    from proctor.v1.dataset_service_pb2_grpc import DatasetServiceAsyncStub
    from proctor.v1.file_service_pb2_grpc import FileServiceAsyncStub
    from proctor.v1.queue_service_pb2_grpc import QueueServiceAsyncStub
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


class QueueBackend:
    """The queue behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._stub: QueueServiceAsyncStub = queue_grpc.QueueServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def get_queue(self, size: int) -> queue_pb2.GetQueueResponse:
        return await self._calls.ask(self._stub.GetQueue, queue_pb2.GetQueueRequest(page_size=size))

    async def get_limits(self) -> queue_pb2.QueueLimits:
        return (await self._calls.ask(self._stub.GetLimits, queue_pb2.GetLimitsRequest())).limits

    async def set_limits(self, request: queue_pb2.SetLimitsRequest) -> queue_pb2.QueueLimits:
        return (await self._calls.ask(self._stub.SetLimits, request)).limits


class DatasetBackend:
    """Data sets behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._stub: DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def upload(
        self, pieces: AsyncIterable[dataset_pb2.UploadDatasetRequest]
    ) -> dataset_pb2.UploadDatasetResponse:
        return await self._calls.give(self._stub.UploadDataset, pieces)

    async def get(self, dataset_id: str) -> dataset_pb2.Dataset:
        request = dataset_pb2.GetDatasetRequest(dataset_id=dataset_id)
        return (await self._calls.ask(self._stub.GetDataset, request)).dataset

    async def list_page(self, size: int, token: str) -> dataset_pb2.ListDatasetsResponse:
        request = dataset_pb2.ListDatasetsRequest(page_size=size, page_token=token)
        return await self._calls.ask(self._stub.ListDatasets, request)

    async def preview(self, request: dataset_pb2.PreviewDatasetRequest) -> list[dataset_pb2.DatasetRow]:
        return list((await self._calls.ask(self._stub.PreviewDataset, request)).rows)

    async def delete(self, dataset_id: str) -> None:
        request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
        await self._calls.ask(self._stub.DeleteDataset, request)


class FileBackend:
    """Files behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._stub: FileServiceAsyncStub = file_grpc.FileServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def upload(self, pieces: AsyncIterable[file_pb2.UploadFileRequest]) -> file_pb2.File:
        return (await self._calls.give(self._stub.UploadFile, pieces)).file

    async def get(self, file_id: str) -> file_pb2.File:
        return (await self._calls.ask(self._stub.GetFile, file_pb2.GetFileRequest(file_id=file_id))).file

    async def list_page(self, request: file_pb2.ListFilesRequest) -> file_pb2.ListFilesResponse:
        return await self._calls.ask(self._stub.ListFiles, request)

    def read(self, file_id: str, first_byte: int) -> AsyncGenerator[file_pb2.ReadFileResponse]:
        request = file_pb2.ReadFileRequest(file_id=file_id, first_byte=first_byte)
        return self._calls.pieces(self._stub.ReadFile, request)

    async def delete(self, file_id: str) -> None:
        await self._calls.ask(self._stub.DeleteFile, file_pb2.DeleteFileRequest(file_id=file_id))


class BatchBackend:
    """Batches behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._stub: BatchServiceAsyncStub = batch_grpc.BatchServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def create(self, request: batch_pb2.CreateBatchRequest) -> batch_pb2.Batch:
        return (await self._calls.ask(self._stub.CreateBatch, request)).batch

    async def get(self, batch_id: str) -> batch_pb2.Batch:
        request = batch_pb2.GetBatchRequest(batch_id=batch_id)
        return (await self._calls.ask(self._stub.GetBatch, request)).batch

    async def list_page(self, size: int, after: str) -> batch_pb2.ListBatchesResponse:
        request = batch_pb2.ListBatchesRequest(page_size=size, after_batch_id=after)
        return await self._calls.ask(self._stub.ListBatches, request)

    async def cancel(self, batch_id: str) -> batch_pb2.Batch:
        request = batch_pb2.CancelBatchRequest(batch_id=batch_id)
        return (await self._calls.ask(self._stub.CancelBatch, request)).batch
