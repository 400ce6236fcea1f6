"""Data sets, files, rows and faults as messages; page tokens; the stream of an upload."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import TypeVar

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import import_service_pb2 as import_pb2
from proctor.v1 import rollout_service_pb2
from proctor.values.names.user import LOCAL_USER
from proctor.values.uploads.column_mapping import ColumnMapping
from proctor.wire.convert import Codec
from proctor.wire.enums import member_of, number_of
from proctor.wire.uploads import MAX_CHUNK_BYTES
from services.common.errors import InvalidPageToken, InvalidParameter
from services.common.requests.page_tokens import list_token, read_list_token
from services.common.requests.request_fields import checked_request_id
from services.scheduler.uploads.add_dataset import AddedDataset
from services.scheduler.uploads.checking.preview_file import PreviewCheck, PreviewedFile
from services.scheduler.uploads.dataset import (
    Dataset,
    DatasetCursor,
    DatasetFormat,
    DatasetHeader,
    DatasetId,
    DatasetRow,
    is_dataset_id,
    row_from_line,
)
from services.scheduler.uploads.errors import DatasetNotFound, FileNotFound, UploadCutOff
from services.scheduler.uploads.faults import DatasetFault
from services.scheduler.uploads.mappings.saved_mapping import SavedMapping
from services.scheduler.uploads.stored_file import FileHeader, FileId, FilePurpose, StoredFile, is_file_id

FAULT = Codec(DatasetFault, dataset_pb2.DatasetFault, unpaired={"kind"})
# The name of the list in its page tokens.
_DATASETS = "datasets"

UploadMessage = TypeVar(
    "UploadMessage",
    dataset_pb2.UploadDatasetRequest,
    file_pb2.UploadFileRequest,
    rollout_service_pb2.UploadTasksRequest,
    import_pb2.ImportRunRequest,
)


MAPPING = Codec(ColumnMapping, dataset_pb2.ColumnMapping)
SAVED_MAPPING = Codec(SavedMapping, dataset_pb2.SavedMapping)


def mapping_from_proto(
    message: dataset_pb2.DatasetHeader | dataset_pb2.PreviewUploadRequest,
) -> ColumnMapping | None:
    return MAPPING.from_proto(message.mapping) if message.HasField("mapping") else None


def header_from_proto(message: dataset_pb2.DatasetHeader) -> DatasetHeader:
    return DatasetHeader(
        name=message.name,
        user=message.user or LOCAL_USER,
        format=member_of(DatasetFormat, message.format),
        request_id=checked_request_id(message.request_id),
        digest=message.digest,
        project_id=message.project_id,
        mapping=mapping_from_proto(message),
    )


def dataset_id_from_proto(text: str) -> DatasetId:
    """Ids of another form are reported as not found."""
    if not is_dataset_id(text):
        raise DatasetNotFound(dataset_id=text)
    return DatasetId(text)


def added_to_proto(added: AddedDataset) -> dataset_pb2.UploadDatasetResponse:
    if added.dataset is not None:
        return dataset_pb2.UploadDatasetResponse(dataset=dataset_to_proto(added.dataset))
    return dataset_pb2.UploadDatasetResponse(
        faults=[FAULT.to_proto(fault) for fault in added.faults], fault_count=added.fault_count
    )


def preview_from_proto(message: dataset_pb2.PreviewUploadRequest) -> PreviewCheck:
    return PreviewCheck(
        name=message.name,
        format=member_of(DatasetFormat, message.format),
        mapping=mapping_from_proto(message),
        is_whole=message.is_whole,
    )


def previewed_to_proto(shown: PreviewedFile) -> dataset_pb2.PreviewUploadResponse:
    return dataset_pb2.PreviewUploadResponse(
        format=number_of(shown.format),
        columns=shown.columns,
        mapping=MAPPING.to_proto(shown.mapping) if shown.mapping else None,
        is_proposed=shown.is_proposed,
        rows=[row_to_proto(row_from_line(number, line)) for number, line in enumerate(shown.rows)],
        faults=[FAULT.to_proto(fault) for fault in shown.faults],
    )


def dataset_to_proto(dataset: Dataset) -> dataset_pb2.Dataset:
    content, facts = dataset.content, dataset.content.facts
    message = dataset_pb2.Dataset(
        dataset_id=dataset.dataset_id,
        name=dataset.name,
        row_count=facts.row_count,
        size_bytes=content.size_bytes,
        digest=content.digest,
        format=number_of(content.format),
        user=dataset.user,
        target_count=facts.target_count,
        models=facts.models,
        endpoint=facts.endpoint,
        project_id=dataset.project_id,
    )
    message.uploaded_at.FromDatetime(dataset.uploaded_at)
    return message


def row_to_proto(row: DatasetRow) -> dataset_pb2.DatasetRow:
    return dataset_pb2.DatasetRow(
        doc_id=row.doc_id,
        row_id=row.row_id,
        body_json=row.body_json.decode(),
        target=row.target,
        metadata_json=row.metadata_json.decode(),
    )


def file_header_from_proto(message: file_pb2.FileHeader) -> FileHeader:
    if message.purpose != FilePurpose.BATCH.number:
        sentence = "purpose must be batch: files are uploaded for batches only."
        raise InvalidParameter(field="header.purpose", sentence=sentence)
    lifetime = message.expires_after_seconds if message.HasField("expires_after_seconds") else None
    return FileHeader(
        name=message.name,
        user=message.user or LOCAL_USER,
        request_id=checked_request_id(message.request_id),
        expires_after_seconds=lifetime,
        project_id=message.project_id,
    )


def file_id_from_proto(text: str) -> FileId:
    """Ids of another form are reported as not found."""
    if not is_file_id(text):
        raise FileNotFound(file_id=text)
    return FileId(text)


def file_to_proto(file: StoredFile) -> file_pb2.File:
    message = file_pb2.File(
        file_id=file.file_id,
        name=file.name,
        purpose=number_of(file.purpose),
        size_bytes=file.size_bytes,
        user=file.user,
        project_id=file.project_id,
        row_count=file.content.facts.row_count if file.content else 0,
        faults=[FAULT.to_proto(fault) for fault in file.faults.first],
        fault_count=file.faults.count,
    )
    message.created_at.FromDatetime(file.created_at)
    if file.expires_at is not None:
        message.expires_at.FromDatetime(file.expires_at)
    return message


def dataset_page_token(cursor: DatasetCursor | None) -> str:
    """Returns "" after the last page."""
    return list_token(_DATASETS, cursor.uploaded_at, cursor.dataset_id, cursor.total) if cursor else ""


def dataset_cursor_from_token(token: str) -> DatasetCursor | None:
    """Returns None for the first page. Raises `InvalidPageToken`."""
    if not token:
        return None
    uploaded_at, dataset_id, total = read_list_token(_DATASETS, token)
    if not is_dataset_id(dataset_id):
        raise InvalidPageToken(page_token=token)
    return DatasetCursor(uploaded_at, DatasetId(dataset_id), total)


async def open_upload(requests: AsyncIterable[UploadMessage]) -> tuple[UploadMessage, AsyncIterator[bytes]]:
    """Returns the chunk with the header, and the bytes of the file.

    Raises `InvalidParameter` if the header is not first. Reading the bytes raises it for a chunk that is too
    large and for a second header, and `UploadCutOff` if the end is missing.
    """
    chunks = aiter(requests)
    first = await anext(chunks, None)
    if first is None or first.WhichOneof("chunk") != "header":
        raise InvalidParameter(field="header", sentence="The first chunk must be the header.")
    return first, _contents(chunks)


async def _contents(chunks: AsyncIterator[UploadMessage]) -> AsyncIterator[bytes]:
    """The end is a message of its own, because a crashed client looks like one that has sent everything."""
    async for chunk in chunks:
        match chunk.WhichOneof("chunk"):
            case "end":
                return
            case "content" if len(chunk.content) <= MAX_CHUNK_BYTES:
                yield chunk.content
            case "content":
                sentence = f"A chunk has {len(chunk.content)} bytes, but must have at most {MAX_CHUNK_BYTES}."
                raise InvalidParameter(field="content", sentence=sentence)
            case _:
                raise InvalidParameter(field="header", sentence="Only the first chunk may be a header.")
    raise UploadCutOff
