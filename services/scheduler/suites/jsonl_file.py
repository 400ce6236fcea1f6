"""A file of JSON lines: streamed row by row, and described (digest, number of rows) in one pass before."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.scheduler.suites.row_source import Row, UnreadableRow


@dataclass(frozen=True, slots=True)
class FileFacts:
    digest: str
    row_count: int


def describe_jsonl(file: Path) -> FileFacts:
    digest = hashlib.sha256()
    row_count = 0
    with file.open("rb") as lines:
        for line in lines:
            digest.update(line)
            row_count += bool(line.strip())
    return FileFacts(digest.hexdigest(), row_count)


def read_jsonl(file: Path) -> Iterator[Row]:
    """Empty lines are passed over; rows are counted from 1."""
    with file.open("rb") as lines:
        filled = (line for line in lines if line.strip())
        for number, line in enumerate(filled, start=1):
            yield _row(number, line)


def _row(number: int, line: bytes) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UnreadableRow(number, f"no valid JSON: {error}") from error
    if not isinstance(row, dict):
        raise UnreadableRow(number, "a JSON object is needed")
    return row
