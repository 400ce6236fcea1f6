"""A row of a data set as a model would be asked, and the line of JSON that it is kept as."""

from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """`row` counts from 0. `body_json` is the body of a request to the chat or completions endpoint."""

    row: int
    row_id: str
    body_json: bytes
    target: str | None = None
    metadata_json: bytes = b""

    @property
    def size_bytes(self) -> int:
        texts = len(self.row_id) + len(self.target or "")
        return len(self.body_json) + len(self.metadata_json) + texts


def row_from_line(row: int, line: bytes) -> DatasetRow:
    fields = orjson.loads(line)
    metadata = fields.get("metadata")
    return DatasetRow(
        row=row,
        row_id=fields["id"],
        body_json=orjson.dumps(fields["body"]),
        target=fields.get("target"),
        metadata_json=b"" if metadata is None else orjson.dumps(metadata),
    )
