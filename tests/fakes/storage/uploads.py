"""Uploads over gRPC as a client sends them, also such as break off."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from proctor.client.calls import send_chunks
from proctor.v1 import dataset_service_pb2 as messages

if TYPE_CHECKING:
    from proctor.v1.dataset_service_pb2_grpc import DatasetServiceAsyncStub

PIECE_BYTES = 64 * 1024


def cut(content: bytes, piece_bytes: int = PIECE_BYTES) -> Iterable[bytes]:
    return (content[start : start + piece_bytes] for start in range(0, len(content), piece_bytes))


async def upload(
    stub: "DatasetServiceAsyncStub",
    pieces: Iterable[bytes],
    *,
    is_whole: bool = True,
    **header: object,
) -> messages.UploadDatasetResponse:
    """`header` has fields of the contract; the name is `rows.jsonl` where none is given."""
    reported = messages.DatasetHeader(**{"name": "rows.jsonl", "user": "ann", **header})  # type: ignore[arg-type]  # checked by protobuf

    async def requests() -> AsyncIterator[messages.UploadDatasetRequest]:
        yield messages.UploadDatasetRequest(header=reported)
        for piece in pieces:
            yield messages.UploadDatasetRequest(content=piece)
        if is_whole:
            yield messages.UploadDatasetRequest(end=messages.DatasetEnd())

    return await send_chunks(stub.UploadDataset(), requests())


class OpenUpload:
    """An upload that a test sends chunk by chunk."""

    def __init__(self, stub: "DatasetServiceAsyncStub", name: str = "rows.jsonl") -> None:
        self._pieces: asyncio.Queue[messages.UploadDatasetRequest | None] = asyncio.Queue()
        header = messages.DatasetHeader(name=name, user="ann")
        self._pieces.put_nowait(messages.UploadDatasetRequest(header=header))
        self.call = stub.UploadDataset(self._requests())

    async def _requests(self) -> AsyncIterator[messages.UploadDatasetRequest]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    def send(self, content: bytes) -> None:
        for piece in cut(content):
            self._pieces.put_nowait(messages.UploadDatasetRequest(content=piece))

    async def end(self) -> messages.UploadDatasetResponse:
        self._pieces.put_nowait(messages.UploadDatasetRequest(end=messages.DatasetEnd()))
        self._pieces.put_nowait(None)
        return await self.call
