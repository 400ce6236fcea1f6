"""GLUE through the whole stack against lm-evaluation-harness: real rows, and a model that is a hash.

The fake server gives the log-probabilities of the golden file's model by echo, as a completions server does.
"""

import hashlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from tests.e2e.run_ends import all_outcomes, completed
from tests.fakes.state_dir import temporary_state_dir
from tests.starter_model import REPOSITORY
from tests.whole_stack import IMPATIENT, MODEL, StackOrder, WholeStack, whole_stack

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not {"PROCTOR_DATA_DIR", "PROCTOR_REFERENCE_DIR"} <= os.environ.keys(),
        reason="PROCTOR_DATA_DIR and PROCTOR_REFERENCE_DIR are not set: no real rows to compare over",
    ),
]

TASKS = ("cola", "sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "wnli")
ROWS = 30
# Two bootstraps of 1,000 resamples differ by some per cent.
BOOTSTRAP_TOLERANCE = 0.12
BOOTSTRAPPED = {"mcc", "f1"}


class Examined:
    """What the stack recorded and summed up, by task."""

    def __init__(self, outcomes: list[outcome_pb2.RecordedOutcome], summary: summary_pb2.RunSummary) -> None:
        self.outcomes = {task: [item for item in outcomes if item.task == task] for task in TASKS}
        self.tasks = {task.task: task for task in summary.tasks}


def golden() -> dict[str, Any]:
    path = Path(os.environ["PROCTOR_REFERENCE_DIR"]) / "lm_eval" / "golden_0shot.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    return {task: whole[task] for task in TASKS}


def continuations() -> list[str]:
    docs = (doc for task in golden().values() for doc in task["docs"])
    return sorted({continuation for doc in docs for _, continuation in doc["arguments"]})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def examined() -> AsyncIterator[Examined]:
    environment = {**IMPATIENT, "PROCTOR_DATA_DIR": os.environ["PROCTOR_DATA_DIR"]}
    order = StackOrder(suites=(REPOSITORY / "suites" / "glue",), environment=environment)
    with temporary_state_dir() as state_dir:
        async with whole_stack(state_dir.parent, order) as standing:
            yield await examine(standing)


async def examine(standing: WholeStack) -> Examined:
    await standing.model_server.control(continuations=continuations())
    order = run_pb2.RunOrder(project_id=1, suite="glue", model=MODEL, limit=ROWS)
    run_id = await completed(standing, order)
    return Examined(await all_outcomes(standing, run_id), await standing.client.get_summary(run_id))


@pytest.mark.parametrize("task", TASKS)
async def test_prompts_continuations_and_log_likelihoods_are_the_golden_ones(
    examined: Examined, task: str
) -> None:
    for item, doc in zip(examined.outcomes[task], golden()[task]["docs"], strict=True):
        assert item.doc_id == doc["doc_id"]
        assert [[item.prompt, choice] for choice in item.choices] == doc["arguments"]
        scores = [choice.logprob for choice in item.outcome.answer.choices]
        assert scores == pytest.approx([hash_logprob(*pair) for pair in doc["arguments"]], abs=1e-9)


def hash_logprob(context: str, continuation: str) -> float:
    """As the golden file says of its model."""
    return -(int(hashlib.sha256(f"{context}\0{continuation}".encode()).hexdigest(), 16) % 1000) / 100


@pytest.mark.parametrize("task", TASKS)
async def test_scores_of_each_sample_are_the_golden_ones(examined: Examined, task: str) -> None:
    for item, doc in zip(examined.outcomes[task], golden()[task]["docs"], strict=True):
        likeliest = max(range(len(item.choices)), key=lambda index: scores_of(item)[index])
        assert item.prediction == item.choices[likeliest].strip()
        assert item.target == item.choices[doc["target"]].strip()
        for metric, value in item.scores.items():
            if metric in doc:
                assert value == doc[metric]


def scores_of(item: outcome_pb2.RecordedOutcome) -> list[float]:
    return [choice.logprob for choice in item.outcome.answer.choices]


@pytest.mark.parametrize("task", TASKS)
async def test_figures_are_the_golden_ones(examined: Examined, task: str) -> None:
    results = golden()[task]["results"]
    summary = examined.tasks[task]
    compared = [figure for figure in summary.metrics if f"{figure.metric},none" in results]
    assert compared
    for figure in compared:
        tolerance = BOOTSTRAP_TOLERANCE if figure.metric in BOOTSTRAPPED else 0.0
        assert figure.n == ROWS
        assert figure.mean == pytest.approx(results[f"{figure.metric},none"], abs=1e-9)
        stderr = results[f"{figure.metric}_stderr,none"]
        assert figure.stderr == pytest.approx(stderr, rel=tolerance, abs=1e-9)


async def test_rows_that_stand_in_are_named(examined: Examined) -> None:
    """qqp's are of its training split, as the mirror says."""
    assert [task for task in TASKS if examined.tasks[task].is_stand_in] == ["qqp"]
