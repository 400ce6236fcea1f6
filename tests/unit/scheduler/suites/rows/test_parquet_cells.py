"""Cells of Parquet files cross between processes as they are; one that was taken over gives no more."""

import math
import pickle
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyarrow import parquet

from services.common.processes.frames import head_of
from services.common.processes.plain_values import UnexpectedValue, to_bytes
from services.scheduler.suites.rows import parquet_rows
from services.scheduler.suites.rows.errors import UnreadableParquet, UnreadableValue
from services.scheduler.suites.rows.parquet_cells import rows_from_bytes, rows_to_bytes
from services.scheduler.suites.rows.parquet_process import COLUMNS, END, ERROR, PART
from services.scheduler.suites.rows.parquet_rows import open_parquet

BERLIN = ZoneInfo("Europe/Berlin")
CELLS = [
    *(None, True, 0, -(2**63), 2**64 - 1, 0.1, -0.0, 1e300, math.inf, -math.inf, "é\u2028\U0001f600", ""),
    *(b"", b"\xff\x00", [], {}, [1, [2.0, None]], {"a": {"": [b"x"]}}),
    *(date.min, date.max, date(2024, 2, 29), time.min, time.max, time(1, 2, 3, 4)),
    *map(datetime.fromisoformat, ("0001-01-01", "9999-12-31T23:59:59.999999", "2026-01-02T03:04:05.000006")),
    *(datetime(2026, 1, 2, tzinfo=UTC), datetime(1900, 1, 1, 1, 1, 1, 1, tzinfo=ZoneInfo("UTC"))),
    *(datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),),
    *(datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1)),
    *(datetime(1890, 1, 1, tzinfo=BERLIN), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=BERLIN)),
    *(timedelta.min, timedelta.max, timedelta(microseconds=-1)),
    *(Decimal("1.50"), Decimal("-0.00"), Decimal(10) ** 75, Decimal("1E-76")),
    *(UUID(int=0), UUID("12345678-1234-5678-1234-567812345678")),
    *([("a", 1), ("a", None)], [(date(2026, 1, 1), [("b", Decimal(2))])], {"pairs": [((), ("x",))]}),
]


def form_of(value: object) -> object:
    """All that a template can tell of it, with the types within."""
    if isinstance(value, list | tuple):
        return type(value), [form_of(each) for each in value]
    if isinstance(value, dict):
        return [(name, form_of(each)) for name, each in value.items()]
    return type(value), repr(value), str(value)


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_cell_comes_back_as_it_was(cell: object) -> None:
    [row] = rows_from_bytes(rows_to_bytes([{"cell": cell}]))
    assert form_of(row) == form_of({"cell": cell})


def test_no_number_comes_back_as_none() -> None:
    [row] = rows_from_bytes(rows_to_bytes([{"cell": math.nan}]))
    assert isinstance(row, dict)
    assert math.isnan(row["cell"])


def test_reason_in_the_place_of_a_row_comes_back() -> None:
    assert rows_from_bytes(rows_to_bytes([{"a": 1}, "4 MiB"])) == [{"a": 1}, "4 MiB"]


def test_what_is_no_cell_is_not_written() -> None:
    with pytest.raises(UnreadableValue, match=r"it is a builtins\.complex"):
        rows_to_bytes([{"a": [1j]}])


def extension(code: int, content: bytes) -> bytes:
    return b"\x91\x81\xa1a\xc8" + len(content).to_bytes(2, "big") + bytes([code]) + content


def nested_pairs(levels: int) -> bytes:
    content = b"\x90"
    for _ in range(levels):
        content = b"\x91\xc9" + len(content).to_bytes(4, "big") + b"\x08" + content
    return content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80",
        b"\x91\x01",
        b"\x91\x81\x01\x01",
        pickle.dumps([{"a": 1}]),
        *(extension(code, b"\xff" * 20) for code in range(10)),
        extension(1, b"2026-13-01"),
        extension(3, b"10000-01-01"),
        *(extension(4, to_bytes((zone, 0))) for zone in ("../../etc/passwd", "/etc/passwd", "Nowhere", "")),
        extension(4, to_bytes(("UTC", 2**63 - 1))),
        extension(5, to_bytes((10**10, 0, 0))),
        extension(8, b"\x91"),
        extension(8, nested_pairs(2000)),
    ],
)
def test_what_is_no_row_is_not_read(content: bytes) -> None:
    with pytest.raises(UnexpectedValue):
        rows_from_bytes(content)


