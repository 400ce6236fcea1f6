"""Uploads of data sets."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import asdict, dataclass, replace
from typing import BinaryIO

from proctor.client.errors import Refused
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.values.uploads.column_mapping import ColumnMapping
from proctor.wire.uploads import upload_messages

# Half of what one message of an upload may hold.
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
    mapping: ColumnMapping | None = None

    def messages(self) -> AsyncGenerator[dataset_pb2.UploadDatasetRequest]:
        return upload_messages(dataset_pb2.UploadDatasetRequest, self._parts())

    async def _parts(self) -> AsyncGenerator[dataset_pb2.DatasetHeader | bytes]:
        yield dataset_pb2.DatasetHeader(
            name=self.name,
            format=self.format,
            request_id=self.request_id or str(uuid.uuid4()),
            digest=self.digest,
            project_id=self.project_id,
            mapping=dataset_pb2.ColumnMapping(**asdict(self.mapping)) if self.mapping else None,
        )
        sent = 0
        while content := await asyncio.to_thread(_read, self):
            yield content
            sent += len(content)
            self.on_sent(sent)


async def upload_once(
    datasets: "dataset_grpc.DatasetServiceAsyncStub", upload: Upload
) -> dataset_pb2.UploadDatasetResponse:
    """Uploads, but the same content under the same name and user is not sent again.

    Reads the content twice, so it must be a file, not a pipe.
    """
    digest = await asyncio.to_thread(_digest, upload)
    request_id = str(uuid.uuid5(_CONTENT_NAMESPACE, f"{digest} {upload.format} {upload.name}"))
    known = replace(upload, request_id=request_id, digest=digest)
    try:
        uploaded = await datasets.UploadDataset(known.messages())
        if not uploaded.HasField("dataset") or uploaded.dataset.digest == digest:
            return uploaded
    except Refused as refused:
        if refused.reason != "REQUEST_ID_TAKEN":
            raise
    # The file changed while it was read, in this upload or in the first one.
    await asyncio.to_thread(upload.content.seek, 0)
    return await datasets.UploadDataset(upload.messages())


def _digest(upload: Upload) -> str:
    """SHA-256 of the mapping and the content, which is rewound afterwards."""
    digest, read = hashlib.sha256(upload.mapping.line() if upload.mapping else b""), 0
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
