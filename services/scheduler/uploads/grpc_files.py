"""FileService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import file_service_pb2, file_service_pb2_grpc
from proctor.wire.convert import member_of
from services.scheduler.requests import checked_page_size
from services.scheduler.uploads.add_file import AddFile
from services.scheduler.uploads.delete_uploads import DeleteFile
from services.scheduler.uploads.proto import (
    file_header_from_proto,
    file_id_from_proto,
    file_to_proto,
    open_upload,
)
from services.scheduler.uploads.show_uploads import ShowFile
from services.scheduler.uploads.stored_file import FileId, FileList, FilePurpose

SERVICE_NAME = file_service_pb2.DESCRIPTOR.services_by_name["FileService"].full_name
DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 10_000

Context = grpc.aio.ServicerContext[object, object]
Chunks = AsyncIterable[file_service_pb2.UploadFileRequest]


@dataclass(frozen=True)
class FileUseCases:
    add: AddFile
    show: ShowFile
    delete: DeleteFile


class GrpcFileApi(file_service_pb2_grpc.FileServiceServicer):
    """Files that batches read and write."""

    def __init__(self, use_cases: FileUseCases) -> None:
        self._use = use_cases

    def register(self, server: grpc.aio.Server) -> None:
        file_service_pb2_grpc.add_FileServiceServicer_to_server(self, server)

    async def UploadFile(
        self, request_iterator: Chunks, context: Context
    ) -> file_service_pb2.UploadFileResponse:
        first, contents = await open_upload(request_iterator)
        header = file_header_from_proto(first.header)
        file_id = FileId(f"file-{uuid4().hex}")
        file = await self._use.add.add(file_id, header, contents)
        return file_service_pb2.UploadFileResponse(file=file_to_proto(file))

    async def GetFile(
        self, request: file_service_pb2.GetFileRequest, context: Context
    ) -> file_service_pb2.GetFileResponse:
        file = await self._use.show.get(file_id_from_proto(request.file_id))
        return file_service_pb2.GetFileResponse(file=file_to_proto(file))

    async def ListFiles(
        self, request: file_service_pb2.ListFilesRequest, context: Context
    ) -> file_service_pb2.ListFilesResponse:
        wanted = FileList(
            size=checked_page_size(request.page_size, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE),
            after=file_id_from_proto(request.after_file_id) if request.after_file_id else None,
            purpose=member_of(FilePurpose, request.purpose),
            is_ascending=request.is_ascending,
        )
        page = await self._use.show.page(wanted)
        return file_service_pb2.ListFilesResponse(
            files=[file_to_proto(file) for file in page.files], has_more=page.has_more
        )

    async def ReadFile(
        self, request: file_service_pb2.ReadFileRequest, context: Context
    ) -> AsyncIterator[file_service_pb2.ReadFileResponse]:
        file = await self._use.show.get(file_id_from_proto(request.file_id))
        pieces = self._use.show.chunks(file, request.first_byte)
        yield file_service_pb2.ReadFileResponse(data=await anext(pieces, b""), file=file_to_proto(file))
        async for piece in pieces:
            yield file_service_pb2.ReadFileResponse(data=piece)

    async def DeleteFile(
        self, request: file_service_pb2.DeleteFileRequest, context: Context
    ) -> file_service_pb2.DeleteFileResponse:
        await self._use.delete.delete(file_id_from_proto(request.file_id))
        return file_service_pb2.DeleteFileResponse()
