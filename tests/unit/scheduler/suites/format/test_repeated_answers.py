"""Task files of lm-evaluation-harness that repeat answers: a vote counts them, or the first one is asked."""

import json

import pytest

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


def test_repeated_answers_vote_and_elsewhere_the_first_counts() -> None:
    pipelines = """\
repeats: 8
filter_list:
  - name: first
    filter: [{function: lowercase}, {function: take_first}]
  - name: maj@8
    filter: [{function: majority_vote}, {function: take_first}]
  - name: maj@4
    filter: [{function: take_first_k, k: 4}, {function: majority_vote}, {function: take_first}]
"""
    task = task_of(WORDS + pipelines)
    assert task.repeats == 8
    steps = [
        [(step["function"], step.get("k")) for step in pipeline["filter"]]
        for pipeline in json.loads(task.scoring.filters_json)
    ]
    vote = ("majority_vote", None)
    assert steps == [
        [("lowercase", None), ("take_first", None), ("take_first_k", 1), vote],
        [vote],
        [("take_first_k", 4), vote],
    ]


@pytest.mark.parametrize("repeats", [2, 8])
def test_no_more_answers_are_taken_than_there_are(repeats: int) -> None:
    steps = "[{function: take_first_k, k: 8}, {function: majority_vote}]"
    text = WORDS + f"repeats: {repeats}\nfilter_list: [{{name: a, filter: {steps}}}]\n"
    found = [sentence for _, _, key, sentence in faults_of(text) if key == "filter_list.0.filter.0.k"]
    assert found == (["takes 8 answers of a row, and repeats says that there are 2"] if repeats == 2 else [])


@pytest.mark.parametrize("filters", ["null", "[{name: a, filter: [{function: take_first}]}]"])
def test_of_repeated_answers_the_first_counts_which_is_asked_alone(filters: str) -> None:
    task = task_of(WORDS + f"repeats: 8\nfilter_list: {filters}\n")
    assert task.name == "words"
