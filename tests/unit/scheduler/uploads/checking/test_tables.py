"""CSV and Parquet files: the same rows as JSON lines, and faults by the number of the row."""

import bz2
import gzip
import io
import json
import lzma
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.scheduler.suites.rows.parquet_process import value_bytes, value_count
from services.scheduler.uploads.checking.parquet_reader import read_parquet
from services.scheduler.uploads.dataset import RowFacts
from services.scheduler.uploads.errors import BrokenFile, DatasetTooLarge
from tests.fakes.storage.checked_files import (
    NO_LIMITS,
    CheckedFiles,
    batch_line,
    faults_of,
    jsonl,
    problem_of,
)

CHAT = [{"role": "user", "content": "Hi"}]


def parquet(columns: Mapping[str, object], rows_in_group: int = 1000) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written, row_group_size=rows_in_group)
    return written.getvalue()


def test_csv_rows_are_those_of_json_lines() -> None:
    files = CheckedFiles()
    content = (
        'id,prompt,target,metadata\r\na,"Two\nlines, ""quoted""",4,"{""x"": 1}"\r\nb,Grüße,,\r\n'.encode()
    )
    checked = files.check(content, "rows.csv")
    assert checked.facts == RowFacts(2, 1, (), "")
    first, second = files.rows(checked)
    assert (first.row_id, first.target, json.loads(first.metadata_json)) == ("a", "4", {"x": 1})
    assert json.loads(first.body_json) == {"prompt": 'Two\nlines, "quoted"'}
    assert (json.loads(second.body_json), second.target) == ({"prompt": "Grüße"}, None)


def test_messages_and_batch_requests_are_written_as_json_in_cells() -> None:
    files = CheckedFiles()
    messages = json.dumps(CHAT).replace('"', '""')
    checked = files.check(f'messages\n"{messages}"\n'.encode(), "rows.csv")
    assert json.loads(files.rows(checked)[0].body_json) == {"messages": CHAT}
    body = json.dumps(batch_line()["body"]).replace('"', '""')
    content = f'custom_id,method,url,body\nr0,POST,/v1/chat/completions,"{body}"\n'
    checked = files.check(content.encode(), "rows.csv")
    assert checked.facts == RowFacts(1, 0, ("m",), "/v1/chat/completions")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"prompt,id\nx,a\ny\nz,c,d\n", [(2, ""), (3, "")]),
        (b"prompt,metadata\nx,{\n", [(1, "metadata")]),
        (b'prompt\n"x"y\nfine\n', [(1, "")]),
        (b'prompt\nx\n"never closed\n', [(2, "")]),
        (b"prompt\nfine\n\xe9\nfine\n", [(2, "")]),
        (b"prompt,colour\nx,red\n", [(0, "")]),
        (b"prompt,prompt\nx,y\n", [(0, "")]),
        (b"prompt\n", [(0, "")]),
        (b"prompt,id\nx,a\n\ny,a\n", [(2, "id")]),
        (b"prompt\nfine\n" + b"x" * 5_000_000 + b"\nfine\n", [(2, "")]),
        (b"prompt\na\0b\n", [(1, "prompt")]),
    ],
)
def test_faults_of_csv_are_those_of_rows(content: bytes, fault: list[tuple[int, str]]) -> None:
    assert faults_of(content, "rows.csv") == fault


def test_blank_lines_of_csv_are_skipped_but_not_for_ever() -> None:
    assert faults_of(b"prompt\n\nx\n\n", "rows.csv") == []
    assert faults_of(b"\n\nprompt\nx\n", "rows.csv") == []
    assert faults_of(b"prompt\nx\n" + b"\n" * 200_000, "rows.csv") == [(0, "")]


