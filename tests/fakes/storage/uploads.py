"""Uploads over gRPC as a client sends them, also such as break off."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.wire.uploads import send_chunks

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
) -> dataset_pb2.UploadDatasetResponse:
    """`header` has fields of the contract; the name is `rows.jsonl` where none is given."""
    reported = dataset_pb2.DatasetHeader(**{"name": "rows.jsonl", "user": "ann", **header})  # type: ignore[arg-type]  # checked by protobuf

    async def requests() -> AsyncIterator[dataset_pb2.UploadDatasetRequest]:
        yield dataset_pb2.UploadDatasetRequest(header=reported)
        for piece in pieces:
            yield dataset_pb2.UploadDatasetRequest(content=piece)
        if is_whole:
            yield dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd())

    return await send_chunks(stub.UploadDataset(), requests())


class OpenUpload:
    """An upload that a test sends chunk by chunk."""

    def __init__(self, stub: "DatasetServiceAsyncStub", name: str = "rows.jsonl") -> None:
        self._pieces: asyncio.Queue[dataset_pb2.UploadDatasetRequest | None] = asyncio.Queue()
        header = dataset_pb2.DatasetHeader(name=name, user="ann")
        self._pieces.put_nowait(dataset_pb2.UploadDatasetRequest(header=header))
        self.call = stub.UploadDataset(self._requests())

    async def _requests(self) -> AsyncIterator[dataset_pb2.UploadDatasetRequest]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    def send(self, content: bytes) -> None:
        for piece in cut(content):
            self._pieces.put_nowait(dataset_pb2.UploadDatasetRequest(content=piece))

    async def end(self) -> dataset_pb2.UploadDatasetResponse:
        self._pieces.put_nowait(dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd()))
        self._pieces.put_nowait(None)
        return await self.call
