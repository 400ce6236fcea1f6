"""A file of JSON lines, row by row."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator

from services.scheduler.suites.rows.file_pin import PinnedFile
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES, Row, UnreadableRow


def read_jsonl(file: PinnedFile) -> Iterator[Row]:
    """Empty lines are passed over; rows are counted from 1. A line over the limit is not read to its end."""
    row = 0
    with file.open() as content:
        while line := content.readline(MAX_ROW_BYTES + 2):
            file.require_unchanged(content, row + 1)
            if line.strip():
                row += 1
                yield _row(row, line)
        file.require_unchanged(content, max(row, 1))


def _row(number: int, line: bytes) -> Row:
    if len(line.rstrip(b"\r\n")) > MAX_ROW_BYTES:
        raise UnreadableRow(number, f"the line has more than {MAX_ROW_BYTES} bytes")
    if number == 1:
        line = line.removeprefix(BOM_UTF8)
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise UnreadableRow(number, f"no valid UTF-8 (byte {error.start + 1} of the line)") from error
    except RecursionError as error:
        raise UnreadableRow(number, "its lists and objects are nested too deeply") from error
    except ValueError as error:
        raise UnreadableRow(number, f"no valid JSON: {error}") from error
    if not isinstance(row, dict):
        raise UnreadableRow(number, "a JSON object is needed")
    return row
