"""Names, paths and sizes that a user's suite cannot have."""

import pytest

from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.format.yaml_suite_reader import read_document
from tests.fakes.suites.suite_documents import TASK, faults_of


@pytest.mark.parametrize("reader", ["text", "csv", "json", "parquet", "imagefolder"])
def test_a_way_to_read_files_of_the_server_is_no_data_set(reader: str) -> None:
    [(_, line, key, problem)] = faults_of(TASK.replace("org/colours", reader))
    assert (line, key) == (3, "dataset.id")
    assert problem == f"'{reader}' is not the name of a data set of the hub"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("num_fewshot", "101", "101 is greater than the maximum of 100"),
        ("num_fewshot", "1.0", "1.0 is not of type 'integer'"),
        ("doc_to_target", "1.0", "1.0 is not of type 'string', 'integer', 'array'"),
        ("doc_to_target", "[0, 1.0]", "1.0 is not of type 'integer'"),
        ("doc_to_target", "2147483648", "2147483648 is greater than the maximum of 2147483647"),
    ],
)
def test_numbers_are_whole_and_no_larger_than_a_message_can_hold(key: str, value: str, problem: str) -> None:
    kept = [line for line in TASK.splitlines() if not line.startswith(key)]
    assert [reported for *_, reported in faults_of("\n".join([*kept, f"{key}: {value}"]))] == [problem]


def test_a_text_of_more_tokens_than_any_engine_writes_is_refused() -> None:
    text = TASK.replace("multiple_choice", "generate_until").replace("{metric: acc}", "{metric: exact_match}")
    text = text.replace("doc_to_choice: [red, green]", "generation_kwargs: {max_gen_toks: 3000000000}")
    assert [(key, problem) for _, _, key, problem in faults_of(text)] == [
        ("generation_kwargs.max_gen_toks", "3000000000 is greater than the maximum of 1048576")
    ]


def test_names_are_short_and_end_where_they_seem_to() -> None:
    assert not faults_of(TASK.replace("task: colours", f"task: {'c' * 128}"))
    [(_, line, key, problem)] = faults_of(TASK.replace("task: colours", f"task: {'c' * 129}"))
    assert (line, key, problem) == (1, "task", "it has 129 characters, and may have 128")
    [(_, line, key, problem)] = faults_of(TASK.replace("task: colours", 'task: "colours\\n"'))
    assert (line, key) == (1, "task")
    assert "does not match" in problem


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("(", "missing ), unterminated subpattern"), ("(?:" * 3000 + ")" * 3000, "nested too deeply")],
)
def test_a_pattern_that_cannot_be_read_is_reported_with_the_reason(pattern: str, why: str) -> None:
    step = f"{{function: regex, regex_pattern: '{pattern}'}}"
    found = faults_of(f"{TASK}filter_list: [{{name: a, filter: [{step}]}}]\n")
    [(_, line, key, problem)] = found
    assert (line, key) == (9, "filter_list.0.filter.0.regex_pattern")
    assert "is not a regular expression: " in problem
    assert why in problem


@pytest.mark.parametrize("pattern", ["{e}", "x{e", "a{s<=}", "(?:a){e<=1,i<=2"])
def test_a_pattern_that_results_reads_is_accepted(pattern: str) -> None:
    step = f"{{function: regex, regex_pattern: '{pattern}'}}"
    assert not faults_of(f"{TASK}filter_list: [{{name: a, filter: [{step}]}}]\n")


@pytest.mark.parametrize("path", ["a" * 201, "é" * 101, "/".join(["folder"] * 200)])
def test_files_have_paths_that_a_file_system_takes(path: str) -> None:
    [fault] = read_document(SuiteDocument(TASK, files={path: b""})).faults
    assert fault.file == path
    assert fault.problem.endswith("is too long: a path has 1024 bytes at most, a name 200")


def test_a_file_is_no_folder() -> None:
    files = {"rows.jsonl": b"", "rows.jsonl/x.jsonl": b"{}"}
    [fault] = read_document(SuiteDocument(TASK, files=files)).faults
    assert (fault.file, fault.problem) == (
        "rows.jsonl/x.jsonl",
        "'rows.jsonl' is a file, so nothing can lie in it",
    )
