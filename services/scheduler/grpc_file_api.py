"""FileService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import file_service_pb2 as messages
from proctor.v1 import file_service_pb2_grpc
from services.scheduler.datasets.dataset_errors import UploadCutOff
from services.scheduler.errors import InvalidParameter
from services.scheduler.files.add_file import AddFile
from services.scheduler.files.delete_file import DeleteFile
from services.scheduler.files.proto_files import (
    PURPOSES,
    file_header_from_proto,
    file_id_from_proto,
    file_to_proto,
)
from services.scheduler.files.show_file import ShowFile
from services.scheduler.files.stored_file import FileId, FileList
from services.scheduler.grpc_dataset_api import MAX_PIECE_BYTES
from services.scheduler.proto_words import word_of

SERVICE_NAME = messages.DESCRIPTOR.services_by_name["FileService"].full_name
DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 10_000

Context = grpc.aio.ServicerContext[object, object]
Pieces = AsyncIterable[messages.UploadFileRequest]


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

    async def UploadFile(self, request_iterator: Pieces, context: Context) -> messages.UploadFileResponse:
        pieces = aiter(request_iterator)
        first = await anext(pieces, messages.UploadFileRequest())
        if first.WhichOneof("piece") != "header":
            raise InvalidParameter(field="header", sentence="The first piece must be the header.")
        header = file_header_from_proto(first.header)
        file_id = FileId(f"file-{uuid4().hex}")
        file = await self._use.add.add(file_id, header, _contents(pieces))
        return messages.UploadFileResponse(file=file_to_proto(file))

    async def GetFile(self, request: messages.GetFileRequest, context: Context) -> messages.GetFileResponse:
        file = await self._use.show.get(file_id_from_proto(request.file_id))
        return messages.GetFileResponse(file=file_to_proto(file))

    async def ListFiles(
        self, request: messages.ListFilesRequest, context: Context
    ) -> messages.ListFilesResponse:
        if not 0 <= request.page_size <= MAX_PAGE_SIZE:
            sentence = (
                f"page_size is {request.page_size}, but must be at least 1 and at most {MAX_PAGE_SIZE}."
            )
            raise InvalidParameter(field="page_size", sentence=sentence)
        wanted = FileList(
            size=request.page_size or DEFAULT_PAGE_SIZE,
            after=file_id_from_proto(request.after_file_id) if request.after_file_id else None,
            purpose=word_of(PURPOSES, request.purpose),
            is_ascending=request.is_ascending,
        )
        page = await self._use.show.page(wanted)
        return messages.ListFilesResponse(
            files=[file_to_proto(file) for file in page.files], has_more=page.has_more
        )

    async def ReadFile(
        self, request: messages.ReadFileRequest, context: Context
    ) -> AsyncIterator[messages.ReadFileResponse]:
        file = await self._use.show.get(file_id_from_proto(request.file_id))
        pieces = self._use.show.pieces(file, request.first_byte)
        yield messages.ReadFileResponse(data=await anext(pieces, b""), file=file_to_proto(file))
        async for piece in pieces:
            yield messages.ReadFileResponse(data=piece)

    async def DeleteFile(
        self, request: messages.DeleteFileRequest, context: Context
    ) -> messages.DeleteFileResponse:
        await self._use.delete.delete(file_id_from_proto(request.file_id))
        return messages.DeleteFileResponse()


async def _contents(pieces: AsyncIterator[messages.UploadFileRequest]) -> AsyncIterator[bytes]:
    """A caller who dies looks like one who has sent everything, but he does not say so."""
    async for piece in pieces:
        match piece.WhichOneof("piece"):
            case "end":
                return
            case "content" if len(piece.content) <= MAX_PIECE_BYTES:
                yield piece.content
            case "content":
                sentence = f"A piece has {len(piece.content)} bytes, but must have at most {MAX_PIECE_BYTES}."
                raise InvalidParameter(field="content", sentence=sentence)
            case _:
                raise InvalidParameter(field="header", sentence="Only the first piece may be a header.")
    raise UploadCutOff