def test_files_of_another_kind_are_reported_as_a_whole() -> None:
    for name in ("rows.csv", "rows.jsonl"):
        assert (
            problem_of("prompt\nx\n".encode("utf-16"), name) == "It is written in UTF-16: save it as UTF-8."
        )
    lines = b'{"prompt": "x"}\n["x"]\n'
    assert faults_of(lines) == [(2, "")]
    for array in (b'[{"prompt": "x"}, {"prompt": "y"}]', b'\xef\xbb\xbf\n[\n {"prompt": "x"}\n]\n'):
        assert problem_of(array).startswith("It is a JSON array. Write each object of it on a line")


@pytest.mark.parametrize(("sign", "signs"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
@pytest.mark.parametrize("quote", ["", '"'])
def test_columns_that_no_comma_separates_are_refused_by_their_separator(
    sign: str, signs: str, quote: str
) -> None:
    rows = [
        sign.join(f"{quote}{cell}{quote}" for cell in row) for row in (("prompt", "target"), ("a, b", "c"))
    ]
    other = " or give the format tsv" if signs == "tabs" else ""
    problem = f"Its columns are separated by {signs}. Separate them by commas{other}."
    for name in ("rows.csv", "rows.txt"):
        assert problem_of("\n".join(rows).encode(), name) == problem
    assert problem_of(b"\xef\xbb\xbf" + "\n".join(rows).encode(), "rows.csv") == problem


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"PK\x03\x04" + b"\0" * 40, "a zip archive or an Excel workbook (xlsx)"),
        (b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml", "an Excel workbook (xlsx)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 40, "an old Excel workbook (xls)"),
        (bz2.compress(b'{"prompt": "x"}'), "compressed with bzip2"),
        (lzma.compress(b'{"prompt": "x"}'), "compressed with xz"),
        (gzip.compress(gzip.compress(b'{"prompt": "x"}', mtime=0), mtime=0), "compressed with gzip"),
        ('{"prompt": "x"}\n'.encode("utf-16-le"), "written in UTF-16"),
        ('{"prompt": "x"}\n'.encode("utf-16-be"), "written in UTF-16"),
        ('{"prompt": "x"}\n'.encode("utf-32"), "written in UTF-32"),
        (b"<!DOCTYPE html><html>", "a page of HTML"),
    ],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.xlsx"])
def test_files_that_are_no_text_are_refused_by_their_form(content: bytes, form: str, name: str) -> None:
    assert problem_of(content, name).startswith(f"It is {form}")


def test_unknown_column_is_named_with_those_there_are() -> None:
    problem = problem_of(b"prompt,colour\nx,red\n", "rows.csv")
    assert problem.startswith('The column "colour" is not known; a file may have body, custom_id, id,')


def test_row_of_csv_is_bounded_over_all_its_lines() -> None:
    cell = b'"' + b"x" * 2_000_000 + b'\n"'
    content = b"prompt,target,id\nfine,1,a\n" + cell + b"," + cell + b"," + cell + b"\n"
    assert faults_of(content, "rows.csv") == [(0, "")]
    problem = problem_of(content, "rows.csv")
    assert problem == "The row from line 3 on has more than 4 MiB. Shorten it, or close its quotes."
    assert faults_of(b"prompt,target\n" + (cell + b"," + b"1\n") * 4, "rows.csv") == []


def test_csv_is_the_same_wherever_pieces_are_cut() -> None:
    draw = random.Random(3)
    content = b'\xef\xbb\xbfprompt,id\r\n"a\r\nb",1\r\nx\r\n"",3\r\n"q""q",4'
    wanted = CheckedFiles().check(content, "rows.csv")
    assert [(fault.line, fault.field) for fault in wanted.faults] == [(2, ""), (3, "")]
    for size in (1, 2, 3, *(draw.randrange(4, 40) for _ in range(5))):
        assert CheckedFiles().check(content, "rows.csv", piece_bytes=size) == wanted


