"""Which rows of an archived part are read."""

from datetime import UTC, datetime

import pyarrow as pa

from services.results.archives.archive import Selection
from services.results.archives.parquet_outcomes import SCHEMA, read_parquet, write_parquet


def stored(sample: int) -> dict[str, object]:
    """A row with the smallest value in each column."""
    values = {field.name: _smallest(field) for field in SCHEMA}
    return {**values, "sample": sample, "status": "scored", "failure_class": None}


def _smallest(field: pa.Field) -> object:
    if pa.types.is_timestamp(field.type):
        return datetime(2026, 1, 1, tzinfo=UTC)
    return "" if pa.types.is_string(field.type) else False if pa.types.is_boolean(field.type) else 0


def test_a_group_around_the_wanted_rows_may_have_none_of_them() -> None:
    content = write_parquet("run", [stored(sample) for sample in (0, 1, 9)])
    for after, samples in ((0, [1, 9]), (1, [9]), (9, [])):
        read = [row[1] for row, _ in read_parquet(content, "run", Selection(after=(after, 0)))]
        assert read == samples
    assert not list(read_parquet(content, "run", Selection(keys={(5, 0)})))
