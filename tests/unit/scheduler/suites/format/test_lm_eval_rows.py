"""Where the rows of tasks of lm-evaluation-harness come from."""

import pytest

from services.scheduler.suites.rows.csv_form import CsvForm
from services.scheduler.suites.suite import TaskDefinition
from tests.fakes.suites.suite_documents import faults_of, suite_of

WORDS = """\
task: words
dataset_path: org/words
test_split: test
doc_to_text: "Say {{word}}:"
doc_to_target: "{{word}}"
"""


def task_of(text: str) -> TaskDefinition:
    [task] = suite_of(text).tasks
    return task


def test_rows_may_come_from_files_that_were_sent_along() -> None:
    text = (
        WORDS.replace("org/words", "json") + "dataset_kwargs: {data_files: {test: a.jsonl, train: b.jsonl}}\n"
    )
    [task] = suite_of(text + "training_split: train\n", a_jsonl="{}", b_jsonl="{}").tasks
    assert task.rows.file is not None
    assert task.fewshot_rows is not None
    assert (task.rows.file.name, str(task.fewshot_rows.file)) == ("a.jsonl", "b.jsonl")


def test_files_of_a_hub_data_set_have_the_rows_of_its_splits() -> None:
    files = "{test: [a/1.csv, a/2.csv], train: b.csv}"
    options = f"{{streaming: true, data_files: {files}, column_names: [w, colour], header: null}}"
    task = task_of(f"{WORDS}training_split: train\ndataset_kwargs: {options}\n")
    assert task.rows.data_files == ("a/1.csv", "a/2.csv")
    assert task.rows.csv == CsvForm(("w", "colour"), has_header=False, infers_types=True)
    assert task.fewshot_rows is not None
    assert (task.fewshot_rows.data_files, task.fewshot_rows.split) == (("b.csv",), "train")
    assert str(task.rows) == "org/words (split 'test', of a/1.csv, a/2.csv)"


def test_a_file_by_its_address_on_the_hub_is_one_of_its_data_set() -> None:
    files = "{test: hf://datasets/org/sums@v2/data/one.jsonl}"
    task = task_of(WORDS.replace("org/words", "json") + f"dataset_kwargs: {{data_files: {files}}}\n")
    assert (task.rows.hub_id, task.rows.revision) == ("org/sums", "v2")
    assert task.rows.data_files == ("data/one.jsonl",)


@pytest.mark.parametrize(
    ("path", "files", "problem"),
    [
        ("org/words", "{test: ../x.jsonl}", "'../x.jsonl' is no path of a file in the data set"),
        ("org/words", "{test: /etc/passwd}", "'/etc/passwd' is no path of a file in the data set"),
        ("org/words", "{test: 'https://x.org/a.csv'}", "is no path of a file in the data set"),
        ("org/words", "{train: a.csv}", "there is no file for the split test"),
        ("json", "{test: 'https://x.org/a.json'}", "or of one data set as hf://datasets/owner/name/path"),
        ("json", "{test: 'hf://datasets/a/b/c', x: 'hf://datasets/a/d/c'}", "or of one data set as hf://"),
    ],
)
def test_files_elsewhere_are_refused(path: str, files: str, problem: str) -> None:
    text = WORDS.replace("org/words", path) + f"dataset_kwargs: {{data_files: {files}}}\n"
    found = faults_of(text)
    assert any(problem in sentence for *_, sentence in found), found


def test_a_revision_pins_the_rows() -> None:
    options = "dataset_kwargs: {trust_remote_code: true, revision: abc}\n"
    assert task_of(WORDS + options).rows.revision == "abc"