def test_parquet_rows_may_be_nested_or_json() -> None:
    files = CheckedFiles()
    content = parquet(
        {
            "messages": [CHAT, [*CHAT, {"role": "assistant", "content": "Hello", "name": "x"}]],
            "target": [4, None],
            "metadata": ['{"x": 1}', None],
            "id": ["a", "b"],
        }
    )
    checked = files.check(content)
    assert checked.facts == RowFacts(2, 1, (), "")
    first, second = files.rows(checked)
    assert (first.target, json.loads(first.metadata_json)) == ("4", {"x": 1})
    assert json.loads(first.body_json) == {"messages": CHAT}
    assert json.loads(second.body_json)["messages"][1]["name"] == "x"


def test_parquet_faults_are_those_of_rows_over_all_groups() -> None:
    prompts = [f"question {number}" for number in range(700)]
    prompts[600] = ""
    assert faults_of(parquet({"prompt": prompts}, 300)) == [(601, "prompt")]
    assert faults_of(parquet({"prompt": ["x"], "colour": ["red"]})) == [(0, "")]
    assert faults_of(parquet({"prompt": pa.array([], pa.string())})) == [(0, "")]


def test_long_texts_that_are_compressed_small_do_not_fill_the_memory() -> None:
    heavy = parquet({"prompt": ["x" * 3_000_000] * 64, "id": [str(number) for number in range(64)]})
    assert len(heavy) < 1_000_000
    files = CheckedFiles()
    assert len(files.rows(files.check(heavy), 60)) == 4
    assert faults_of(parquet({"prompt": ["x" * 5_000_000] * 2})) == [(1, ""), (2, "")]
    with pytest.raises(DatasetTooLarge) as refused:
        CheckedFiles(limits=replace(NO_LIMITS, decompressed_bytes=9_000_000)).check(heavy)
    assert refused.value.facts == {"limit": 9000000, "unit": "bytes", "when": " decompressed"}


def test_many_values_that_are_compressed_to_nothing_do_not_fill_the_memory() -> None:
    flags = pa.struct([("x", pa.list_(pa.bool_()))])

    def of_lengths(*lengths: int) -> bytes:
        cells = [{"x": np.zeros(length, dtype=bool)} for length in lengths]
        return parquet({"prompt": ["x"] * len(lengths), "metadata": pa.array(cells, flags)})

    heavy = of_lengths(3, 2_000_000, 600_000, 600_000, 2_000_000)
    assert len(heavy) < 100_000
    checked = CheckedFiles().check(heavy)
    assert [fault.line for fault in checked.faults] == [2, 5]
    assert all("more than 1048576 values" in fault.problem for fault in checked.faults)
    problem = problem_of(of_lengths(40_000_000))
    assert problem == "A row group has more than 33554432 values in lists. Write smaller ones."


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
        pa.array([[1], [2, 3, 4]], pa.large_list(pa.int64())),
        pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
        pa.array([{"x": 1, "y": None}, None]),
    ],
)
def test_values_within_values_are_counted_also_in_slices(values: "pa.Array[Any]") -> None:
    batch = pa.record_batch({"x": values})
    assert value_count(batch) == 6
    assert value_count(batch.slice(0, 1)) + value_count(batch.slice(1)) == 6


def test_text_of_a_category_counts_in_each_row() -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 0], pa.int32()), ["abc", "defgh"])
    batch = pa.record_batch({"x": texts, "y": pa.array([[], [], ["ab"], [], []], pa.list_(pa.string()))})
    assert value_bytes(batch.slice(1)) - value_bytes(batch.slice(1, 3)) == 3
    files = CheckedFiles()
    content = parquet({"prompt": texts.take(pa.array([0, 1, 3, 4]))})
    kept = files.rows(files.check(content))
    assert [json.loads(row.body_json)["prompt"] for row in kept] == ["abc", "defgh", "abc", "abc"]


def test_impossible_dates_are_faults_of_the_file() -> None:
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    assert problem_of(parquet({"prompt": ["x"], "target": far})).startswith("A value cannot be read: ")


