"""Whole suites through the whole stack against lm-evaluation-harness: real rows, and a model that is a hash.

The fake server gives the log-probabilities of the golden file's model by echo, as a completions server does.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
import pytest_asyncio

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from proctor.values.scoring import benchmark_group
from tests.e2e.harness.run_ends import all_outcomes, completed
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import MODEL, SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import REPOSITORY
from tests.reference.golden_reference import (
    GOLDEN_FILES,
    GOLDEN_TASK_NAMES,
    GOLDEN_TASKS,
    GoldenTask,
    golden_file,
    hash_logprob,
)

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not {"PROCTOR_DATA_DIR", "PROCTOR_REFERENCE_DIR"} <= os.environ.keys(),
        reason="PROCTOR_DATA_DIR and PROCTOR_REFERENCE_DIR are not set: no real rows to compare over",
    ),
]

GOLDEN = GOLDEN_FILES[0]
# Two bootstraps of 1,000 resamples differ by some per cent.
BOOTSTRAP_TOLERANCE = 0.12
BOOTSTRAPPED = {"mcc", "f1"}

# Tasks without a golden file whose rows the mirror has, with the metrics of their figures.
OTHER_TASKS = {
    "glue": {"stsb": ["pearson", "spearman"], "mnli_mismatch": ["acc"]},
    "superglue": {"record": ["squad_em", "squad_f1"]},
    "multirc_corrected": {"multirc_corrected": ["acc", "f1"]},
    "gsm8k": {"gsm8k": ["exact_match,strict-match", "exact_match,flexible-extract"]},
    "mmlu_generative": {"mmlu_anatomy_generative": ["exact_match"]},
    "mmlu_continuation": {"mmlu_anatomy_continuation": ["acc", "acc_norm"]},
    "truthfulqa": {
        "truthfulqa_gen": [
            f"{score}_{figure}"
            for score in ("bleu", "rouge1", "rouge2", "rougeL")
            for figure in ("max", "acc", "diff")
        ]
    },
}

each_task = pytest.mark.parametrize(("suite", "task"), GOLDEN_TASK_NAMES)


@dataclass(frozen=True)
class Examined:
    """Outcomes and summary of one suite."""

    outcomes: list[outcome_pb2.RecordedOutcome]
    summary: summary_pb2.RunSummary

    def of_task(self, task: str) -> list[outcome_pb2.RecordedOutcome]:
        return [item for item in self.outcomes if item.task == task]

    def figures(self, task: str) -> summary_pb2.TaskSummary:
        return next(one for one in self.summary.tasks if one.task == task)


def golden(task: str) -> GoldenTask:
    return golden_file(GOLDEN)[task]


def continuations(suite: str) -> list[str]:
    pairs = [pair for task in GOLDEN_TASKS[suite] for doc in golden(task)["docs"] for pair in pairs_of(doc)]
    return sorted({continuation for _, continuation in pairs})


def pairs_of(doc: Mapping[str, object]) -> list[list[str]]:
    pairs = doc["arguments"]
    assert isinstance(pairs, list)
    return pairs


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    environment = {**SHORT_TIMEOUTS, "PROCTOR_DATA_DIR": os.environ["PROCTOR_DATA_DIR"]}
    folders = tuple(REPOSITORY / "suites" / suite for suite in {**GOLDEN_TASKS, **OTHER_TASKS})
    order = StackOrder(suites=folders, environment=environment)
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def examined(stack: StackHarness) -> dict[str, Examined]:
    found = {}
    for suite, tasks in GOLDEN_TASKS.items():
        await stack.model_server.control(continuations=continuations(suite))
        found[suite] = await examine(stack, suite, tasks, GOLDEN.rows)
    return found


async def examine(stack: StackHarness, suite: str, tasks: Sequence[str], limit: int) -> Examined:
    order = run_pb2.RunOrder(project_id=1, suite=suite, tasks=tasks, model=MODEL, limit=limit)
    run_id = await completed(stack, order)
    return Examined(await all_outcomes(stack, run_id), await stack.client.summary(run_id))


@each_task
async def test_prompts_continuations_and_log_likelihoods_are_the_golden_ones(
    examined: dict[str, Examined], suite: str, task: str
) -> None:
    for item, doc in zip(examined[suite].of_task(task), golden(task)["docs"], strict=True):
        assert item.doc_id == doc["doc_id"]
        assert [[item.prompt, choice] for choice in item.choices] == pairs_of(doc)
        expected = [hash_logprob(context, continuation) for context, continuation in pairs_of(doc)]
        assert logprobs_of(item) == pytest.approx(expected, abs=1e-9)


def logprobs_of(item: outcome_pb2.RecordedOutcome) -> list[float]:
    return [choice.logprob for choice in item.outcome.answer.choices]


@each_task
async def test_scores_of_each_sample_are_the_golden_ones(
    examined: dict[str, Examined], suite: str, task: str
) -> None:
    for item, doc in zip(examined[suite].of_task(task), golden(task)["docs"], strict=True):
        likeliest = max(range(len(item.choices)), key=lambda index: logprobs_of(item)[index])
        assert item.prediction.strip() == item.choices[likeliest].strip()
        assert item.target.strip() == target_of(doc)
        for metric, value in item.scores.items():
            if metric in doc:
                assert value == doc[metric]


def target_of(doc: Mapping[str, object]) -> str:
    """The right choice; some tasks name it by its place."""
    target = doc["target"]
    return (pairs_of(doc)[target][1] if isinstance(target, int) else str(target)).strip()


@each_task
async def test_figures_are_the_golden_ones(examined: dict[str, Examined], suite: str, task: str) -> None:
    results = golden(task)["results"]
    compared = [
        figure for figure in examined[suite].figures(task).metrics if f"{figure.metric},none" in results
    ]
    assert compared
    for figure in compared:
        assert figure.n == GOLDEN.rows
        assert figure.mean == pytest.approx(results[f"{figure.metric},none"], abs=1e-9)
        stderr = results[f"{figure.metric}_stderr,none"]
        tolerance = BOOTSTRAP_TOLERANCE if figure.metric in BOOTSTRAPPED else 0.0
        # The reference has no error for an aggregation of the task's own (cb's f1).
        assert stderr == "N/A" or figure.stderr == pytest.approx(stderr, rel=tolerance, abs=1e-9)


@pytest.mark.parametrize("suite", GOLDEN_TASKS)
async def test_the_suite_is_summed_up_over_the_tasks_that_were_run(
    examined: dict[str, Examined], suite: str
) -> None:
    whole = benchmark_group(examined[suite].summary.groups)
    assert whole
    assert whole.group == suite
    assert list(whole.tasks) == [task for task in whole.tasks if task in GOLDEN_TASKS[suite]]
    [accuracy] = [figure for figure in whole.metrics if figure.metric == "acc"]
    assert accuracy.n == GOLDEN.rows * len(GOLDEN_TASKS[suite])


async def test_rows_that_stand_in_are_named(examined: dict[str, Examined]) -> None:
    """qqp's are of its training split, the others' the first of a file, as the mirror says."""
    tasks = [task for one in examined.values() for task in one.summary.tasks]
    assert {task.task for task in tasks if task.is_stand_in} == {
        "qqp",
        "multirc",
        "medmcqa",
        "medqa_4options",
    }


@pytest.mark.parametrize("suite", OTHER_TASKS)
async def test_tasks_without_a_golden_file_run_to_their_figures(stack: StackHarness, suite: str) -> None:
    run = await examine(stack, suite, list(OTHER_TASKS[suite]), limit=5)
    assert {task.task: [figure.metric for figure in task.metrics] for task in run.summary.tasks} == (
        OTHER_TASKS[suite]
    )
    assert len(run.outcomes) == 5 * len(OTHER_TASKS[suite])
    assert not run.summary.failures
