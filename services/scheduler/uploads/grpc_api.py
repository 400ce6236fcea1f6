"""DatasetService and FileService: convert, call a use case or a store, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated services

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.wire.enums import member_of
from services.common.checked_fields import checked_text
from services.common.errors import InvalidParameter
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import check_stores, checked_page_size
from services.scheduler.uploads.add_dataset import AddDataset
from services.scheduler.uploads.add_file import AddFile
from services.scheduler.uploads.dataset import DatasetId
from services.scheduler.uploads.delete_uploads import DeleteDataset, DeleteFile
from services.scheduler.uploads.mappings.change_mapping import DeleteMapping, SaveMapping
from services.scheduler.uploads.mappings.postgres import PostgresMappings
from services.scheduler.uploads.proto import (
    MAPPING,
    SAVED_MAPPING,
    added_to_proto,
    dataset_cursor_from_token,
    dataset_id_from_proto,
    dataset_page_token,
    dataset_to_proto,
    file_header_from_proto,
    file_id_from_proto,
    file_to_proto,
    header_from_proto,
    open_upload,
    preview_from_proto,
    previewed_to_proto,
    row_to_proto,
)
from services.scheduler.uploads.show_beginning import ShowBeginning
from services.scheduler.uploads.show_uploads import ShowDataset, ShowFile
from services.scheduler.uploads.stored_file import FileId, FileList, FilePurpose

DATASET_SERVICE = dataset_pb2.DESCRIPTOR.services_by_name["DatasetService"].full_name
FILE_SERVICE = file_pb2.DESCRIPTOR.services_by_name["FileService"].full_name
DEFAULT_PAGE_SIZE = 100
DEFAULT_ROWS = 10
MAX_ROWS = 100
DatasetChunks = AsyncIterable[dataset_pb2.UploadDatasetRequest]
MAX_PAGE_SIZE = 10_000
FileChunks = AsyncIterable[file_pb2.UploadFileRequest]


@dataclass(frozen=True, kw_only=True)
class GrpcDatasetApi(dataset_grpc.DatasetServiceServicer):
    """Data sets that users upload."""

    add: AddDataset
    show_dataset: ShowDataset
    show_beginning: ShowBeginning
    delete: DeleteDataset
    mappings: PostgresMappings
    save_mapping: SaveMapping
    delete_mapping: DeleteMapping

    def register(self, server: grpc.aio.Server) -> None:
        dataset_grpc.add_DatasetServiceServicer_to_server(self, server)

    async def UploadDataset(
        self, request_iterator: DatasetChunks, context: RpcContext
    ) -> dataset_pb2.UploadDatasetResponse:
        first, contents = await open_upload(request_iterator)
        header = header_from_proto(first.header)
        check_stores(caller_of(context.invocation_metadata()), header.project_id)
        dataset_id = DatasetId(f"ds_{uuid4().hex}")
        return added_to_proto(await self.add.add(dataset_id, header, contents))

    async def GetDataset(
        self, request: dataset_pb2.GetDatasetRequest, context: RpcContext
    ) -> dataset_pb2.GetDatasetResponse:
        dataset = await self.show_dataset.datasets.get(dataset_id_from_proto(request.dataset_id))
        return dataset_pb2.GetDatasetResponse(dataset=dataset_to_proto(dataset))

    async def ListDatasets(
        self, request: dataset_pb2.ListDatasetsRequest, context: RpcContext
    ) -> dataset_pb2.ListDatasetsResponse:
        size = checked_page_size(request.page_size, DEFAULT_PAGE_SIZE)
        page = await self.show_dataset.datasets.page(size, dataset_cursor_from_token(request.page_token))
        return dataset_pb2.ListDatasetsResponse(
            datasets=[dataset_to_proto(dataset) for dataset in page.datasets],
            next_page_token=dataset_page_token(page.next),
            total=page.total,
        )

    async def PreviewDataset(
        self, request: dataset_pb2.PreviewDatasetRequest, context: RpcContext
    ) -> dataset_pb2.PreviewDatasetResponse:
        dataset_id = dataset_id_from_proto(request.dataset_id)
        if request.first_doc_id < 0 or not 0 <= request.row_count <= MAX_ROWS:
            sentence = f"first_doc_id must be at least 0, and row_count at least 1 and at most {MAX_ROWS}."
            raise InvalidParameter(field="row_count", sentence=sentence)
        rows = await self.show_dataset.list_rows(
            dataset_id, request.first_doc_id, request.row_count or DEFAULT_ROWS
        )
        return dataset_pb2.PreviewDatasetResponse(rows=[row_to_proto(row) for row in rows])

    async def PreviewUpload(
        self, request: dataset_pb2.PreviewUploadRequest, context: RpcContext
    ) -> dataset_pb2.PreviewUploadResponse:
        user = caller_of(context.invocation_metadata()).name
        shown = await self.show_beginning.show(user, preview_from_proto(request), request.beginning)
        return previewed_to_proto(shown)

    async def DeleteDataset(
        self, request: dataset_pb2.DeleteDatasetRequest, context: RpcContext
    ) -> dataset_pb2.DeleteDatasetResponse:
        caller = caller_of(context.invocation_metadata())
        await self.delete.delete(dataset_id_from_proto(request.dataset_id), caller)
        return dataset_pb2.DeleteDatasetResponse()

    async def SaveMapping(
        self, request: dataset_pb2.SaveMappingRequest, context: RpcContext
    ) -> dataset_pb2.SaveMappingResponse:
        caller = caller_of(context.invocation_metadata())
        mapping = MAPPING.from_proto(request.mapping)
        saved = await self.save_mapping.save(request.name, mapping, caller, request.project_id)
        return dataset_pb2.SaveMappingResponse(saved=SAVED_MAPPING.to_proto(saved))

    async def GetMapping(
        self, request: dataset_pb2.GetMappingRequest, context: RpcContext
    ) -> dataset_pb2.GetMappingResponse:
        saved = await self.mappings.get(checked_text("name", request.name), request.project_id)
        return dataset_pb2.GetMappingResponse(saved=SAVED_MAPPING.to_proto(saved))

    async def ListMappings(
        self, request: dataset_pb2.ListMappingsRequest, context: RpcContext
    ) -> dataset_pb2.ListMappingsResponse:
        project_id = request.project_id if request.HasField("project_id") else None
        found = await self.mappings.list(checked_text("user", request.user), project_id)
        return dataset_pb2.ListMappingsResponse(mappings=[SAVED_MAPPING.to_proto(each) for each in found])

    async def DeleteMapping(
        self, request: dataset_pb2.DeleteMappingRequest, context: RpcContext
    ) -> dataset_pb2.DeleteMappingResponse:
        caller = caller_of(context.invocation_metadata())
        await self.delete_mapping.delete(checked_text("name", request.name), caller, request.project_id)
        return dataset_pb2.DeleteMappingResponse()


@dataclass(frozen=True, kw_only=True)
class GrpcFileApi(file_grpc.FileServiceServicer):
    """Files that batches read and write."""

    add: AddFile
    show_file: ShowFile
    delete: DeleteFile

    def register(self, server: grpc.aio.Server) -> None:
        file_grpc.add_FileServiceServicer_to_server(self, server)

    async def UploadFile(
        self, request_iterator: FileChunks, context: RpcContext
    ) -> file_pb2.UploadFileResponse:
        first, contents = await open_upload(request_iterator)
        header = file_header_from_proto(first.header)
        check_stores(caller_of(context.invocation_metadata()), header.project_id)
        file_id = FileId(f"file-{uuid4().hex}")
        file = await self.add.add(file_id, header, contents)
        return file_pb2.UploadFileResponse(file=file_to_proto(file))

    async def GetFile(
        self, request: file_pb2.GetFileRequest, context: RpcContext
    ) -> file_pb2.GetFileResponse:
        file = await self.show_file.show(file_id_from_proto(request.file_id))
        return file_pb2.GetFileResponse(file=file_to_proto(file))

    async def ListFiles(
        self, request: file_pb2.ListFilesRequest, context: RpcContext
    ) -> file_pb2.ListFilesResponse:
        wanted = FileList(
            size=checked_page_size(request.page_size, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE),
            after=file_id_from_proto(request.after_file_id) if request.after_file_id else None,
            purpose=member_of(FilePurpose, request.purpose),
            is_ascending=request.is_ascending,
        )
        page = await self.show_file.files.page(wanted)
        return file_pb2.ListFilesResponse(
            files=[file_to_proto(file) for file in page.files], has_more=page.has_more
        )

    async def ReadFile(
        self, request: file_pb2.ReadFileRequest, context: RpcContext
    ) -> AsyncIterator[file_pb2.ReadFileResponse]:
        file = await self.show_file.show(file_id_from_proto(request.file_id))
        pieces = self.show_file.read_chunks(file, request.first_byte)
        yield file_pb2.ReadFileResponse(content=await anext(pieces, b""), file=file_to_proto(file))
        async for piece in pieces:
            yield file_pb2.ReadFileResponse(content=piece)

    async def DeleteFile(
        self, request: file_pb2.DeleteFileRequest, context: RpcContext
    ) -> file_pb2.DeleteFileResponse:
        caller = caller_of(context.invocation_metadata())
        await self.delete.delete(file_id_from_proto(request.file_id), caller)
        return file_pb2.DeleteFileResponse()
