"""What the HTTP door asks of files."""

from collections.abc import AsyncGenerator, AsyncIterable
from typing import TYPE_CHECKING

import grpc

from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import file_service_pb2_grpc as file_grpc
from services.gateway.grpc_calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.file_service_pb2_grpc import FileServiceAsyncStub


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
