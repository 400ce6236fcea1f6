"""Detects the format of an uploaded file from its name, or else from its first bytes."""

from services.scheduler.uploads.checking.faults import BrokenFile
from services.scheduler.uploads.checking.text_readers import BOM
from services.scheduler.uploads.dataset import DatasetFormat

PEEKED_BYTES = 64
_PARQUET = b"PAR1"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PACKED = (".gz", ".zst", ".zstd")
_ENDINGS = {
    ".jsonl": DatasetFormat.JSONL,
    ".ndjson": DatasetFormat.JSONL,
    ".json": DatasetFormat.JSONL,
    ".csv": DatasetFormat.CSV,
    ".parquet": DatasetFormat.PARQUET,
}


def detect_format(name: str, first: bytes) -> DatasetFormat:
    if first.startswith(_PARQUET):
        return DatasetFormat.PARQUET
    name = name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    for ending, form in _ENDINGS.items():
        if name.endswith(ending):
            return form
    is_json = first.removeprefix(BOM).lstrip().startswith((b"{", b"["))
    return DatasetFormat.JSONL if is_json or not first.strip() else DatasetFormat.CSV


def check_beginning(form: DatasetFormat, first: bytes) -> None:
    """Raises `BrokenFile` for UTF-16 and JSON arrays: all their lines would be faulty."""
    if form is not DatasetFormat.PARQUET and first.startswith(_UTF_16):
        raise BrokenFile("It is written in UTF-16. Save it as UTF-8.")
    if form is DatasetFormat.JSONL and first.removeprefix(BOM).lstrip().startswith(b"["):
        raise BrokenFile("It is a JSON array. Write each object of it on a line of its own.")
