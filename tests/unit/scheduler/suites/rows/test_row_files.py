"""Files of rows: JSON lines, CSV and Parquet; what cannot be read is reported with its row."""

import gc
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from services.scheduler.suites.rows import parquet_process
from services.scheduler.suites.rows.csv_form import CsvForm
from services.scheduler.suites.rows.errors import LargeGroup, RowsMissing, UnreadableRow
from services.scheduler.suites.rows.file_rows import open_rows
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES, SourceRow

BOM = "\ufeff"


def rows_of(folder: Path, name: str, content: str | bytes) -> Iterator[SourceRow]:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return iter(open_rows(file)[0])


def problem_of(rows: Iterator[SourceRow]) -> str:
    with pytest.raises(UnreadableRow) as raised:
        list(rows)
    return str(raised.value)


def written(folder: Path, table: pa.Table, **options: object) -> Path:
    file = folder / "rows.parquet"
    parquet.write_table(table, file, **options)
    return file


TABLE = "n;f;b;t;gap;none\n1;1.5;true;x;1;NA\n-7; 2;FALSE;007a;;\n"


@pytest.mark.parametrize(
    ("form", "rows"),
    [
        (
            CsvForm(delimiter=";"),
            [("1", "1.5", "true", "x", "1", "NA"), ("-7", " 2", "FALSE", "007a", "", "")],
        ),
        (
            CsvForm(delimiter=";", infers_types=True),
            [(1, 1.5, True, "x", 1.0, None), (-7, 2.0, False, "007a", None, None)],
        ),
    ],
)
def test_columns_are_text_unless_their_types_are_inferred(
    tmp_path: Path, form: CsvForm, rows: list[tuple[object, ...]]
) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    found = list(open_rows(tmp_path / "a.csv", form)[0])
    assert [tuple(row.values()) for row in found] == rows
    assert [list(map(type, row.values())) for row in found] == [list(map(type, row)) for row in rows]


@pytest.mark.parametrize("cell", ["1" * 5000, "1" * 300_000 + "x", "1" * 300_000 + ".x", "-0"])
def test_cells_of_many_digits_are_read_at_once(tmp_path: Path, cell: str) -> None:
    (tmp_path / "a.csv").write_text(f"a\n{cell}\n")
    [row] = open_rows(tmp_path / "a.csv", CsvForm(infers_types=True))[0]
    assert row["a"] in (cell, 0)


def test_columns_may_be_named_instead_of_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n")
    without = list(open_rows(tmp_path / "a.tsv", CsvForm(("a", "b"), has_header=False))[0])
    assert without == [{"a": "x", "b": "y"}, {"a": "1", "b": "2"}]
    assert list(open_rows(tmp_path / "a.tsv", CsvForm(("a", "b")))[0]) == [{"a": "1", "b": "2"}]
    (tmp_path / "a.tsv").write_text("x\n")
    rows = open_rows(tmp_path / "a.tsv", CsvForm(("a", "b"), has_header=False))[0]
    assert problem_of(iter(rows)) == "row 1: it has 1 fields where the header names 2"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_the_revision_is_the_digest_of_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"a": 1}\n')
    digest = hashlib.sha256(b'{"a": 1}\n').hexdigest()
    assert open_rows(tmp_path / name)[1] == f"sha256:{digest}"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.xlsx").write_text("")
    with pytest.raises(
        RowsMissing, match=r"rows.xlsx is none of the files that are read: .jsonl, .json, .parquet, .csv"
    ):
        open_rows(tmp_path / "rows.xlsx")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"q;a\nx;y\n", "the columns of a.csv are separated by semicolons: separate them by commas"),
        ("a.csv", b'\n"q"\t"a"\n', "the columns of a.csv are separated by tabs: separate them by commas"),
        ("a.csv", b"PK\x03\x04" + b"\0" * 26 + b"xl/workbook.xml", "a.csv is an Excel workbook (xlsx)"),
        ("a.jsonl", b"\x1f\x8b\x08\0", "a.jsonl is compressed with gzip: unpack it"),
        ("a.jsonl", b"PAR1\x15\x04", "a.jsonl is a Parquet file: name it .parquet"),
        ("a.jsonl", "{}".encode("utf-16"), "a.jsonl is written in UTF-16: save it as UTF-8"),
    ],
)
def test_a_file_in_another_form_than_its_name_is_refused_by_its_form(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    with pytest.raises(RowsMissing) as refused:
        rows_of(tmp_path, name, content)
    assert str(refused.value).startswith(problem)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(OSError, match="not a regular file"):
        open_rows(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ('{"a": 1}\n\n  \r\n{"a": "é\u2028"}', [{"a": 1}, {"a": "é\u2028"}]),
        (BOM + '{"a": 1}\r\n', [{"a": 1}]),
        ("", []),
    ],
)
def test_json_lines_are_read(tmp_path: Path, content: str, rows: list[SourceRow]) -> None:
    assert list(rows_of(tmp_path, "a.jsonl", content)) == rows


