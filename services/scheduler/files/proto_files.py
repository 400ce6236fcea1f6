"""Files on the wire."""

from proctor.v1 import file_service_pb2 as messages
from services.scheduler.datasets.proto_datasets import fault_to_proto
from services.scheduler.errors import InvalidParameter
from services.scheduler.files.errors import FileNotFound
from services.scheduler.files.stored_file import FileHeader, FileId, FilePurpose, StoredFile, is_file_id
from services.scheduler.requests import DEFAULT_USER, checked_request_id

PURPOSES: dict[FilePurpose, messages.FilePurpose.ValueType] = {
    FilePurpose.BATCH: messages.FILE_PURPOSE_BATCH,
    FilePurpose.BATCH_OUTPUT: messages.FILE_PURPOSE_BATCH_OUTPUT,
}


def file_header_from_proto(message: messages.FileHeader) -> FileHeader:
    if message.purpose != messages.FILE_PURPOSE_BATCH:
        sentence = "purpose must be batch: files are uploaded for batches only."
        raise InvalidParameter(field="header.purpose", sentence=sentence)
    lasts = message.expires_after_seconds if message.HasField("expires_after_seconds") else None
    return FileHeader(
        name=message.name,
        user=message.user or DEFAULT_USER,
        request_id=checked_request_id(message.request_id),
        expires_after_seconds=lasts,
    )


def file_id_from_proto(text: str) -> FileId:
    """What is no id is the name of no file."""
    if not is_file_id(text):
        raise FileNotFound(file_id=text)
    return FileId(text)


def file_to_proto(file: StoredFile) -> messages.File:
    message = messages.File(
        file_id=file.file_id,
        name=file.name,
        purpose=PURPOSES[file.purpose],
        size_bytes=file.size_bytes,
        user=file.user,
        row_count=file.content.facts.row_count if file.content else 0,
        faults=[fault_to_proto(fault) for fault in file.faults.first],
        fault_count=file.faults.count,
    )
    message.created_at.FromDatetime(file.created_at)
    if file.expires_at is not None:
        message.expires_at.FromDatetime(file.expires_at)
    return message
