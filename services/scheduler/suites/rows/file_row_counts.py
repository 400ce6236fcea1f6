"""Counts the rows of a file without reading what they have."""

import csv
import shutil
from io import BytesIO, TextIOWrapper
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import BinaryIO

from services.scheduler.suites.rows.csv_form import CsvForm
from services.scheduler.suites.rows.errors import UnreadableParquet
from services.scheduler.suites.rows.parquet_rows import open_parquet

# A file above it is not read through. What a Parquet file says of itself is read of any.
MAX_COUNTED_BYTES = 64 * 1024 * 1024
_PARQUET_CPU_SECONDS = 20


def count_rows(content: BinaryIO, name: str, form: CsvForm) -> int | None:
    """None where the file is too large, or is none of rows. Raises OSError."""
    suffix = PurePosixPath(name).suffix
    if suffix == ".parquet":
        return _count_parquet(content)
    size = content.seek(0, 2)
    content.seek(0)
    if size > MAX_COUNTED_BYTES:
        return None
    if suffix in (".jsonl", ".json"):
        return sum(1 for line in content if line.strip())
    return _count_records(content, suffix, form) if suffix in (".csv", ".tsv") else None


def _count_records(content: BinaryIO, suffix: str, form: CsvForm) -> int | None:
    delimiter = form.delimiter or ("\t" if suffix == ".tsv" else ",")
    # A limit of the whole process, which rows of files have as well.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_COUNTED_BYTES))
    try:
        with TextIOWrapper(content, "utf-8", newline="") as lines:
            count = sum(1 for record in csv.reader(lines, delimiter=delimiter) if record)
    except (csv.Error, UnicodeDecodeError, TypeError, ValueError):
        # No table, or no sign that separates columns: its own fault.
        return None
    return max(0, count - form.has_header)


def _count_parquet(content: BinaryIO) -> int | None:
    with TemporaryFile() as copy:
        # The process that reads it needs a file; one of memory is small.
        if isinstance(content, BytesIO):
            shutil.copyfileobj(content, copy)
        file = copy if isinstance(content, BytesIO) else content
        try:
            count = open_parquet(file, _PARQUET_CPU_SECONDS).count
        except UnreadableParquet:
            return None
    return count if count >= 0 else None
