"""Shows the first rows of a file as its upload would store them, with a mapping that is given or proposed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

import orjson

from proctor.values.uploads.column_mapping import ColumnMapping, proposed_mapping
from services.scheduler.suites.rows.first_bytes import BEGINNING_BYTES
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.uploads.checking.compression import (
    beginning,
    check_beginning,
    decompressed_chunks,
    detect_format,
)
from services.scheduler.uploads.checking.line_agreement import LineAgreement
from services.scheduler.uploads.checking.map_columns import AnyColumns, MapColumns, MappedColumns, are_usual
from services.scheduler.uploads.checking.seen_ids import SeenIds
from services.scheduler.uploads.checking.text_readers import NumberedValue, read_csv, read_jsonl, read_tsv
from services.scheduler.uploads.dataset import DatasetFormat
from services.scheduler.uploads.errors import BrokenFile, LineFault
from services.scheduler.uploads.faults import DatasetFault, FaultList

PREVIEWED_ROWS = 5
# Of the header and the rows.
MAX_PREVIEWED_BYTES = (1 + PREVIEWED_ROWS) * MAX_ROW_BYTES
_NO_PROPOSAL = "No column has the name of a prompt: write one over the columns, as {{question}}."


Reader = Callable[..., Iterator[NumberedValue]]
_READERS: Mapping[DatasetFormat, Reader] = {
    DatasetFormat.JSONL: lambda chunks, _: read_jsonl(chunks),
    DatasetFormat.CSV: read_csv,
    DatasetFormat.TSV: read_tsv,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewCheck:
    """`is_whole` says that the bytes are the whole file; else its last line is left out."""

    name: str
    format: DatasetFormat | None
    mapping: ColumnMapping | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class PreviewedFile:
    """`mapping` is the one that was applied, None for columns that need none; `is_proposed`: nobody gave it.

    `rows` are JSON lines as they would be stored.
    """

    format: DatasetFormat
    columns: tuple[str, ...]
    mapping: ColumnMapping | None
    is_proposed: bool
    rows: tuple[bytes, ...]
    faults: tuple[DatasetFault, ...]


def preview_file(check: PreviewCheck, chunks: Iterable[bytes], read_parquet: Reader) -> PreviewedFile:
    faults, form = FaultList(), check.format or DatasetFormat.JSONL
    values: list[NumberedValue] = []
    try:
        first, rest = beginning(decompressed_chunks(chunks), BEGINNING_BYTES)
        form = check.format or detect_format(check.name, first)
        check_beginning(form, first)
        columns_of_table = MappedColumns(check.mapping) if check.mapping else AnyColumns()
        content = _read_by(form, chain((first,), rest), is_whole=check.is_whole)
        read = _READERS.get(form, read_parquet)
        for value in islice(read(content, columns_of_table), PREVIEWED_ROWS):
            values.append(value)  # noqa: PERF402  # those before a fault are kept
    except BrokenFile as broken:
        # The bytes may end within what is compressed.
        if not values:
            faults.add(0, LineFault("", str(broken), broken.kind))
    columns = _columns(values)
    mapping = check.mapping or (None if are_usual(columns) else proposed_mapping(columns))
    if mapping and form is not DatasetFormat.JSONL:
        filled = MappedColumns(mapping)
        values = [(number, filled.value(each) if isinstance(each, dict) else each) for number, each in values]
    if mapping is None and not are_usual(columns):
        faults.add(0, LineFault("", _NO_PROPOSAL))
        values = []
    rows = _rows(values, mapping, faults)
    return PreviewedFile(
        format=form,
        columns=columns,
        mapping=mapping,
        is_proposed=mapping is not None and check.mapping is None,
        rows=rows,
        faults=tuple(faults.first),
    )


def _read_by(form: DatasetFormat, chunks: Iterable[bytes], *, is_whole: bool) -> Iterator[bytes]:
    if form is not DatasetFormat.PARQUET:
        return _whole_lines(chunks, is_whole=is_whole)
    if not is_whole:
        raise BrokenFile("A Parquet file has its index at its end, so a large one has no preview. Upload it.")
    return iter(chunks)


def _whole_lines(chunks: Iterable[bytes], *, is_whole: bool) -> Iterator[bytes]:
    """At most what the rows may have: a few bytes that are compressed may go on for gigabytes."""
    held, left = b"", MAX_PREVIEWED_BYTES
    for chunk in chunks:
        head, newline, held_now = (held + chunk).rpartition(b"\n")
        if newline:
            yield head + newline
        held, left = held_now, left - len(chunk)
        if len(held) > MAX_ROW_BYTES:
            # Its reader says that it is too long.
            yield held
        if len(held) > MAX_ROW_BYTES or left < 0:
            return
    if is_whole and held:
        yield held


def _columns(values: Iterable[NumberedValue]) -> tuple[str, ...]:
    names = (name for _, value in values if isinstance(value, Mapping) for name in value)
    return tuple(dict.fromkeys(names))


def _rows(
    values: Iterable[NumberedValue], mapping: ColumnMapping | None, faults: FaultList
) -> tuple[bytes, ...]:
    ids = SeenIds(PREVIEWED_ROWS)
    agreement, rows = LineAgreement(ids), []
    try:
        for number, value in values:
            try:
                if isinstance(value, LineFault):
                    raise value
                line = MapColumns(mapping).line(value) if mapping else value
                rows.append(orjson.dumps(agreement.row(number, line)))
            except LineFault as fault:
                faults.add(number, fault, value)
    finally:
        ids.close()
    return tuple(rows)
