"""Columns with names of their own become rows by a mapping, and a preview proposes one."""

import gzip
import io

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proctor.values.uploads.column_mapping import ColumnMapping, mapping_problem, proposed_mapping
from services.scheduler.uploads.checking.check_file import CheckedFile
from services.scheduler.uploads.checking.parquet_reader import read_parquet
from services.scheduler.uploads.checking.preview_file import PreviewCheck, PreviewedFile, preview_file
from services.scheduler.uploads.dataset import DatasetFormat, DatasetRow
from tests.fakes.storage.checked_files import CheckedFiles

QUESTIONS = b'no,question,answer\n7,"1 + 1, or?",2\n8,2 + 2,\n'
MAPPING = ColumnMapping("Q: {{ question }}\nA:", "answer", "no")


def checked(name: str, content: bytes, mapping: ColumnMapping) -> tuple[CheckedFile, list[DatasetRow]]:
    files = CheckedFiles()
    result = files.check(content, name, mapping=mapping)
    return result, files.rows(result) if result.facts else []


def prompt_of(row: DatasetRow) -> str:
    return str(orjson.loads(row.body_json)["prompt"])


def previewed(name: str, content: bytes, mapping: ColumnMapping | None = None, **more: bool) -> PreviewedFile:
    check = PreviewCheck(name=name, format=None, mapping=mapping, is_whole=more.get("is_whole", True))
    return preview_file(check, [content], read_parquet)


def test_a_mapping_makes_prompts_targets_ids_and_metadata() -> None:
    result, rows = checked("a.csv", b"no,question,answer,level\n7,1 + 1?,2,easy\n8,2 + 2?,,\n", MAPPING)
    assert result.faults == ()
    assert [(row.row_id, prompt_of(row), row.target, row.metadata_json) for row in rows] == [
        ("7", "Q: 1 + 1?\nA:", "2", b'{"level":"easy"}'),
        ("8", "Q: 2 + 2?\nA:", None, b""),
    ]


def test_tabs_separate_columns_and_quotes_are_characters() -> None:
    content = b'no\tquestion\tanswer\n1\tthe "red" one, "or\t"blue"\n'
    result, [row] = checked("a.tsv", content, MAPPING)
    assert result.format is DatasetFormat.TSV
    assert (prompt_of(row), row.target) == ('Q: the "red" one, "or\nA:', '"blue"')


def test_parts_of_objects_and_lists_are_columns() -> None:
    line = {"qa": {"q": "Who?", "answers": [{"text": "Ann"}]}, "score": 3.0, "is_new": True}
    mapping = ColumnMapping("{{qa.q}} {{score}} {{is_new}} {{qa.answers}}", "qa.answers.0.text")
    _, [row] = checked("a.jsonl", orjson.dumps(line), mapping)
    assert (prompt_of(row), row.target) == ('Who? 3 true [{"text":"Ann"}]', "Ann")


def test_words_of_a_cell_are_no_template() -> None:
    _, [row] = checked("a.csv", b"question,answer\n{{answer}},secret\n", ColumnMapping("{{question}}"))
    assert prompt_of(row) == "{{answer}}"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"q,a\n1,2\n", 'The file has no column "question"; it has "q", "a".'),
        ("a.csv", b"question,question\n1,2\n", "Two columns have the same name. Rename one of them."),
        ("a.jsonl", b'{"question": "x", "no": 1}\n', 'The row has no "answer", which the mapping names.'),
        ("a.jsonl", b"[1]", "It is a JSON array. Write each object of it on a line of its own."),
        (
            "a.jsonl",
            b'{"question": "x", "no": 1, "answer": ["y"]}\n',
            '"answer" is a list: name a part of it, as answer.0 or answer.text.',
        ),
    ],
)
def test_faults_say_what_the_mapping_misses(name: str, content: bytes, problem: str) -> None:
    result, _ = checked(name, content, MAPPING)
    assert [fault.problem for fault in result.faults] == [problem]


def test_an_empty_prompt_is_a_fault() -> None:
    result, _ = checked("a.csv", b"question,answer\n ,2\n", ColumnMapping("{{question}}"))
    assert [fault.problem for fault in result.faults] == ["The prompt of this row is empty."]


def test_the_digest_covers_the_mapping() -> None:
    first, second = (
        checked("a.csv", QUESTIONS, mapping)[0]
        for mapping in (ColumnMapping("{{question}}"), ColumnMapping("{{question}}", "answer"))
    )
    assert first.digest != second.digest


def test_no_file_without_a_mapping_has_the_digest_of_one_with_it() -> None:
    mapping = ColumnMapping("{{prompt}}", "target", "id")
    rows = b'{"id": "1", "prompt": "p", "target": "t"}\n'
    mapped, _ = checked("a.jsonl", rows, mapping)
    row_and_rows = CheckedFiles().check(mapping.line().removeprefix(b"\0") + rows)
    assert row_and_rows.facts is not None
    assert row_and_rows.digest != mapped.digest
    assert CheckedFiles().check(mapping.line() + rows).facts is None


