"""Data sets: upload, list, look into, delete."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

from proctor.client.calls import GatewayCalls
from proctor.client.errors import Refused
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc

if TYPE_CHECKING:
    from proctor.v1.dataset_service_pb2_grpc import DatasetServiceAsyncStub

_PIECE_BYTES = 512 * 1024
# Of the request ids that stand for the content of a file.
_OF_CONTENT = uuid.UUID("21c458b7-8c4e-406e-b6ba-52ee3300f041")


def _tell_nobody(_: int) -> None:
    """Not everyone wants to know how much was sent."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to upload; a `request_id` again finds the first, before it is sent where its `digest` is said.

    `on_sent` is told the bytes sent so far, `on_read` those read before, where it is looked for first.
    """

    content: BinaryIO
    name: str
    format: dataset_pb2.DatasetFormat.ValueType = dataset_pb2.DATASET_FORMAT_UNSPECIFIED
    on_sent: Callable[[int], None] = _tell_nobody
    on_read: Callable[[int], None] = _tell_nobody
    request_id: str = ""
    digest: str = ""


class DatasetClient:
    """`client.datasets`."""

    def __init__(self, calls: GatewayCalls, user: str) -> None:
        self._calls = calls
        self._user = user
        self._stub: DatasetServiceAsyncStub = dataset_grpc.DatasetServiceStub(calls.channel)

    async def upload(self, upload: Upload) -> dataset_pb2.UploadDatasetResponse:
        """The data set, or what is wrong with the file, of which nothing is kept then."""
        return await self._calls.give(self._stub.UploadDataset, self._pieces(upload))

    async def upload_once(self, upload: Upload) -> dataset_pb2.UploadDatasetResponse:
        """As `upload`, but what this user has uploaded by this name is found again and not sent.

        The content is read twice: it has to be a file, not a pipe.
        """
        digest = await asyncio.to_thread(_digest, upload)
        stands_for = f"{digest} {upload.format} {upload.name}"
        request_id = str(uuid.uuid5(_OF_CONTENT, stands_for))
        try:
            uploaded = await self.upload(replace(upload, request_id=request_id, digest=digest))
            if not uploaded.HasField("dataset") or uploaded.dataset.digest == digest:
                return uploaded
        except Refused as refused:
            if refused.reason != "REQUEST_ID_TAKEN":
                raise
        # The file was changed while it was read, now or the first time.
        await asyncio.to_thread(upload.content.seek, 0)
        return await self.upload(upload)

    async def get(self, dataset_id: str) -> dataset_pb2.Dataset:
        request = dataset_pb2.GetDatasetRequest(dataset_id=dataset_id)
        return (await self._calls.call(self._stub.GetDataset, request)).dataset

    async def list_page(self, size: int = 100, token: str = "") -> dataset_pb2.ListDatasetsResponse:
        request = dataset_pb2.ListDatasetsRequest(page_size=size, page_token=token)
        return await self._calls.call(self._stub.ListDatasets, request)

    async def preview(
        self, dataset_id: str, first_row: int = 0, row_count: int = 10
    ) -> list[dataset_pb2.DatasetRow]:
        request = dataset_pb2.PreviewDatasetRequest(
            dataset_id=dataset_id, first_row=first_row, row_count=row_count
        )
        return list((await self._calls.call(self._stub.PreviewDataset, request)).rows)

    async def delete(self, dataset_id: str) -> None:
        request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
        await self._calls.call_once(self._stub.DeleteDataset, request)

    async def _pieces(self, upload: Upload) -> AsyncIterator[dataset_pb2.UploadDatasetRequest]:
        request_id = upload.request_id or str(uuid.uuid4())
        header = dataset_pb2.DatasetHeader(
            name=upload.name,
            user=self._user,
            format=upload.format,
            request_id=request_id,
            digest=upload.digest,
        )
        yield dataset_pb2.UploadDatasetRequest(header=header)
        sent = 0
        while content := await asyncio.to_thread(_read, upload):
            yield dataset_pb2.UploadDatasetRequest(content=content)
            sent += len(content)
            upload.on_sent(sent)
        yield dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd())


def _digest(upload: Upload) -> str:
    """Of the whole content, from which it is read again afterwards."""
    digest, read = hashlib.sha256(), 0
    while content := _read(upload):
        digest.update(content)
        read += len(content)
        upload.on_read(read)
    upload.content.seek(0)
    return digest.hexdigest()


def _read(upload: Upload) -> bytes:
    try:
        return upload.content.read(_PIECE_BYTES)
    except OSError as error:
        raise Refused(f"{upload.name} cannot be read: {error.strerror or error}.", "CANNOT_READ") from error
