"""Checks an uploaded file in one pass: the result is its faults, or its rows in the object store."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import orjson

from services.scheduler.suites.rows.first_bytes import BEGINNING_BYTES
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.uploads.checking.compression import (
    beginning,
    check_beginning,
    decompressed_chunks,
    detect_format,
)
from services.scheduler.uploads.checking.line_agreement import LineAgreement
from services.scheduler.uploads.checking.map_columns import MapColumns
from services.scheduler.uploads.checking.row_fields import RowFields
from services.scheduler.uploads.checking.seen_ids import SeenIds
from services.scheduler.uploads.checking.text_readers import FormatReader
from services.scheduler.uploads.dataset import DatasetFormat, DatasetHeader, RowFacts
from services.scheduler.uploads.errors import BrokenFile, DatasetTooLarge, FaultKind, LineFault, TooManyLines
from services.scheduler.uploads.faults import MAX_NAMED_FAULTS, DatasetFault, FaultList, nul_path
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.quotas.storage_use import NO_QUOTA, StorageQuota, StorageUse
from services.scheduler.uploads.storage.store_parts import StoreRows

# A compressed file may expand to so much, or to so many times its size.
FREE_DECOMPRESSED_BYTES = 64 * 1024 * 1024
# Text compresses to a tenth or so, repeated rows to a hundredth: more is a bomb.
MAX_EXPANSION = 200
_NUL = rb"\u0000"


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Bytes as uploaded, bytes decompressed (also of the stored rows), and rows."""

    uploaded_bytes: int
    decompressed_bytes: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCheck:
    """The check of one data set, in plain values. Its rows are stored below `prefix`."""

    header: DatasetHeader
    prefix: str
    quota: StorageQuota
    limits: SizeLimits


@dataclass(frozen=True, slots=True)
class LineRules:
    """Rules for batch input: only batch lines, and at most `maximum` of them."""

    is_batch_only: bool = False
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """`facts` is None if there are faults; else the rows are stored, in `stored_bytes`."""

    digest: str
    size_bytes: int
    format: DatasetFormat
    facts: RowFacts | None
    faults: tuple[DatasetFault, ...] = ()
    fault_count: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CheckFile:
    """Memory use does not depend on the file's length. Runs in a process."""

    readers: Mapping[DatasetFormat, FormatReader]
    objects: Objects
    limits: SizeLimits
    rules: LineRules = LineRules()

    def check(
        self, header: DatasetHeader, chunks: Iterable[bytes], prefix: str, quota: StorageQuota = NO_QUOTA
    ) -> CheckedFile:
        """Stores rows under the prefix up to the first fault; the caller deletes them if there are faults.

        Raises `DatasetTooLarge`, or `StorageQuotaExceeded` soon after the rows no longer fit.
        """
        # The same file with another mapping is another content.
        digest = hashlib.sha256(header.mapping.line() if header.mapping else b"")
        uploaded = _Measured(_hashed(chunks, digest), self.limits.uploaded_bytes)
        decompressed = _Measured(
            _no_bomb(decompressed_chunks(uploaded), uploaded), self.limits.decompressed_bytes, " decompressed"
        )
        rows = _QuotaRows(StoreRows(self.objects, prefix), quota)
        checking = _Checking(
            rows, self.limits, self.rules, MapColumns(header.mapping) if header.mapping else None
        )
        form, facts = header.format or DatasetFormat.JSONL, None
        try:
            first, rest = beginning(decompressed, BEGINNING_BYTES)
            form = header.format or detect_format(header.name, first)
            check_beginning(form, first)
            whole: Iterable[bytes] = chain((first,), rest)
            if form is DatasetFormat.PARQUET:
                # It is spooled to disk. It compresses itself, so it may expand to the upload limit only.
                whole = _Measured(whole, self.limits.uploaded_bytes, " decompressed")
            facts = checking.run(self.readers[form](iter(whole)))
        except BrokenFile as broken:
            checking.faults.add(0, LineFault("", str(broken), broken.kind))
        finally:
            checking.close()
        faults = checking.faults
        return CheckedFile(
            digest=digest.hexdigest(),
            size_bytes=uploaded.size,
            format=form,
            facts=facts,
            faults=tuple(faults.first),
            fault_count=faults.count,
            stored_bytes=rows.writer.stored_bytes,
        )


def _hashed(chunks: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


class _Measured:
    """Passes chunks on and counts their bytes. Raises `DatasetTooLarge`."""

    def __init__(self, chunks: Iterable[bytes], limit: int, when: str = "") -> None:
        self.size = 0
        self._chunks = chunks
        self._limit = limit
        self._when = when

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            if self.size > self._limit:
                raise DatasetTooLarge(limit=self._limit, unit="bytes", when=self._when)
            yield chunk


def _no_bomb(chunks: Iterable[bytes], uploaded: _Measured) -> Iterator[bytes]:
    """Rows of real files do not shrink to a two-hundredth. Raises `BrokenFile`."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > FREE_DECOMPRESSED_BYTES and size > MAX_EXPANSION * uploaded.size:
            raise BrokenFile(
                f"It decompresses to more than {MAX_EXPANSION} times its size. Upload it uncompressed."
            )
        yield chunk


class _QuotaRows:
    """Stores rows while they fit. Raises `StorageQuotaExceeded`."""

    def __init__(self, writer: StoreRows, quota: StorageQuota) -> None:
        self.writer = writer
        self._quota = quota
        self._checked_bytes = 0

    def add(self, line: bytes) -> None:
        self.writer.add(line)
        # Once for many rows.
        if self.writer.stored_bytes != self._checked_bytes:
            self._check()

    def end(self) -> None:
        self.writer.end()
        self._check()

    def _check(self) -> None:
        self._checked_bytes = self.writer.stored_bytes
        self._quota.check(StorageUse(bytes=self._checked_bytes, rows=self.writer.row_count))


class _Checking:
    """One pass over the values of a file."""

    def __init__(
        self, rows: _QuotaRows, limits: SizeLimits, rules: LineRules, mapped: MapColumns | None
    ) -> None:
        self._mapped = mapped
        self.faults = FaultList()
        self._rows = rows
        self._limits = limits
        self._most_lines = rules.maximum
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
                row = self._mapped.line(value) if self._mapped else value
                line = _packed(self._agreement.row(number, row), value)
            except LineFault as fault:
                self.faults.add(number, fault, value)
                continue
            size += len(line)
            # In Parquet, many rows can share one long text.
            if size > self._limits.decompressed_bytes:
                raise DatasetTooLarge(
                    limit=self._limits.decompressed_bytes, unit="bytes", when=" decompressed"
                )
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
            raise TooManyLines(
                f"It has more than {self._most_lines} lines, the maximum of a batch. Split it."
            )

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
    # A fast check first; a match may also be an escaped backslash.
    if _NUL in line and (path := nul_path(value)) is not None:
        raise LineFault(path, "It holds a NUL character. Leave it out.")
    return line
