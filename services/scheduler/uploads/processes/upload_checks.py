"""The process that checks a data set or a file for batches. `checking` starts it."""

from collections.abc import Iterable, Mapping
from functools import partial

from proctor.values.uploads.column_mapping import ColumnMapping
from services.scheduler.uploads.checking.check_batch_file import (
    BatchFileCheck,
    CheckBatchFile,
    CheckedBatchFile,
)
from services.scheduler.uploads.checking.check_file import CheckedFile, CheckFile, DatasetCheck
from services.scheduler.uploads.checking.map_columns import MappedColumns
from services.scheduler.uploads.checking.parquet_reader import read_parquet
from services.scheduler.uploads.checking.preview_file import PreviewCheck, PreviewedFile, preview_file
from services.scheduler.uploads.checking.text_readers import (
    USUAL_COLUMNS,
    FormatReader,
    read_csv,
    read_jsonl,
    read_tsv,
)
from services.scheduler.uploads.dataset import DatasetFormat
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.processes.serve_check import serve_check

PROGRAM = "services.scheduler.uploads.processes.upload_checks"


def readers(mapping: ColumnMapping | None = None) -> Mapping[DatasetFormat, FormatReader]:
    """Of files whose columns have the usual names, or are mapped."""
    columns = MappedColumns(mapping) if mapping else USUAL_COLUMNS
    return {
        DatasetFormat.JSONL: read_jsonl,
        DatasetFormat.CSV: partial(read_csv, columns=columns),
        DatasetFormat.TSV: partial(read_tsv, columns=columns),
        DatasetFormat.PARQUET: partial(read_parquet, columns=columns),
    }


DATASET_READERS = readers()


def _check_dataset(check: DatasetCheck, chunks: Iterable[bytes], objects: Objects) -> CheckedFile:
    checking = CheckFile(readers=readers(check.header.mapping), objects=objects, limits=check.limits)
    return checking.check(check.header, chunks, check.prefix, check.quota)


def _check_batch_file(check: BatchFileCheck, chunks: Iterable[bytes], objects: Objects) -> CheckedBatchFile:
    return CheckBatchFile(objects=objects).check(check, chunks)


def _preview(check: PreviewCheck, chunks: Iterable[bytes], _: Objects) -> PreviewedFile:
    return preview_file(check, chunks, read_parquet)


if __name__ == "__main__":
    serve_check({DatasetCheck: _check_dataset, BatchFileCheck: _check_batch_file, PreviewCheck: _preview})