def test_a_prompt_that_repeats_a_long_cell_is_a_fault_before_it_fills_memory() -> None:
    content = b"question,answer\n%b,1\n" % (b"x" * 4_000_000)
    result, _ = checked("a.csv", content, ColumnMapping("{{question}}" * 1600))
    assert [fault.problem for fault in result.faults] == ["The prompt of this row has more than 4 MiB."]


def test_blanks_around_the_names_of_columns_are_none_of_theirs() -> None:
    shown = previewed("a.csv", b"id, question , answer\n1,2 + 2?,4\n")
    assert shown.mapping == ColumnMapping("{{question}}", "answer", "id")
    assert [orjson.loads(row)["body"]["prompt"] for row in shown.rows] == ["2 + 2?"]


def test_a_preview_reads_no_more_of_a_bomb_than_its_rows_may_have() -> None:
    shown = previewed("a.csv.gz", gzip.compress(b"question\n" + b"x" * 2**26), is_whole=False)
    assert [fault.problem for fault in shown.faults] == ["The row has more than 4 MiB. Shorten it."]


def test_usual_names_are_proposed_and_not_applied_by_an_upload() -> None:
    shown = previewed("a.csv", QUESTIONS)
    assert (shown.columns, shown.is_proposed) == (("no", "question", "answer"), True)
    assert shown.mapping == ColumnMapping("{{question}}", "answer")
    assert [orjson.loads(row)["body"]["prompt"] for row in shown.rows] == ["1 + 1, or?", "2 + 2"]
    assert previewed("a.jsonl", b'{"prompt": "x"}\n').mapping is None


@pytest.mark.parametrize(
    ("columns", "mapping"),
    [
        (("id", "context", "question", "answer"), ("{{context}}\n\n{{question}}", "answer", "id")),
        (("instruction", "input", "output"), ("{{instruction}}\n\n{{input}}", "output", "")),
        (("Text", "Label"), ("{{Text}}", "Label", "")),
        (("Question", "Best Answer"), ("{{Question}}", "Best Answer", "")),
        (("a", "b"), None),
    ],
)
def test_proposals(columns: tuple[str, ...], mapping: tuple[str, str, str] | None) -> None:
    assert proposed_mapping(columns) == (ColumnMapping(*mapping) if mapping else None)


def test_a_preview_of_the_beginning_leaves_out_what_is_cut_off() -> None:
    content = b"question,answer\n" + b"".join(b"q%d,a%d\n" % (number, number) for number in range(9))
    assert len(previewed("a.csv", content, is_whole=False).rows) == 5
    assert [orjson.loads(row)["target"] for row in previewed("a.csv", content[:24], is_whole=False).rows] == [
        "a0"
    ]
    packed = gzip.compress(content * 2000)[:200]
    assert len(previewed("a.csv.gz", packed, is_whole=False).rows) == 5


def test_a_preview_names_faults_beside_its_rows() -> None:
    assert [fault.problem[:34] for fault in previewed("a.csv", b"a,b\n1,2\n").faults] == [
        "No column has the name of a prompt"
    ]
    shown = previewed("a.csv", b"question,answer\n,1\nx,2\n", ColumnMapping("{{question}}", "answer"))
    assert [(fault.line, fault.field) for fault in shown.faults] == [(1, "question")]
    assert len(shown.rows) == 1


def test_a_whole_parquet_file_has_a_preview_and_the_beginning_of_one_has_none() -> None:
    table = pa.table({"question": [f"{number}?" for number in range(9)], "answer": list(range(9))})
    written = io.BytesIO()
    pq.write_table(table, written)
    shown = previewed("a.parquet", written.getvalue())
    assert (shown.columns, shown.is_proposed, shown.faults) == (("question", "answer"), True, ())
    assert [orjson.loads(row)["target"] for row in shown.rows] == ["0", "1", "2", "3", "4"]
    [fault] = previewed("a.parquet", written.getvalue()[:-9], is_whole=False).faults
    assert fault.problem.startswith("A Parquet file has its index at its end")
    assert previewed("a.parquet", b"PAR1" + bytes(50)).faults[0].problem.startswith("It is not a valid")


@pytest.mark.parametrize(
    "mapping",
    [
        *(ColumnMapping("no column"), ColumnMapping("{{ }}"), ColumnMapping("{{a}}" * 9999)),
        ColumnMapping("\0{{a}}"),
    ],
)
def test_mappings_that_cannot_be_used_are_refused(mapping: ColumnMapping) -> None:
    problem = mapping_problem(mapping)
    assert problem is not None
    assert problem.field == "mapping.prompt"
