"""Tables as files that a browser saves."""

import csv
import io
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Literal

from starlette.responses import Response, StreamingResponse

from proctor.values.plain import csv_safe, with_line_feeds_only

Value = str | float | None
FileForm = Literal["csv", "jsonl"]


def csv_file(name: str, header: Sequence[str], rows: Iterable[Iterable[Value]]) -> Response:
    """The file `name`; a text that a spreadsheet would run as a formula begins with an apostrophe."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(header)
    writer.writerows([_safe(value) for value in row] for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(written.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


async def streamed_file(
    stem: str, form: FileForm, columns: Sequence[str], records: AsyncGenerator[Sequence[Value]]
) -> Response:
    """A file of records that is sent while they are read. What refuses the first one is raised here."""
    first = await anext(records, None)
    write, media_type = (_csv_line, "text/csv") if form == "csv" else (_json_line, "application/jsonl")

    async def lines() -> AsyncGenerator[str]:
        async with aclosing(records):
            if form == "csv":
                yield _csv_line(columns, columns)
            if first is not None:
                yield write(columns, first)
            async for record in records:
                yield write(columns, record)

    headers = {"Content-Disposition": f'attachment; filename="{stem}.{form}"'}
    return StreamingResponse(lines(), media_type=f"{media_type}; charset=utf-8", headers=headers)


def _csv_line(_: Sequence[str], record: Iterable[Value]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(_safe(value) for value in record)
    return written.getvalue()


def _json_line(columns: Sequence[str], record: Sequence[Value]) -> str:
    line = json.dumps(dict(zip(columns, record, strict=True)), ensure_ascii=False)
    return f"{with_line_feeds_only(line.encode()).decode()}\n"


def _safe(value: Value) -> Value:
    return csv_safe(value) if isinstance(value, str) else value
