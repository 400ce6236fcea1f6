"""The process that checks a data set or a file for batches. `checking` starts it."""

from collections.abc import Iterable

from services.scheduler.uploads.checking.check_batch_file import (
    BatchFileCheck,
    CheckBatchFile,
    CheckedBatchFile,
)
from services.scheduler.uploads.checking.check_file import CheckedFile, CheckFile, DatasetCheck
from services.scheduler.uploads.checking.parquet_reader import read_parquet
from services.scheduler.uploads.checking.text_readers import read_csv, read_jsonl
from services.scheduler.uploads.dataset import DatasetFormat
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.processes.serve_check import serve_check

PROGRAM = "services.scheduler.uploads.processes.upload_checks"
DATASET_READERS = {
    DatasetFormat.JSONL: read_jsonl,
    DatasetFormat.CSV: read_csv,
    DatasetFormat.PARQUET: read_parquet,
}


def _check_dataset(check: DatasetCheck, chunks: Iterable[bytes], objects: Objects) -> CheckedFile:
    checking = CheckFile(readers=DATASET_READERS, objects=objects, limits=check.limits)
    return checking.check(check.header, chunks, check.prefix, check.quota)


def _check_batch_file(check: BatchFileCheck, chunks: Iterable[bytes], objects: Objects) -> CheckedBatchFile:
    return CheckBatchFile(objects=objects).check(check, chunks)


if __name__ == "__main__":
    serve_check({DatasetCheck: _check_dataset, BatchFileCheck: _check_batch_file})
