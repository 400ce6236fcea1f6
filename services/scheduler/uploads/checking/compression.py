"""How an upload begins: its compression (gzip or zstd) and its format, by its name and its first bytes.

Chunks stay small however much a file expands, so a decompression bomb is counted before it fills memory.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from zstandard import ZstdDecompressor, ZstdError

from services.scheduler.suites.rows.first_bytes import foreign_form, other_separator
from services.scheduler.uploads.checking.text_readers import BOM
from services.scheduler.uploads.dataset import DatasetFormat
from services.scheduler.uploads.errors import BrokenFile

# Decompressed at a time, whatever the compressed chunk holds.
CHUNK_BYTES = 1024 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# Window bits by which zlib expects a gzip header.
_GZIP_WINDOW = 31
# zstd frames declare their window; the zstd command has the same limit.
_ZSTD_WINDOW_BYTES = 128 * 1024 * 1024
# One zstd call has no output limit: 4 bytes can expand to 128 KiB.
_ZSTD_INPUT_BYTES = 1024
_PARQUET = b"PAR1"
_COMPRESSED = (".gz", ".zst", ".zstd")
_ENDINGS = {
    ".jsonl": DatasetFormat.JSONL,
    ".ndjson": DatasetFormat.JSONL,
    ".json": DatasetFormat.JSONL,
    ".csv": DatasetFormat.CSV,
    ".tsv": DatasetFormat.TSV,
    ".parquet": DatasetFormat.PARQUET,
}


def decompressed_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields chunks of 1 to `CHUNK_BYTES` bytes. Raises `BrokenFile`."""
    first, rest = beginning(chunks, len(_ZSTD))
    whole = chain((first,), rest)
    if first.startswith(_GZIP):
        return _cut(_gunzipped(whole), CHUNK_BYTES)
    if first.startswith(_ZSTD):
        return _cut(_decompressed_zstd(whole), CHUNK_BYTES)
    return _cut(whole, CHUNK_BYTES)


def beginning(chunks: Iterable[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """Returns a first chunk of at least `size` bytes, if there are as many, and the remaining chunks."""
    rest, first = iter(chunks), b""
    while len(first) < size and (chunk := next(rest, None)) is not None:
        first += chunk
    return first, rest


def _cut(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), size):
            yield chunk[start : start + size]


def _gunzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    engine = zlib.decompressobj(_GZIP_WINDOW)
    try:
        for chunk in chunks:
            left = chunk
            while left:
                if engine.eof:
                    engine = zlib.decompressobj(_GZIP_WINDOW)
                yield engine.decompress(left, CHUNK_BYTES)
                left = engine.unused_data or engine.unconsumed_tail
    except zlib.error as error:
        raise BrokenFile(f"It begins as gzip but is not: {error}.") from error
    if not engine.eof:
        raise BrokenFile("It ends in the middle of its gzip data. Upload it again, whole.")


def _decompressed_zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decompressor = ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    engine = decompressor.decompressobj()
    try:
        for chunk in _cut(chunks, _ZSTD_INPUT_BYTES):
            left = chunk
            while left:
                if engine.eof:
                    engine = decompressor.decompressobj()
                yield engine.decompress(left)
                left = engine.unused_data
    except ZstdError as error:
        raise BrokenFile(f"It begins as zstd but is not: {error}.") from error
    if not engine.eof:
        raise BrokenFile("It ends in the middle of its zstd data. Upload it again, whole.")


def detect_format(name: str, first: bytes) -> DatasetFormat:
    if first.startswith(_PARQUET):
        return DatasetFormat.PARQUET
    name = name.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    for ending, form in _ENDINGS.items():
        if name.endswith(ending):
            return form
    is_json = first.removeprefix(BOM).lstrip().startswith((b"{", b"["))
    return DatasetFormat.JSONL if is_json or not first.strip() else DatasetFormat.CSV


def check_beginning(form: DatasetFormat, first: bytes) -> None:
    """Raises `BrokenFile` for files that are no text and for JSON arrays: all their lines would be faulty."""
    if foreign := foreign_form(first, with_parquet=form is not DatasetFormat.PARQUET):
        raise BrokenFile(f"It is {foreign}.")
    if form is DatasetFormat.CSV and (signs := other_separator(first)):
        tsv = " or give the format tsv" if signs == "tabs" else ""
        raise BrokenFile(f"Its columns are separated by {signs}. Separate them by commas{tsv}.")
    if form is DatasetFormat.JSONL and first.removeprefix(BOM).lstrip().startswith(b"["):
        raise BrokenFile("It is a JSON array. Write each object of it on a line of its own.")
