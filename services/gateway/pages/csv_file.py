"""Tables as CSV files that a browser saves."""

import csv
import io
from collections.abc import Iterable, Sequence

from starlette.responses import Response

from proctor.values.plain import csv_safe

Value = str | float | None


def csv_file(name: str, header: Sequence[str], rows: Iterable[Iterable[Value]]) -> Response:
    """The file `name`; a text that a spreadsheet would run as a formula begins with an apostrophe."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(header)
    writer.writerows([_safe(value) for value in row] for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(written.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _safe(value: Value) -> Value:
    return csv_safe(value) if isinstance(value, str) else value
