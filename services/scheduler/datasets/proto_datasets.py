"""Data sets, their rows and faults on the wire."""

from proctor.v1 import dataset_service_pb2 as messages
from services.scheduler.datasets.add_dataset import AddedDataset
from services.scheduler.datasets.checking.faults import DatasetFault
from services.scheduler.datasets.dataset import (
    Dataset,
    DatasetFormat,
    DatasetHeader,
    DatasetId,
    is_dataset_id,
)
from services.scheduler.datasets.dataset_errors import DatasetNotFound
from services.scheduler.datasets.dataset_row import DatasetRow
from services.scheduler.proto_words import word_of
from services.scheduler.requests import DEFAULT_USER, checked_request_id

FORMATS: dict[DatasetFormat, messages.DatasetFormat.ValueType] = {
    DatasetFormat.JSONL: messages.DATASET_FORMAT_JSONL,
    DatasetFormat.CSV: messages.DATASET_FORMAT_CSV,
    DatasetFormat.PARQUET: messages.DATASET_FORMAT_PARQUET,
}


def header_from_proto(message: messages.DatasetHeader) -> DatasetHeader:
    return DatasetHeader(
        name=message.name,
        user=message.user or DEFAULT_USER,
        format=word_of(FORMATS, message.format),
        request_id=checked_request_id(message.request_id),
        digest=message.digest,
    )


def dataset_id_from_proto(text: str) -> DatasetId:
    """What is no id is the name of no data set."""
    if not is_dataset_id(text):
        raise DatasetNotFound(dataset_id=text)
    return DatasetId(text)


def added_to_proto(added: AddedDataset) -> messages.UploadDatasetResponse:
    if added.dataset is not None:
        return messages.UploadDatasetResponse(dataset=dataset_to_proto(added.dataset))
    return messages.UploadDatasetResponse(
        faults=[fault_to_proto(fault) for fault in added.faults], fault_count=added.fault_count
    )


def dataset_to_proto(dataset: Dataset) -> messages.Dataset:
    content, facts = dataset.content, dataset.content.facts
    message = messages.Dataset(
        dataset_id=dataset.dataset_id,
        name=dataset.name,
        row_count=facts.row_count,
        size_bytes=content.size_bytes,
        digest=content.digest,
        format=FORMATS[content.format],
        user=dataset.user,
        target_count=facts.target_count,
        models=facts.models,
        endpoint=facts.endpoint,
    )
    message.uploaded_at.FromDatetime(dataset.uploaded_at)
    return message


def row_to_proto(row: DatasetRow) -> messages.DatasetRow:
    return messages.DatasetRow(
        row=row.row,
        id=row.row_id,
        body_json=row.body_json.decode(),
        target=row.target,
        metadata_json=row.metadata_json.decode(),
    )


def fault_to_proto(fault: DatasetFault) -> messages.DatasetFault:
    return messages.DatasetFault(line=fault.line, field=fault.field, problem=fault.problem)
