"""A fault is described so that its author can correct it, and only real faults are reported."""

from pathlib import Path

import pytest

from services.scheduler.suites.errors import InvalidSuiteFile
from tests.fakes.suites.suite_documents import TASK, faults_of

LM_EVAL = """\
task: words
dataset_path: org/words
test_split: test
doc_to_text: question
doc_to_target: answer
"""


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("[no, yes]", "YAML takes words such as no and on for truth values, so put it in quotes"),
        ("[1, 2]", "put the number in quotes"),
    ],
)
def test_what_yaml_takes_for_no_text_is_reported_with_the_way_out(written: str, why: str) -> None:
    [(_, line, key, problem)] = faults_of(TASK.replace("[red, green]", written))
    assert (line, key) == (6, "doc_to_choice.0")
    assert problem.endswith(f"is not of type 'string': {why}")


def test_of_a_filter_in_python_only_that_is_reported() -> None:
    step = "{function: !function own.Filter, group_select: 0, regex_pattern: a}"
    found = faults_of(f"{LM_EVAL}filter_list: [{{name: a, filter: [{step}]}}]\n")
    [(_, _, key, problem)] = found
    assert key == "filter_list.0.filter.0.function"
    assert problem == "!function own.Filter: own.py is not in the suite's folder"


def test_a_filter_that_takes_no_pattern_is_reported_so() -> None:
    step = "{function: lowercase, regex_pattern: a}"
    [(_, _, key, _)] = faults_of(f"{LM_EVAL}filter_list: [{{name: a, filter: [{step}]}}]\n")
    assert key == "filter_list.0.filter.0.regex_pattern"


def test_a_template_of_examples_is_reported_at_its_key() -> None:
    found = faults_of(f"{LM_EVAL}fewshot_config: {{sampler: first_n, doc_to_text: '{{{{ x'}}\n")
    [(key, problem)] = [(key, problem) for _, _, key, problem in found]
    assert key == "fewshot_config.doc_to_text"
    assert problem.startswith("template error: ")


def test_a_task_without_a_key_is_told_what_it_needs() -> None:
    found = faults_of("suite: nothing\ndescription: No task.\ntasks: [{}]\n")
    missing = {key.rpartition(".")[2] for _, _, key, problem in found if problem == "is missing"}
    assert {"task", "version", "dataset"} <= missing


@pytest.mark.parametrize(
    "name", ["0f0e0d0c-0b0a-4908-8706-050403020100", "0f0e0d0c0b0a49088706050403020100", f"ds_{'0' * 32}"]
)
def test_a_suite_has_no_name_of_a_run_or_an_upload(name: str) -> None:
    """Runs over it would be taken for judgings of the run, or stand on the leaderboard of the data set."""
    found = faults_of(f"suite: {name}\ndescription: Forged.\ntasks: [{{}}]\n")
    assert ("suite", f"{name} has the form of an id; choose another name") in {fault[2:] for fault in found}


def test_a_sentence_ends_once() -> None:
    assert (
        str(InvalidSuiteFile(Path("a.yaml"), "it is unsafe.")) == "Invalid suite file a.yaml: it is unsafe."
    )
