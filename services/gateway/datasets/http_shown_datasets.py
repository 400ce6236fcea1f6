"""Data sets, their rows and what is wrong with a file, from their messages."""

import json
from datetime import UTC

from pydantic import JsonValue

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.datasets.http_dataset_bodies import (
    DatasetListed,
    DatasetRow,
    DatasetUploaded,
    Format,
)
from services.gateway.errors import DatasetFault

FORMATS: dict[Format, dataset_pb2.DatasetFormat.ValueType] = {
    "jsonl": dataset_pb2.DATASET_FORMAT_JSONL,
    "csv": dataset_pb2.DATASET_FORMAT_CSV,
    "parquet": dataset_pb2.DATASET_FORMAT_PARQUET,
}
_WORDS: dict[int, Format] = {number: word for word, number in FORMATS.items()}


def dataset_uploaded(dataset: dataset_pb2.Dataset) -> DatasetUploaded:
    return DatasetUploaded(
        dataset_id=dataset.dataset_id,
        name=dataset.name,
        count=dataset.row_count,
        uploaded_at=dataset.uploaded_at.ToDatetime(UTC),
    )


def dataset_listed(dataset: dataset_pb2.Dataset) -> DatasetListed:
    return DatasetListed(
        id=dataset.dataset_id,
        name=dataset.name,
        count=dataset.row_count,
        uploaded_at=dataset.uploaded_at.ToDatetime(UTC),
        user=dataset.user,
        format=_WORDS[dataset.format],
        size_bytes=dataset.size_bytes,
        digest=dataset.digest,
        target_count=dataset.target_count,
        models=list(dataset.models),
        endpoint=dataset.endpoint or None,
    )


def dataset_row(row: dataset_pb2.DatasetRow) -> DatasetRow:
    return DatasetRow(
        row=row.row,
        id=row.id,
        body=_json(row.body_json),
        target=row.target if row.HasField("target") else None,
        metadata=_json(row.metadata_json),
    )


def dataset_fault(fault: dataset_pb2.DatasetFault) -> DatasetFault:
    return DatasetFault(fault.line, fault.field, fault.problem)


def _json(text: str) -> JsonValue:
    value: JsonValue = json.loads(text) if text else None
    return value
