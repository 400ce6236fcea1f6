"""Tasks that ask with images or sound: one sentence names the key, and the rows where they can be counted."""

from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from services.scheduler.suites.errors import InvalidSuiteFile
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.rows import file_row_counts
from services.scheduler.suites.yaml_installed_suites import load_suites

TASK = """\
task: pictures
dataset_path: {kind}
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
"""
HUB = TASK.replace("dataset_kwargs: {{data_files: {{test: {file}}}}}\n", "").format(kind="org/pictures")
ROW = '{"question": "What?", "answer": "a", "image": "x"}\n'
TEXT_ONLY = ", and models are asked in text only: run it in lm-evaluation-harness, and import its log"


def sentences(text: str, **files: bytes) -> list[tuple[str, str]]:
    named = {name.replace("_", "."): content for name, content in files.items()}
    faults = read_document(SuiteDocument(text, "mine.yaml", named)).faults
    return [(fault.field, fault.problem) for fault in faults]


@pytest.mark.parametrize("value", ["image", "[image, other]", "!function utils.pictures", "{a: image}"])
@pytest.mark.parametrize(("key", "what"), [("doc_to_image", "images"), ("doc_to_audio", "sound")])
def test_a_key_of_any_form_is_named_in_one_sentence(key: str, what: str, value: str) -> None:
    files = {"rows_jsonl": ROW.encode() * 1200, "utils_py": b""}
    given = f"{TASK.format(kind='json', file='rows.jsonl')}{key}: {value}\n"
    counted = f"its rows (1,200 in rows.jsonl) are asked with {what}{TEXT_ONLY}"
    assert sentences(given, **files) == [(key, counted)]
    assert sentences(f"{HUB}{key}: {value}\n", **files) == [
        (key, f"its rows are asked with {what}{TEXT_ONLY}")
    ]


@pytest.mark.parametrize("value", ["[]", "''", "null", "false"])
def test_a_key_without_a_value_asks_in_text(value: str) -> None:
    text = f"{TASK.format(kind='json', file='rows.jsonl')}doc_to_image: {value}\n"
    assert sentences(text, rows_jsonl=ROW.encode()) == []


def of_parquet(count: int) -> bytes:
    content = BytesIO()
    # No decoder of images opens this: rows are counted by what the file says of itself.
    parquet.write_table(pa.table({"image": [b"no image"] * count, "question": ["?"] * count}), content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("kind", "name", "content", "counted"),
    [
        ("json", "rows_json", f"{ROW}\n  \n{ROW.strip()}".encode(), " (2 in rows.json)"),
        ("csv", "rows_csv", b'question,image\n"one\nand more",x\ntwo,y\n\n', " (2 in rows.csv)"),
        ("csv", "rows_tsv", b"question\timage\n", " (0 in rows.tsv)"),
        ("csv", "rows_csv", b"question,image\n\xff,x\n", ""),
        ("parquet", "rows_parquet", of_parquet(3000), " (3,000 in rows.parquet)"),
        ("parquet", "rows_parquet", b"PAR1 is no more than its begin", ""),
    ],
)
def test_rows_are_counted_in_files_of_each_form(kind: str, name: str, content: bytes, counted: str) -> None:
    text = TASK.format(kind=kind, file=name.replace("_", ".")) + "doc_to_image: image\n"
    assert sentences(text, **{name: content}) == [
        ("doc_to_image", f"its rows{counted} are asked with images{TEXT_ONLY}")
    ]


@pytest.mark.parametrize("options", ["sep: ';;'", "sep: 3", "sep: [a]", "column_names: [1]", "header: x"])
def test_other_faults_of_the_task_are_reported_beside_it(options: str) -> None:
    data = f"dataset_kwargs: {{data_files: {{test: rows.csv}}, {options}}}\n"
    text = TASK.format(kind="csv", file="rows.csv").replace(
        "dataset_kwargs: {data_files: {test: rows.csv}}\n", data
    )
    found = sentences(f"{text}doc_to_image: image\n", rows_csv=b"question,image\na,b\n")
    assert [key.startswith("dataset") for key, _ in found] == [True, False]
    assert "images, and models are asked in text only" in dict(found)["doc_to_image"]


def test_rows_of_a_file_that_is_not_there_or_too_large_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = TASK.format(kind="json", file="rows.jsonl") + "doc_to_image: image\n"
    monkeypatch.setattr(file_row_counts, "MAX_COUNTED_BYTES", len(ROW))
    problem = f"its rows are asked with images{TEXT_ONLY}"
    assert ("doc_to_image", problem) in sentences(text)
    assert sentences(text, rows_jsonl=ROW.encode() * 2) == [("doc_to_image", problem)]


@pytest.mark.parametrize(("kind", "name"), [("json", "rows.jsonl"), ("parquet", "rows.parquet")])
def test_an_installed_suite_says_it_in_lists(tmp_path: Path, kind: str, name: str) -> None:
    content = {"rows.jsonl": ROW.encode() * 7, "rows.parquet": of_parquet(7)}[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "pictures.yaml").write_text(TASK.format(kind=kind, file=name) + "doc_to_image: image\n")
    with pytest.raises(
        InvalidSuiteFile, match=rf"doc_to_image.*its rows \(7 in {name}\) are asked with images"
    ):
        load_suites(tmp_path).suite("pictures")
