"""Reads an uploaded file to its end, in one pass: what is wrong with it, or its rows in the object store."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import orjson

from services.scheduler.datasets.checking.compression import beginning, decompressed_chunks
from services.scheduler.datasets.checking.faults import (
    MAX_NAMED_FAULTS,
    BrokenFile,
    DatasetFault,
    FaultKind,
    FaultList,
    LineFault,
    TooManyLines,
    nul_place,
)
from services.scheduler.datasets.checking.format_detection import PEEKED_BYTES, check_beginning, detect_format
from services.scheduler.datasets.checking.line_agreement import LineAgreement
from services.scheduler.datasets.checking.row_fields import RowFields
from services.scheduler.datasets.checking.seen_ids import SeenIds
from services.scheduler.datasets.checking.text_readers import MAX_ROW_BYTES, RowReader
from services.scheduler.datasets.dataset import DatasetFormat, DatasetHeader, RowFacts
from services.scheduler.datasets.dataset_errors import DatasetTooLarge
from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.datasets.row_frames import FramePacker, index_key, part_key

_NUL = rb"\u0000"


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Of the file as uploaded, of what it unpacks to (also as the rows that are kept), and its rows."""

    uploaded_bytes: int
    unpacked_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class LineRules:
    """What holds for lines of the input of a batch: no other form, and no more of them; more is a fault."""

    is_batch_only: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """`facts` only where there is no fault; then the rows are stored."""

    digest: str
    size_bytes: int
    format: DatasetFormat
    facts: RowFacts | None
    faults: tuple[DatasetFault, ...] = ()
    fault_count: int = 0


@dataclass(frozen=True)
class CheckFile:
    """Takes as much memory for a long file as for a short one. Runs in a thread of its own."""

    readers: Mapping[DatasetFormat, RowReader]
    objects: ObjectStore
    limits: SizeLimits
    rules: LineRules = LineRules()

    def check(self, header: DatasetHeader, chunks: Iterable[bytes], prefix: str) -> CheckedFile:
        """Stores under the prefix up to the first fault; what then lies there is the caller's to remove."""
        digest = hashlib.sha256()
        uploaded = _Measured(_hashed(chunks, digest), self.limits.uploaded_bytes)
        unpacked = _Measured(decompressed_chunks(uploaded), self.limits.unpacked_bytes, " unpacked")
        checking = _Checking(_Rows(self.objects, prefix), self.limits, self.rules)
        form, facts = header.format or DatasetFormat.JSONL, None
        try:
            first, rest = beginning(unpacked, PEEKED_BYTES)
            form = header.format or detect_format(header.name, first)
            check_beginning(form, first)
            whole: Iterable[bytes] = chain((first,), rest)
            if form is DatasetFormat.PARQUET:
                # It lies on disk while it is read, and packs itself: unpacked it is no larger than uploaded.
                whole = _Measured(whole, self.limits.uploaded_bytes, " unpacked")
            facts = checking.run(self.readers[form](iter(whole)))
        except BrokenFile as broken:
            checking.faults.add(0, LineFault("", str(broken), broken.kind))
        finally:
            checking.close()
        faults = checking.faults
        return CheckedFile(digest.hexdigest(), uploaded.size, form, facts, tuple(faults.first), faults.count)


def _hashed(chunks: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


class _Measured:
    """Passes chunks on, and knows how much it was. Raises `DatasetTooLarge`."""

    def __init__(self, chunks: Iterable[bytes], limit: int, when: str = "") -> None:
        self.size = 0
        self._pieces = chunks
        self._limit = limit
        self._when = when

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._pieces:
            self.size += len(chunk)
            if self.size > self._limit:
                raise DatasetTooLarge(limit=self._limit, unit="bytes", when=self._when)
            yield chunk


class _Rows:
    """Rows on their way into the object store, part by part."""

    def __init__(self, objects: ObjectStore, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix
        self._packer = FramePacker()
        self._parts = 0

    def add(self, line: bytes) -> None:
        self._put(self._packer.add(line))

    def end(self) -> None:
        self._put(self._packer.end())
        self._objects.put(index_key(self._prefix), [self._packer.index.to_json()])

    def _put(self, part: Sequence[bytes]) -> None:
        if part:
            self._objects.put(part_key(self._prefix, self._parts), part)
            self._parts += 1


class _Checking:
    """One pass over the values of a file."""

    def __init__(self, rows: _Rows, limits: SizeLimits, rules: LineRules) -> None:
        self.faults = FaultList()
        self._rows = rows
        self._limits = limits
        self._most_lines = rules.most
        self._ids = SeenIds(MAX_NAMED_FAULTS)
        self._agreement = LineAgreement(self._ids, is_batch_only=rules.is_batch_only)

    def run(self, values: Iterable[tuple[int, object]]) -> RowFacts | None:
        count = size = 0
        for number, value in values:
            count += 1
            self._check_count(count)
            try:
                if isinstance(value, LineFault):
                    raise value
                line = _packed(self._agreement.row(number, value), value)
            except LineFault as fault:
                self.faults.add(number, fault)
                continue
            size += len(line)
            # A Parquet file says a long text once for many rows.
            if size > self._limits.unpacked_bytes:
                raise DatasetTooLarge(limit=self._limits.unpacked_bytes, unit="bytes", when=" unpacked")
            if not self.faults:
                self._rows.add(line)
        self._add_duplicates()
        if count == 0:
            sentence = "The file is empty. Upload one with at least one line."
            self.faults.add(0, LineFault("", sentence, FaultKind.EMPTY))
        if self.faults:
            return None
        self._rows.end()
        return self._agreement.facts(count)

    def _check_count(self, count: int) -> None:
        if count > self._limits.rows:
            raise DatasetTooLarge(limit=self._limits.rows, unit="rows", when="")
        if self._most_lines is not None and count > self._most_lines:
            raise TooManyLines(f"It has more than {self._most_lines} lines, the most of a batch. Split it.")

    def _add_duplicates(self) -> None:
        found = self._ids.duplicates()
        for one in found.first:
            sentence = f"It repeats the id of line {one.first_line}."
            fault = LineFault(self._agreement.id_field, sentence, FaultKind.DUPLICATE)
            self.faults.add(one.line, fault)
        self.faults.count_more(found.count - len(found.first))

    def close(self) -> None:
        self._ids.close()


def _packed(row: RowFields, value: object) -> bytes:
    try:
        line = orjson.dumps(row)
    except TypeError as error:
        raise LineFault("", f"The row cannot be kept as JSON: {str(error).lower()}.") from error
    if len(line) > MAX_ROW_BYTES:
        raise LineFault("", f"The row has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it.")
    # Most often it is nowhere; else it may still be a backslash and some letters.
    if _NUL in line and (place := nul_place(value)) is not None:
        raise LineFault(place, "It holds a NUL character. Leave it out.")
    return line
