"""DatasetService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from collections.abc import AsyncIterable
from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import dataset_service_pb2, dataset_service_pb2_grpc
from services.scheduler.errors import InvalidParameter
from services.scheduler.requests import checked_page_size
from services.scheduler.uploads.add_dataset import AddDataset
from services.scheduler.uploads.dataset import DatasetId
from services.scheduler.uploads.delete_uploads import DeleteDataset
from services.scheduler.uploads.proto import (
    added_to_proto,
    dataset_cursor_from_token,
    dataset_id_from_proto,
    dataset_page_token,
    dataset_to_proto,
    header_from_proto,
    open_upload,
    row_to_proto,
)
from services.scheduler.uploads.show_uploads import ShowDataset

SERVICE_NAME = dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"].full_name
DEFAULT_PAGE_SIZE = 100
DEFAULT_ROWS = 10
MAX_ROWS = 100

Context = grpc.aio.ServicerContext[object, object]
Chunks = AsyncIterable[dataset_service_pb2.UploadDatasetRequest]


@dataclass(frozen=True)
class DatasetUseCases:
    add: AddDataset
    show: ShowDataset
    delete: DeleteDataset


class GrpcDatasetApi(dataset_service_pb2_grpc.DatasetServiceServicer):
    """Data sets that users upload."""

    def __init__(self, use_cases: DatasetUseCases) -> None:
        self._use = use_cases

    def register(self, server: grpc.aio.Server) -> None:
        dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server(self, server)

    async def UploadDataset(
        self, request_iterator: Chunks, context: Context
    ) -> dataset_service_pb2.UploadDatasetResponse:
        first, contents = await open_upload(request_iterator)
        header = header_from_proto(first.header)
        dataset_id = DatasetId(f"ds_{uuid4().hex}")
        return added_to_proto(await self._use.add.add(dataset_id, header, contents))

    async def GetDataset(
        self, request: dataset_service_pb2.GetDatasetRequest, context: Context
    ) -> dataset_service_pb2.GetDatasetResponse:
        dataset = await self._use.show.get(dataset_id_from_proto(request.dataset_id))
        return dataset_service_pb2.GetDatasetResponse(dataset=dataset_to_proto(dataset))

    async def ListDatasets(
        self, request: dataset_service_pb2.ListDatasetsRequest, context: Context
    ) -> dataset_service_pb2.ListDatasetsResponse:
        size = checked_page_size(request.page_size, DEFAULT_PAGE_SIZE)
        page = await self._use.show.page(size, dataset_cursor_from_token(request.page_token))
        return dataset_service_pb2.ListDatasetsResponse(
            datasets=[dataset_to_proto(dataset) for dataset in page.datasets],
            next_page_token=dataset_page_token(page.next),
            total=page.total,
        )

    async def PreviewDataset(
        self, request: dataset_service_pb2.PreviewDatasetRequest, context: Context
    ) -> dataset_service_pb2.PreviewDatasetResponse:
        dataset_id = dataset_id_from_proto(request.dataset_id)
        if request.first_row < 0 or not 0 <= request.row_count <= MAX_ROWS:
            sentence = f"first_row must be at least 0, and row_count at least 1 and at most {MAX_ROWS}."
            raise InvalidParameter(field="row_count", sentence=sentence)
        rows = await self._use.show.rows(dataset_id, request.first_row, request.row_count or DEFAULT_ROWS)
        return dataset_service_pb2.PreviewDatasetResponse(rows=[row_to_proto(row) for row in rows])

    async def DeleteDataset(
        self, request: dataset_service_pb2.DeleteDatasetRequest, context: Context
    ) -> dataset_service_pb2.DeleteDatasetResponse:
        await self._use.delete.delete(dataset_id_from_proto(request.dataset_id))
        return dataset_service_pb2.DeleteDatasetResponse()
