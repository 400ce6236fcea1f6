"""The starter suite on the real vLLM engine, its choices scored in each of the three ways."""

import pytest
import pytest_asyncio

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from proctor.values.scoring import INSTRUCTION_VERSION
from tests.e2e.harness.run_ends import all_outcomes, completed
from tests.harness.stack_harness import StackHarness
from tests.harness.starter_model import MODEL, SAMPLES, SUITE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

LOGLIKELIHOOD = run_pb2.SCORING_METHOD_LOGLIKELIHOOD
GENERATE = run_pb2.SCORING_METHOD_GENERATE
CONSTRAINED = run_pb2.SCORING_METHOD_CONSTRAINED
METHODS = (LOGLIKELIHOOD, GENERATE, CONSTRAINED)
CHOICE_TASKS = ("sentiment", "odd_one")
LIMIT_SECONDS = 180.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(stack: StackHarness) -> dict[int, str]:
    found: dict[int, str] = {}
    for method in METHODS:
        order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=MODEL, scoring_method=method)
        found[method] = await completed(stack, order, LIMIT_SECONDS)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def summaries(stack: StackHarness, runs: dict[int, str]) -> dict[int, summary_pb2.RunSummary]:
    return {method: await stack.client.summary(run_id) for method, run_id in runs.items()}


async def test_every_figure_has_the_method_that_was_ordered(
    stack: StackHarness,
    runs: dict[int, str],
    summaries: dict[int, summary_pb2.RunSummary],
) -> None:
    for method, summary in summaries.items():
        assert (await stack.client.run(runs[method])).scoring_method == method
        reported = {task.task: task.scoring_method for task in summary.tasks}
        assert reported == {**dict.fromkeys(CHOICE_TASKS, method), "addition": GENERATE}
        assert (summary.answered, summary.failed) == (SAMPLES, 0)


async def test_the_samples_are_the_same_however_they_are_put(
    stack: StackHarness, runs: dict[int, str]
) -> None:
    digests = {
        tuple(sample.digest for sample in await all_outcomes(stack, run_id)) for run_id in runs.values()
    }
    assert len(digests) == 1


async def test_free_text_is_asked_alike_in_every_run(
    summaries: dict[int, summary_pb2.RunSummary],
) -> None:
    assert len({means(summary)["addition"] for summary in summaries.values()}) == 1


async def test_what_the_model_has_learnt_it_knows_however_it_is_asked(
    summaries: dict[int, summary_pb2.RunSummary],
) -> None:
    figures = {method: means(summary)["sentiment"] for method, summary in summaries.items()}
    assert all(figure > 0.8 for figure in figures.values()), figures


async def test_constrained_every_answer_is_one_of_the_choices(
    stack: StackHarness, runs: dict[int, str]
) -> None:
    for task in CHOICE_TASKS:
        for answered in await all_outcomes(stack, runs[CONSTRAINED], task):
            texts = [choice.strip() for choice in answered.choices]
            assert answered.outcome.answer.text.strip() in texts
            assert answered.status == outcome_pb2.OUTCOME_STATUS_SCORED
            assert answered.prediction in texts


async def test_answered_freely_what_names_no_choice_is_unparsed_and_counts_as_wrong(
    stack: StackHarness,
    runs: dict[int, str],
    summaries: dict[int, summary_pb2.RunSummary],
) -> None:
    for task in summaries[GENERATE].tasks:
        if task.task in CHOICE_TASKS:
            answers = await all_outcomes(stack, runs[GENERATE], task.task)
            unparsed = [each for each in answers if each.status == outcome_pb2.OUTCOME_STATUS_UNPARSED]
            assert len(unparsed) == task.unparsed
            assert means(summaries[GENERATE])[task.task] <= 1 - task.unparsed / task.total


async def test_what_the_choices_were_named_with_is_kept_where_they_were(
    stack: StackHarness, runs: dict[int, str]
) -> None:
    kept = {
        method: (await stack.client.run(run_id)).environment.get("choice_instruction")
        for method, run_id in runs.items()
    }
    assert kept == {LOGLIKELIHOOD: None, GENERATE: INSTRUCTION_VERSION, CONSTRAINED: INSTRUCTION_VERSION}


def means(summary: summary_pb2.RunSummary) -> dict[str, float]:
    return {task.task: task.metrics[0].mean for task in summary.tasks}


@pytest.mark.parametrize("method", METHODS, ids=["loglikelihood", "generate", "constrained"])
async def test_a_run_that_reuses_answers_has_the_same_figures_and_asks_nothing(
    stack: StackHarness,
    runs: dict[int, str],
    summaries: dict[int, summary_pb2.RunSummary],
    method: run_pb2.ScoringMethod.ValueType,
) -> None:
    order = run_pb2.RunOrder(
        project_id=1, suite=SUITE.name, model=MODEL, scoring_method=method, reuse_answers=True
    )
    run_id = await completed(stack, order, LIMIT_SECONDS)
    assert (await stack.client.run(run_id)).reused_answers == SAMPLES
    again = await stack.client.summary(run_id)
    assert means(again) == means(summaries[method])
    assert again.answered == SAMPLES
    assert (await stack.client.run(runs[method])).reused_answers == 0