def test_numbers_that_are_missing_in_data_frames_are_left_out() -> None:
    files = CheckedFiles()
    nan = float("nan")
    content = parquet({"prompt": ["x", "y"], "target": [1.5, nan], "metadata": [{"a": nan}, {"a": 2.0}]})
    first, second = files.rows(files.check(content))
    assert (first.target, json.loads(first.metadata_json)) == ("1.5", {})
    assert (second.target, json.loads(second.metadata_json)) == (None, {"a": 2.0})


def test_whole_number_is_the_same_target_also_in_a_column_with_fractions() -> None:
    files = CheckedFiles()
    targets = [5.0, 2.5, -3.0, 1e6, 6.02e23]
    rows = files.rows(files.check(parquet({"prompt": ["x"] * 5, "target": targets})))
    assert [row.target for row in rows] == ["5", "2.5", "-3", "1000000", "6.02e+23"]


def test_what_begins_otherwise_or_is_too_long_is_refused_before_it_lies_on_disk() -> None:
    def endless(first: bytes) -> Iterator[bytes]:
        yield first
        pytest.fail("It read on.")

    for mark, sentence in ((b"nope", "does not begin with PAR1"), (b"PARE", "is encrypted")):
        with pytest.raises(BrokenFile, match=sentence):
            list(read_parquet(endless(mark)))
    compressed = gzip.compress(b"PAR1" + b"0" * 10_000)
    with pytest.raises(DatasetTooLarge) as refused:
        CheckedFiles(limits=replace(NO_LIMITS, uploaded_bytes=9_000)).check(compressed, "x.parquet.gz")
    assert refused.value.facts == {"limit": 9000, "unit": "bytes", "when": " decompressed"}


def test_what_is_no_parquet_is_reported() -> None:
    whole = parquet({"prompt": ["x"] * 100})
    for content in (b"PAR1 and nothing else", whole[:-20], whole[:200] + b"\xff" * 60 + whole[260:]):
        assert problem_of(content, "rows.parquet").startswith("It is not a valid Parquet file: ")
    assert problem_of(b"", "rows.parquet") == "The file is empty. Upload one with at least one line."


def test_tables_and_lines_give_the_same_rows() -> None:
    lines = [
        {"id": str(number), "prompt": f"question {number}", "target": str(number)} for number in range(50)
    ]
    columns = {name: [line[name] for line in lines] for name in lines[0]}
    cells = [",".join(lines[0]), *(",".join(line.values()) for line in lines)]
    kept = []
    for content, name in (
        (jsonl(lines), "x.jsonl"),
        ("\n".join(cells).encode(), "x.csv"),
        (parquet(columns), "x.parquet"),
    ):
        files = CheckedFiles()
        kept.append(files.rows(files.check(content, name)))
    assert kept[0] == kept[1] == kept[2]


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.jsonl", b'{"id": 7}\nno json at all\n\n{"prompt": "x"}', ['{"id":7}', "no json at all"]),
        ("a.csv", b'prompt,id\n"Two\nlines",a\n,b\nx\n', ['{"id":"b"}', "x"]),
        ("a.csv", b'prompt,metadata\n"Two\nlines",{oh}\n"x"y,\n', ["{oh}", '"x"y,\n']),
        ("a.csv.gz", gzip.compress(b"prompt,id\nx,a\n,b\n", mtime=0), ['{"id":"b"}']),
        ("a.parquet", parquet({"prompt": ["x", ""], "id": ["a", "b"]}), ['{"prompt":"","id":"b"}']),
        ("a.jsonl", b'{"id": "' + b"x" * 500, ['{"id": "' + "x" * 291 + "…"]),
    ],
)
def test_fault_quotes_its_line_whatever_lines_the_rows_above_it_have(
    name: str, content: bytes, texts: list[str]
) -> None:
    assert [fault.text for fault in CheckedFiles().check(content, name).faults] == texts
