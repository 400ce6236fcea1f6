"""Suites whose answers are code, or are scored by code: asked, executed in sandboxes, summed up."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proctor.v1 import outcome_pb2, run_pb2
from tests.e2e.harness.run_ends import all_outcomes, completed
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROLLOUTS = 3
# The model server says "The answer is <the word after KEY=>."; that text becomes a string of the program.
ROWS = [
    {"word": "right", "tests": "assert 'right' in said"},
    {"word": "wrong", "tests": "assert 'right' in said"},
    {"word": "broken", "tests": "this is no program"},
    {"word": "ends", "tests": "import os; os._exit(0)"},
]
TASK = """
task: spoken
version: "1"
dataset: {file: rows.jsonl}
output_type: generate_until
doc_to_text: "Say it. KEY={{word}}"
doc_to_target: "\\"\\"\\"\\n{{tests}}"
unsafe_code: true
code: {prefix: "said = \\"\\"\\""}
metric_list: [{metric: pass@1}]
metadata: {license: MIT, citation: own}
"""

MEASURED = """
task: measured
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "Say it. KEY={{word}}"
doc_to_target: "{{word}}"
process_results: !function utils.measured
metric_list:
  - {metric: has_word, aggregation: mean}
  - {metric: words, aggregation: !function utils.longest}
metadata: {license: MIT, citation: own}
"""
MEASURING = """
def measured(doc, results):
    text = results[0]
    return {"has_word": doc["word"] in text and doc["word"] != "wrong", "words": text.split()}


def longest(items):
    return max(len(word) for words in items for word in words)
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites") / "measured"
    folder.mkdir()
    (folder / "suite.yaml").write_text("suite: measured\ntasks: [measured]\n")
    (folder / "measured.yaml").write_text(MEASURED)
    (folder / "utils.py").write_text(MEASURING)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return folder


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suites") / "spoken"
    folder.mkdir()
    (folder / "suite.yaml").write_text("suite: spoken\ntasks: [spoken]\n")
    (folder / "spoken.yaml").write_text(TASK)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(suite: Path, measured: Path) -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(suites=(suite, measured))) as stack:
            yield stack


async def test_answers_are_executed_and_scored_by_their_tests(stack: StackHarness) -> None:
    order = run_pb2.RunOrder(project_id=1, suite="spoken", model="openai/fake", rollouts=ROLLOUTS)
    run_id = await completed(stack, order)
    outcomes = await all_outcomes(stack, run_id)
    assert len(outcomes) == len(ROWS) * ROLLOUTS
    assert {outcome.status for outcome in outcomes} == {outcome_pb2.OUTCOME_STATUS_SCORED}
    found = {(outcome.doc_id, outcome.prediction, outcome.scores["pass@1"]) for outcome in outcomes}
    assert found == {
        (0, "passed", 1.0),
        (1, "failed: AssertionError", 0.0),
        (2, "failed: SyntaxError: invalid syntax (<answer>, line 3)", 0.0),
        (3, "ended itself with code 0 before its tests ended", 0.0),
    }
    summary = await stack.client.summary(run_id)
    assert (summary.answered, summary.failed) == (len(outcomes), 0)
    figures = {metric.metric: metric.mean for metric in summary.tasks[0].metrics}
    assert figures["pass@1"] == pytest.approx(0.25)
    assert figures["pass@3"] == pytest.approx(0.25)


async def test_answers_are_scored_and_summed_up_by_code_of_the_task(stack: StackHarness) -> None:
    order = run_pb2.RunOrder(project_id=1, suite="measured", model="openai/fake", rollouts=ROLLOUTS)
    run_id = await completed(stack, order)
    outcomes = await all_outcomes(stack, run_id)
    assert {(outcome.doc_id, outcome.scores["has_word"]) for outcome in outcomes} == {
        (0, 1.0),
        (1, 0.0),
        (2, 1.0),
        (3, 1.0),
    }
    summary = await stack.client.summary(run_id)
    assert not summary.problems
    figures = {metric.metric: metric for metric in summary.tasks[0].metrics}
    assert list(figures) == ["has_word", "words"]
    assert figures["has_word"].mean == pytest.approx(0.75)
    # The longest words are "broken." and "answer".
    assert (figures["words"].mean, figures["words"].n) == (7.0, len(ROWS))