TABLE = pa.table(
    {
        "zoned": pa.array([0, 3_600_000_000], pa.timestamp("us", "Europe/Berlin")),
        "offset": pa.array([0, 1], pa.timestamp("ms", "+05:30")),
        "local": pa.array([0, 1], pa.timestamp("s")),
        "nanoseconds": pa.array([0, 1000], pa.timestamp("ns", "UTC")),
        "time": pa.array([0, 1], pa.time64("us")),
        "day": pa.array([0, -1], pa.date32()),
        "duration": pa.array([0, -1], pa.duration("us")),
        "price": pa.array([Decimal("1.50"), None], pa.decimal256(76, 2)),
        "id": pa.array([bytes(16), None], pa.uuid()),
        "pairs": pa.array([[("a", [date(2026, 1, 1)])], []], pa.map_(pa.string(), pa.list_(pa.date32()))),
        "large": pa.array([2**64 - 1, None], pa.uint64()),
        "half": pa.array([0.5, math.inf], pa.float16()),
        "about": pa.array([{"b": b"\xff", "none": None}, None]),
        "kind": pa.array(["x", "y"]).dictionary_encode(),
    }
)


def test_rows_are_what_the_library_gives(tmp_path: Path) -> None:
    parquet.write_table(TABLE, tmp_path / "rows.parquet")
    with (tmp_path / "rows.parquet").open("rb") as content:
        read = list(open_parquet(content, 60).rows)
    # Here pandas gives nanoseconds a type of its own, and in the process it does not.
    index = TABLE.column_names.index("nanoseconds")
    plain = TABLE.set_column(index, "nanoseconds", TABLE["nanoseconds"].cast(pa.timestamp("us", "UTC")))
    assert form_of(read) == form_of(plain.to_pylist())


def test_time_that_python_cannot_have_is_reported(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": pa.array([1], pa.timestamp("ns"))}), tmp_path / "rows.parquet")
    with (tmp_path / "rows.parquet").open("rb") as content:
        rows = open_parquet(content, 60).rows
        with pytest.raises(UnreadableParquet, match="Nanosecond"):
            next(rows)


def frames(*parts: tuple[bytes, bytes]) -> bytes:
    return b"".join(head_of(kind, content) + content for kind, content in parts)


NAMES = (COLUMNS, to_bytes((["a"], 1)))


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (b"", "more memory or time"),
        (b"\x80\x04", "more memory or time"),
        (frames(NAMES, (PART, rows_to_bytes([{"a": 1}]))), "more memory or time"),
        (frames((PART, rows_to_bytes([{"a": 1}]))), "wrote no rows"),
        (frames((END, b"")), "wrote no rows"),
        (frames((COLUMNS, to_bytes(([1], 1)))), "wrote no rows"),
        (frames(NAMES, NAMES), "wrote no rows"),
        (frames(NAMES, (PART, pickle.dumps([{"a": 1}]))), "wrote no rows"),
        (frames(NAMES, (ERROR, b"\x01")), "wrote no rows"),
        (frames(NAMES, (ERROR, to_bytes(("SystemExit", "no file")))), "^no file$"),
    ],
)
def test_process_that_was_taken_over_gives_rows_or_no_rows(
    output: bytes, problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written = tmp_path / "output"
    written.write_bytes(output)

    def copying(*_: str) -> Sequence[str]:
        return ("cat", str(written))

    monkeypatch.setattr(parquet_rows, "module_command", copying)
    with tempfile.TemporaryFile() as content, pytest.raises(UnreadableParquet, match=problem):
        list(open_parquet(content, 60).rows)
