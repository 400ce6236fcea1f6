"""A suite whose answers vote says how many rollouts its runs have."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.e2e.harness.run_ends import all_outcomes, completed
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The model server says "The answer is <the word after KEY=>."
WORDS = ["right", "wrong"]
TASK = """
task: voted
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
description: "Of {{word}}. "
doc_to_text: "Say it. KEY={{word}}"
doc_to_target: 1
repeats: 3
filter_list:
  - name: first
    filter:
      - {function: regex, regex_pattern: "answer is (.*)\\\\."}
      - {function: map, mapping_dict: {right: 1, wrong: 0}}
      - {function: take_first}
  - name: maj@2
    filter:
      - {function: take_first_k, k: 2}
      - {function: regex, regex_pattern: "answer is (.*)\\\\."}
      - {function: map, mapping_dict: {right: 1}, default_value: 0}
      - {function: majority_vote}
      - {function: take_first}
metric_list: [{metric: exact_match}]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StackHarness]:
    folder: Path = tmp_path_factory.mktemp("suites") / "voted"
    folder.mkdir()
    (folder / "suite.yaml").write_text("include: voted.yaml\n")
    (folder / "voted.yaml").write_text(TASK)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps({'word': word})}\n" for word in WORDS))
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(suites=(folder,))) as stack:
            yield stack


async def test_a_run_asks_as_often_as_its_suite_says(stack: StackHarness) -> None:
    run_id = await completed(stack, run_pb2.RunOrder(project_id=1, suite="voted", model="openai/fake"))
    assert len(await all_outcomes(stack, run_id)) == 3 * len(WORDS)
    [task] = (await stack.client.summary(run_id)).tasks
    assert {figure.metric: (figure.mean, figure.n) for figure in task.metrics} == {
        "exact_match,first": (0.5, 2),
        "exact_match,maj@2": (0.5, 2),
    }
