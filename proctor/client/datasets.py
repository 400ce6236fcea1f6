"""Data sets: upload, list, preview, delete."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import BinaryIO

from proctor.client.calls import GatewayCalls
from proctor.client.errors import Refused
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc

# Half of what one message of an upload may hold (`MAX_CHUNK_BYTES`).
_CHUNK_BYTES = 512 * 1024
# Namespace of the request ids that are derived from the content of a file.
_CONTENT_NAMESPACE = uuid.UUID("21c458b7-8c4e-406e-b6ba-52ee3300f041")


def _ignore(_: int) -> None:
    """The default of the progress callbacks."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to upload. The same `request_id` returns the first data set, with `digest` without sending it.

    `on_sent` receives the bytes sent so far; `on_read` those read for the digest before.
    """

    content: BinaryIO
    name: str
    format: dataset_pb2.DatasetFormat.ValueType = dataset_pb2.DATASET_FORMAT_UNSPECIFIED
    on_sent: Callable[[int], None] = _ignore
    on_read: Callable[[int], None] = _ignore
    request_id: str = ""
    digest: str = ""
    project_id: int = 0


class DatasetClient:
    """`client.datasets`."""

    def __init__(self, calls: GatewayCalls, user: str) -> None:
        self._calls = calls
        self._user = user
        self._stub = dataset_grpc.DatasetServiceStub(calls.channel)

    async def upload(self, upload: Upload) -> dataset_pb2.UploadDatasetResponse:
        """The data set, or the faults of the file, of which nothing is stored then."""
        return await self._calls.upload(self._stub.UploadDataset, self._chunks(upload))

    async def upload_once(self, upload: Upload) -> dataset_pb2.UploadDatasetResponse:
        """Uploads like `upload`, but the same content under the same name and user is not sent again.

        Reads the content twice, so it must be a file, not a pipe.
        """
        digest = await asyncio.to_thread(_digest, upload)
        request_id = str(uuid.uuid5(_CONTENT_NAMESPACE, f"{digest} {upload.format} {upload.name}"))
        try:
            uploaded = await self.upload(replace(upload, request_id=request_id, digest=digest))
            if not uploaded.HasField("dataset") or uploaded.dataset.digest == digest:
                return uploaded
        except Refused as refused:
            if refused.reason != "REQUEST_ID_TAKEN":
                raise
        # The file changed while it was read, in this upload or in the first one.
        await asyncio.to_thread(upload.content.seek, 0)
        return await self.upload(upload)

    async def get(self, dataset_id: str) -> dataset_pb2.Dataset:
        request = dataset_pb2.GetDatasetRequest(dataset_id=dataset_id)
        return (await self._calls.call(self._stub.GetDataset, request)).dataset

    async def list_page(self, size: int = 100, token: str = "") -> dataset_pb2.ListDatasetsResponse:
        request = dataset_pb2.ListDatasetsRequest(page_size=size, page_token=token)
        return await self._calls.call(self._stub.ListDatasets, request)

    async def preview(
        self, dataset_id: str, first_doc_id: int = 0, row_count: int = 10
    ) -> list[dataset_pb2.DatasetRow]:
        request = dataset_pb2.PreviewDatasetRequest(
            dataset_id=dataset_id, first_doc_id=first_doc_id, row_count=row_count
        )
        return list((await self._calls.call(self._stub.PreviewDataset, request)).rows)

    async def delete(self, dataset_id: str) -> None:
        request = dataset_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
        await self._calls.call_once(self._stub.DeleteDataset, request)

    async def _chunks(self, upload: Upload) -> AsyncIterator[dataset_pb2.UploadDatasetRequest]:
        header = dataset_pb2.DatasetHeader(
            name=upload.name,
            user=self._user,
            format=upload.format,
            request_id=upload.request_id or str(uuid.uuid4()),
            digest=upload.digest,
            project_id=upload.project_id,
        )
        yield dataset_pb2.UploadDatasetRequest(header=header)
        sent = 0
        while content := await asyncio.to_thread(_read, upload):
            yield dataset_pb2.UploadDatasetRequest(content=content)
            sent += len(content)
            upload.on_sent(sent)
        yield dataset_pb2.UploadDatasetRequest(end=dataset_pb2.DatasetEnd())


def _digest(upload: Upload) -> str:
    """SHA-256 of the content, which is rewound afterwards."""
    digest, read = hashlib.sha256(), 0
    while content := _read(upload):
        digest.update(content)
        read += len(content)
        upload.on_read(read)
    upload.content.seek(0)
    return digest.hexdigest()


def _read(upload: Upload) -> bytes:
    try:
        return upload.content.read(_CHUNK_BYTES)
    except OSError as error:
        raise Refused(f"{upload.name} cannot be read: {error.strerror or error}.", "CANNOT_READ") from error
