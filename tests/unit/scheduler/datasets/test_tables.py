"""CSV and Parquet files: the same rows as JSON lines, and faults by the number of the row."""

import io
import json
import random
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.scheduler.datasets.dataset import RowFacts
from services.scheduler.datasets.dataset_errors import DatasetTooLarge
from tests.fakes.checked_files import NO_LIMITS, CheckedFiles, batch_line, faults_of, jsonl, problem_of

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
    assert faults_of(b"prompt\nx\n" + b"\n" * 200_000, "rows.csv") == [(0, "")]


def test_unknown_column_is_named_with_those_there_are() -> None:
    problem = problem_of(b"prompt,colour\nx,red\n", "rows.csv")
    assert problem.startswith('The column "colour" is not known; a file may have body, custom_id, id,')


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


def test_long_texts_that_are_packed_small_do_not_fill_the_memory() -> None:
    heavy = parquet({"prompt": ["x" * 3_000_000] * 64, "id": [str(number) for number in range(64)]})
    assert len(heavy) < 1_000_000
    files = CheckedFiles()
    assert len(files.rows(files.check(heavy), 60)) == 4
    assert faults_of(parquet({"prompt": ["x" * 5_000_000] * 2})) == [(1, ""), (2, "")]
    with pytest.raises(DatasetTooLarge, match="more than 9000000 bytes unpacked"):
        CheckedFiles(limits=replace(NO_LIMITS, unpacked_bytes=9_000_000)).check(heavy)


def test_what_is_no_parquet_is_told() -> None:
    whole = parquet({"prompt": ["x"] * 100})
    for content in (b"PAR1 and nothing else", whole[:-20], whole[:200] + b"\xff" * 60 + whole[260:]):
        assert problem_of(content, "rows.parquet").startswith("It is no valid Parquet file: ")
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
