"""Fake of the scheduler: files and batches. A line that begins with `broken` is a fault."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import file_service_pb2_grpc as file_grpc
from services.common.errors import ErrorKind, RemoteError
from tests.fakes.refusals import refused

BROKEN = b"broken"
STARTED = 1_700_000_000


@dataclass
class FakeFiles(file_grpc.FileServiceServicer):
    """Keeps files whole. `refusal` ends an upload once its header has come."""

    kept: dict[str, file_pb2.File] = field(default_factory=dict)
    content: dict[str, bytes] = field(default_factory=dict)
    headers: list[file_pb2.FileHeader] = field(default_factory=list)
    read_from: list[int] = field(default_factory=list)
    in_use: set[str] = field(default_factory=set)
    open_uploads: int = 0
    open_reads: int = 0
    sent_bytes: int = 0
    refusal: RemoteError | None = None
    piece_bytes: int = 1000
    # Reading breaks off before this byte of a file; -1 means never.
    breaks_at: int = -1

    def register(self, server: grpc.aio.Server) -> None:
        file_grpc.add_FileServiceServicer_to_server(self, server)

    def put(self, name: str, content: bytes, purpose: file_pb2.FilePurpose.ValueType) -> file_pb2.File:
        number = len(self.content)
        file = file_pb2.File(
            file_id=f"file-{number:032x}", name=name, purpose=purpose, size_bytes=len(content), user="ann"
        )
        file.created_at.FromSeconds(STARTED + number)
        self.kept[file.file_id] = file
        self.content[file.file_id] = content
        return file

    async def UploadFile(
        self, request_iterator: AsyncIterator[file_pb2.UploadFileRequest], context: Any
    ) -> file_pb2.UploadFileResponse:
        self.open_uploads += 1
        try:
            return file_pb2.UploadFileResponse(file=await self._read(request_iterator))
        finally:
            self.open_uploads -= 1

    async def _read(self, pieces: AsyncIterator[file_pb2.UploadFileRequest]) -> file_pb2.File:
        content, is_whole = bytearray(), False
        async for piece in pieces:
            if piece.HasField("header"):
                self.headers.append(piece.header)
            if self.refusal:
                raise self.refusal
            content += piece.content
            is_whole = piece.HasField("end")
        if not is_whole:
            raise refused(ErrorKind.INVALID, "INVALID_PARAMETER", "The upload was cut off.")
        return self._checked(self.headers[-1], bytes(content))

    def _checked(self, header: file_pb2.FileHeader, content: bytes) -> file_pb2.File:
        file = self.put(header.name, content, header.purpose)
        file.user = header.user
        if header.HasField("expires_after_seconds"):
            file.expires_at.FromSeconds(file.created_at.seconds + header.expires_after_seconds)
        for number, line in enumerate(content.splitlines(), 1):
            if line.startswith(BROKEN):
                file.faults.add(line=number, field="body", problem="It is not valid JSON.")
        file.fault_count = len(file.faults)
        return file

    async def GetFile(self, request: file_pb2.GetFileRequest, context: Any) -> file_pb2.GetFileResponse:
        return file_pb2.GetFileResponse(file=self.file(request.file_id))

    async def ListFiles(self, request: file_pb2.ListFilesRequest, context: Any) -> file_pb2.ListFilesResponse:
        files = [file for file in self.kept.values() if request.purpose in (0, file.purpose)]
        ordered = files if request.is_ascending else files[::-1]
        if request.after_file_id:
            self.file(request.after_file_id)
        page, has_more = _page(
            ordered, [file.file_id for file in ordered], request.after_file_id, request.page_size
        )
        return file_pb2.ListFilesResponse(files=page, has_more=has_more)

    async def ReadFile(
        self, request: file_pb2.ReadFileRequest, context: Any
    ) -> AsyncIterator[file_pb2.ReadFileResponse]:
        file = self.file(request.file_id)
        self.read_from.append(request.first_byte)
        content = self.content[file.file_id]
        self.open_reads += 1
        try:
            yield file_pb2.ReadFileResponse(file=file)
            for start in range(request.first_byte, len(content), self.piece_bytes):
                if 0 <= self.breaks_at <= start:
                    raise refused(ErrorKind.UNAVAILABLE, "OBJECT_STORE_UNAVAILABLE", "The store is away.")
                piece = content[start : start + self.piece_bytes]
                yield file_pb2.ReadFileResponse(content=piece)
                self.sent_bytes += len(piece)
        finally:
            self.open_reads -= 1

    async def DeleteFile(
        self, request: file_pb2.DeleteFileRequest, context: Any
    ) -> file_pb2.DeleteFileResponse:
        file_id = self.file(request.file_id).file_id
        if file_id in self.in_use:
            facts = {"file_id": file_id, "batch_id": "batch_1"}
            raise refused(ErrorKind.CONFLICT, "FILE_IN_USE", "Batch batch_1 uses this file.", **facts)
        del self.kept[file_id]
        return file_pb2.DeleteFileResponse()

    def file(self, file_id: str) -> file_pb2.File:
        if file_id not in self.kept:
            sentence = f"There is no file {file_id}."
            raise refused(ErrorKind.NOT_FOUND, "FILE_NOT_FOUND", sentence, file_id=file_id)
        return self.kept[file_id]


@dataclass
class FakeBatches(batch_grpc.BatchServiceServicer):
    """Batches over files; they stay as they are put."""

    files: FakeFiles = field(init=False)
    kept: dict[str, batch_pb2.Batch] = field(default_factory=dict)
    created: list[batch_pb2.CreateBatchRequest] = field(default_factory=list)
    refusal: RemoteError | None = None

    def register(self, server: grpc.aio.Server, files: FakeFiles) -> None:
        self.files = files
        batch_grpc.add_BatchServiceServicer_to_server(self, server)

    async def CreateBatch(
        self, request: batch_pb2.CreateBatchRequest, context: Any
    ) -> batch_pb2.CreateBatchResponse:
        self.created.append(request)
        if self.refusal:
            raise self.refusal
        file = self.files.file(request.input_file_id)
        number = len(self.kept)
        batch = batch_pb2.Batch(
            batch_id=f"batch_{number:032x}",
            user=request.user,
            input_file_id=request.input_file_id,
            endpoint=request.endpoint,
            completion_window=request.completion_window,
            metadata=request.metadata,
            state=batch_pb2.BATCH_STATE_FAILED if file.fault_count else batch_pb2.BATCH_STATE_VALIDATING,
        )
        batch.created_at.FromSeconds(STARTED + number)
        batch.expires_at.FromSeconds(STARTED + number + 24 * 3600)
        for fault in file.faults:
            batch.errors.add(
                code="invalid_json_line", message=fault.problem, param=fault.field, line=fault.line
            )
        self.kept[batch.batch_id] = batch
        return batch_pb2.CreateBatchResponse(batch=batch)

    async def GetBatch(self, request: batch_pb2.GetBatchRequest, context: Any) -> batch_pb2.GetBatchResponse:
        return batch_pb2.GetBatchResponse(batch=self._batch(request.batch_id))

    async def ListBatches(
        self, request: batch_pb2.ListBatchesRequest, context: Any
    ) -> batch_pb2.ListBatchesResponse:
        newest = list(self.kept.values())[::-1]
        if request.after_batch_id:
            self._batch(request.after_batch_id)
        ids = [batch.batch_id for batch in newest]
        page, has_more = _page(newest, ids, request.after_batch_id, request.page_size)
        return batch_pb2.ListBatchesResponse(batches=page, has_more=has_more)

    async def CancelBatch(
        self, request: batch_pb2.CancelBatchRequest, context: Any
    ) -> batch_pb2.CancelBatchResponse:
        batch = self._batch(request.batch_id)
        if batch.state == batch_pb2.BATCH_STATE_COMPLETED:
            sentence = f"Batch {batch.batch_id} is completed and cannot be cancelled."
            raise refused(ErrorKind.CONFLICT, "BATCH_ALREADY_FINISHED", sentence, state="completed")
        batch.state = batch_pb2.BATCH_STATE_CANCELLING
        batch.cancelling_at.FromSeconds(STARTED + 60)
        return batch_pb2.CancelBatchResponse(batch=batch)

    def _batch(self, batch_id: str) -> batch_pb2.Batch:
        if batch_id not in self.kept:
            sentence = f"There is no batch {batch_id}."
            raise refused(ErrorKind.NOT_FOUND, "BATCH_NOT_FOUND", sentence, batch_id=batch_id)
        return self.kept[batch_id]


def _page(things: list[Any], ids: list[str], after: str, size: int) -> tuple[list[Any], bool]:
    first = ids.index(after) + 1 if after else 0
    return things[first : first + size], len(things) > first + size
