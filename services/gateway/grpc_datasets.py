"""What the HTTP door asks of data sets."""

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING

import grpc

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from services.gateway.grpc_calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.dataset_service_pb2_grpc import DatasetServiceAsyncStub


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