@pytest.mark.parametrize(
    "line",
    [
        *(
            '{"a": 18446744073709551616}',
            '{"a": [-9223372036854775809, 1]}',
            '{"a": {"b": 18446744073709551616}}',
        ),
        *('{"a": 1E400, "b": NaN, "c": -Infinity}', '{"a": -0, "b": -0.0, "c": 1E2, "d": 0.1}'),
        *('{"a": "\\ud800"}', '{"a": "\\ud83d\\ude00\\u0000"}', '{"a": 1, "b": [], "a": "last"}'),
        *('{"a": [[1, 2.0], {"b": null}], "c": true}', ' \t{"a" : "x\\/"} \r', "{}"),
    ],
)
def test_values_are_those_of_json(tmp_path: Path, line: str) -> None:
    """The module `json` is the measure; a text of the values shows their types too."""
    assert repr(list(rows_of(tmp_path, "a.jsonl", line))) == repr([json.loads(line)])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": 1}\n{"a": "\xff"}', "row 2: not valid UTF-8 (byte 8 of the line)"),
        (b'{"a": "x\0y"}', "row 1: not valid JSON: Invalid control character"),
        (
            b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            "row 1: its lists and objects are nested in more",
        ),
        (b"[" * 101 + b"]" * 101, "row 1: its lists and objects are nested in more than 100 levels"),
        (b'{"a": ' + b"9" * 5000 + b"}", "row 1: not valid JSON: Exceeds the limit"),
        (b'{}\n"' + b"x" * 2 * MAX_ROW_BYTES, "row 2: the line has more than 4194304 bytes"),
        (b"{} {}", "row 1: not valid JSON: Extra data"),
    ],
)
def test_a_line_that_is_no_row_is_reported(tmp_path: Path, content: bytes, problem: str) -> None:
    assert problem_of(rows_of(tmp_path, "a.jsonl", content)).startswith(problem)


def test_row_has_at_most_100_levels(tmp_path: Path) -> None:
    read, deeper = (b'{"a":' * levels + b"1" + b"}" * levels for levels in (100, 101))
    assert len(list(rows_of(tmp_path, "a.jsonl", read))) == 1
    assert problem_of(rows_of(tmp_path, "a.jsonl", deeper)).endswith("nested in more than 100 levels")


def test_a_line_may_be_as_long_as_the_limit(tmp_path: Path) -> None:
    line = '{"a":"' + "x" * (MAX_ROW_BYTES - 8) + '"}\r\n'
    assert len(list(rows_of(tmp_path, "a.jsonl", line * 2))) == 2


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,x\n2,y\n", [{"a": "1", "b": "x"}, {"a": "2", "b": "y"}]),
        (BOM + "a,b\r\n1,x\r\n", [{"a": "1", "b": "x"}]),
        ('"a, c","b"\n"say ""hi""","two\nlines"', [{"a, c": 'say "hi"', "b": "two\nlines"}]),
        ("a,b\n\n,\n\n", [{"a": "", "b": ""}]),
        ("a\né\n", [{"a": "é"}]),
        ("a,b\n", []),
    ],
)
def test_csv_is_read_and_every_value_is_text(tmp_path: Path, content: str, rows: list[SourceRow]) -> None:
    assert list(rows_of(tmp_path, "a.csv", content)) == rows


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "a.csv has no header"),
        ("a,,b\n1,2,3\n", "the header of a.csv has a field without a name"),
        ("a,b,a\n1,2,3\n", "the header of a.csv names 'a' twice"),
        ('a,"b\n', "the header of a.csv cannot be read: not valid CSV: unexpected end of data"),
        ("x" * (MAX_ROW_BYTES + 1), "the header of a.csv cannot be read: it has more than 4194304 bytes"),
    ],
)
def test_a_csv_without_a_usable_header_is_reported_at_once(
    tmp_path: Path, content: str, problem: str
) -> None:
    with pytest.raises(RowsMissing) as raised:
        rows_of(tmp_path, "a.csv", content)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        (b"1,2\n1\n", "row 2: it has 1 fields where the header names 2"),
        (b"1,2,3\n", "row 1: it has 3 fields where the header names 2"),
        (b'1,"2\n', "row 1: not valid CSV: unexpected end of data"),
        (b'1,"2" x\n', "row 1: not valid CSV: ',' expected after '\"'"),
        (b"1,2\n\n1,\xff\n", "row 2: not valid UTF-8"),
        (b"1,a\0b\n", "row 1: it holds a NUL character"),
        (b"1," + b"x" * 2 * MAX_ROW_BYTES, "row 1: it has more than 4194304 bytes"),
        (b'1,"' + b"x" * 999 + b"\n" + (b"x" * 999 + b"\n") * 5000, "row 1: it has more than 4194304 bytes"),
    ],
)
def test_a_csv_row_that_is_unfit_is_given(tmp_path: Path, rest: bytes, problem: str) -> None:
    assert problem_of(rows_of(tmp_path, "a.csv", b"a,b\n" + rest)) == problem


def test_a_csv_field_may_be_large(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, "a.csv", "a,b\n1," + "x" * 3_000_000)
    assert len(str(row["b"])) == 3_000_000


