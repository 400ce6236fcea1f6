"""Tables as files that a browser saves, sent while their rows are read: CSV, JSONL and Parquet."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import aclosing
from importlib import import_module
from typing import Literal, Protocol

from starlette.responses import Response, StreamingResponse

from proctor.values.plain import csv_safe, with_line_feeds_only

Value = str | float | None
Record = Sequence[Value]
FileForm = Literal["csv", "jsonl", "parquet"]
# Buttons, in their order.
FORM_NAMES: Sequence[tuple[FileForm, str]] = (("csv", "CSV"), ("jsonl", "JSONL"), ("parquet", "Parquet"))

_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
# Rows that are written together: a row group of Parquet.
_ROWS = 1000


class _Writer(Protocol):
    def begin(self) -> bytes: ...

    def write(self, records: Sequence[Record]) -> bytes: ...

    def end(self) -> bytes: ...


async def streamed_file(
    stem: str,
    form: FileForm,
    columns: Sequence[str],
    records: AsyncGenerator[Record],
    *,
    numbers: Collection[str] = (),
) -> Response:
    """A file of records; what refuses the first one is raised here. `numbers` are columns of numbers.

    A text that a spreadsheet would run as a formula begins with an apostrophe in CSV.
    """
    first = await anext(records, None)
    # Imports what takes long for Parquet.
    writer = await asyncio.to_thread(_writer, form, columns, numbers)

    async def pieces() -> AsyncGenerator[bytes]:
        held = [] if first is None else [first]
        yield await asyncio.to_thread(writer.begin)
        async with aclosing(records):
            async for record in records:
                held.append(record)
                if len(held) >= _ROWS:
                    yield await asyncio.to_thread(writer.write, held)
                    held = []
        yield await asyncio.to_thread(writer.write, held)
        yield await asyncio.to_thread(writer.end)

    headers = {"Content-Disposition": f'attachment; filename="{stem}.{form}"'}
    return StreamingResponse(pieces(), media_type=_MEDIA_TYPES[form], headers=headers)


async def each_of(records: Iterable[Record]) -> AsyncGenerator[Record]:
    """Records that are there already."""
    for record in records:
        yield record


def _writer(form: FileForm, columns: Sequence[str], numbers: Collection[str]) -> _Writer:
    match form:
        case "csv":
            return _Csv(columns)
        case "jsonl":
            return _Jsonl(columns)
        case "parquet":
            return _Parquet(columns, numbers)


class _Csv:
    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns

    def begin(self) -> bytes:
        return self.write([self._columns])

    def write(self, records: Sequence[Record]) -> bytes:
        written = io.StringIO()
        csv.writer(written).writerows([_safe(value) for value in record] for record in records)
        return written.getvalue().encode()

    def end(self) -> bytes:
        return b""


def _safe(value: Value) -> Value:
    return csv_safe(value) if isinstance(value, str) else value


class _Jsonl:
    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns

    def begin(self) -> bytes:
        return b""

    def write(self, records: Sequence[Record]) -> bytes:
        return b"".join(map(self._line, records))

    def _line(self, record: Record) -> bytes:
        line = json.dumps(dict(zip(self._columns, record, strict=True)), ensure_ascii=False)
        return with_line_feeds_only(line.encode()) + b"\n"

    def end(self) -> bytes:
        return b""


class _Parquet:
    def __init__(self, columns: Sequence[str], numbers: Collection[str]) -> None:
        # Only here: it takes 50 MiB, and most gateways never write such a file.
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        self._table = arrow.Table
        kinds = {True: arrow.float64(), False: arrow.string()}
        self._schema = arrow.schema([(name, kinds[name in numbers]) for name in columns])
        self._buffer = io.BytesIO()
        self._writer = parquet.ParquetWriter(self._buffer, self._schema, compression="zstd")

    def begin(self) -> bytes:
        return self._written()

    def write(self, records: Sequence[Record]) -> bytes:
        names = self._schema.names
        rows = [dict(zip(names, record, strict=True)) for record in records]
        self._writer.write_table(self._table.from_pylist(rows, self._schema))
        return self._written()

    def end(self) -> bytes:
        self._writer.close()
        return self._written()

    def _written(self) -> bytes:
        """Bytes that the writer has appended since the last call."""
        piece = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return piece
