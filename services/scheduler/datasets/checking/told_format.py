"""The format of a file whose uploader did not say it: from its name, else from its first bytes."""

from services.scheduler.datasets.checking.row_reader import BOM
from services.scheduler.datasets.dataset import DatasetFormat

PEEKED_BYTES = 64
_PARQUET = b"PAR1"
_PACKED = (".gz", ".zst", ".zstd")
_ENDINGS = {
    ".jsonl": DatasetFormat.JSONL,
    ".ndjson": DatasetFormat.JSONL,
    ".json": DatasetFormat.JSONL,
    ".csv": DatasetFormat.CSV,
    ".parquet": DatasetFormat.PARQUET,
}


def told_format(name: str, first: bytes) -> DatasetFormat:
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