def test_parquet_gives_nested_values_as_python_has_them(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": "é", "choices": ["a", "b"], "about": {"id": 1, "tags": []}, "day": date(2026, 1, 2)},
        {"text": None, "choices": [], "about": None, "day": None},
    ]
    kinds = {"price": [Decimal("1.50"), None], "raw": [b"\xff", b""], "score": [0.5, None]}
    table = pa.Table.from_pylist(rows)
    for name, values in kinds.items():
        table = table.append_column(name, pa.array(values))
    read = list(open_rows(written(tmp_path, table))[0])
    extra = [dict(zip(kinds, values, strict=True)) for values in zip(*kinds.values(), strict=True)]
    assert read == [{**row, **more} for row, more in zip(rows, extra, strict=True)]


def test_parquet_is_read_over_batches_and_row_groups(tmp_path: Path) -> None:
    table = pa.table({"number": list(range(1000))})
    rows = open_rows(written(tmp_path, table, row_group_size=150))[0]
    assert [row["number"] for row in rows] == list(range(1000))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1"])
def test_what_is_no_parquet_is_reported_at_once(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(RowsMissing, match=r"a\.parquet is not a readable Parquet file"):
        rows_of(tmp_path, "a.parquet", content)


def test_a_parquet_file_that_is_damaged_in_the_middle_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": ["x" * 50] * 1000}), compression="snappy", use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[10:200] = b"\xff" * 190
    file.write_bytes(content)
    assert problem_of(iter(open_rows(file)[0])).startswith("row 1: not valid Parquet")


def test_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(RowsMissing, match="names 'a' twice"):
        open_rows(written(tmp_path, table))


def test_parquet_that_would_have_to_be_held_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, pa.table({"a": ["x" * 1000] * 100}))
    monkeypatch.setattr(parquet_process, "MAX_GROUP_BYTES", 10)
    with pytest.raises(LargeGroup, match="a row group has more than 0 MiB"):
        parquet_process._check_groups(parquet.ParquetFile(file))


def test_parquet_rows_that_are_too_large_are_reported(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": ["x" * (MAX_ROW_BYTES + 1)] * 64}))
    assert problem_of(iter(open_rows(file)[0])).startswith("row 1: it has more than 4 MiB")


def test_list_that_is_packed_to_nothing_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    cell = pa.ListArray.from_arrays(pa.array([0, 40_000_000]), pa.nulls(40_000_000))
    file = written(tmp_path, pa.table({"a": cell}))
    assert file.stat().st_size < 10_000
    with pytest.raises(RowsMissing, match="a row group has more than 33554432 values in lists"):
        open_rows(file)


def test_rows_that_decode_to_more_than_the_process_may_hold_end_only_the_process(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int32()), ["x" * 30_000_000])
    file = written(tmp_path, pa.table({"a": texts}), store_schema=False)
    assert file.stat().st_size < 2_000_000
    assert "more memory" in problem_of(iter(open_rows(file)[0]))


def test_process_that_decodes_has_no_secrets_and_ends_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: Any) -> None:
            assert options["env"].keys() == {"PATH", "ARROW_DEFAULT_MEMORY_POOL"}
            super().__init__(command, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    rows = iter(open_rows(written(tmp_path, pa.table({"a": list(range(1000))})))[0])
    assert next(rows) == {"a": 0}
    del rows
    gc.collect()
    assert [process.poll() is not None for process in started] == [True]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("how", ["written to", "replaced", "removed"])
def test_a_file_that_changes_after_its_digest_was_taken_is_noticed(
    tmp_path: Path, suffix: str, how: str
) -> None:
    file = tmp_path / f"rows{suffix}"
    write(file, "first")
    rows = iter(open_rows(file)[0])
    if how == "removed":
        file.unlink()
    else:
        other = file if how == "written to" else tmp_path / "other"
        write(other, "other")
        os.utime(other, ns=(1, 1))
        other.replace(file)
    with pytest.raises(UnreadableRow, match=r"changed since its digest was taken|cannot be read again"):
        next(rows)


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    """No row of the changed file is given: only those that were read before it changed."""
    file = tmp_path / "rows.jsonl"
    write(file, "first")
    rows = iter(open_rows(file)[0])
    given = [next(rows)]
    with file.open("a") as more:
        more.write('{"a": "more"}\n')
    with pytest.raises(UnreadableRow, match="row 3: the file was changed"):
        given.extend(rows)
    assert given == [{"a": "first"}, {"a": "second"}]


def test_a_file_that_changes_while_it_is_read_is_noticed_before_its_next_part(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f'{{"a": "{number:0100}"}}\n' for number in range(10_000)))
    rows = iter(open_rows(file)[0])
    next(rows)
    with file.open("r+") as again:
        again.write('{"a": "other"}')
    with pytest.raises(UnreadableRow, match="the file was changed"):
        sum(1 for _ in rows)


def write(file: Path, value: str) -> None:
    if file.suffix == ".parquet" or (file.name == "other" and (file.parent / "rows.parquet").exists()):
        parquet.write_table(pa.table({"a": [value]}), file)
    else:
        file.write_text(f'{{"a": "{value}"}}\n{{"a": "second"}}\n')
