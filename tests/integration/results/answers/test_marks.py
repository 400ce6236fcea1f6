"""Marks of users through the real service: golden or wrong, one at most, and who set them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from services.results.runs.run_plan import RunPlan
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, listed, rows_of
from tests.fakes.results.recorded_run import failed, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def marked(
    harness: ResultsHarness, plan: RunPlan, *samples: int, golden: bool = False, wrong: bool = False
) -> tuple[int, int]:
    """Golden and wrong answers of the run afterwards."""
    response = await harness.answers.MarkAnswers(
        answer_pb2.MarkAnswersRequest(
            run_id=plan.run_id,
            answers=[answer_pb2.AnswerKey(sample=sample) for sample in samples],
            is_golden=golden,
            is_marked_wrong=wrong,
            user="ann",
        )
    )
    return response.golden_count, response.wrong_count


async def test_an_answer_has_one_mark_at_most(harness: ResultsHarness) -> None:
    plan = await answered_run(harness, rows_of(["a", "b", "c"], "w"), [said(0, "a"), said(1, "b"), failed(2)])
    assert await marked(harness, plan, 0, 1, golden=True) == (2, 0)
    assert await marked(harness, plan, 1, wrong=True) == (1, 1)
    assert await marked(harness, plan, 1, wrong=True) == (1, 1)
    page = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id))
    marks = [(one.is_golden, one.is_marked_wrong) for one in page.outcomes]
    assert marks == [(True, False), (False, True), (False, False)]
    assert await listed(harness, plan, is_golden=True) == [0]
    assert await listed(harness, plan, is_marked_wrong=True) == [1]
    assert await listed(harness, plan, is_marked_wrong=True, text="nowhere") == []
    assert await marked(harness, plan, 0, wrong=True) == (0, 2)
    assert await marked(harness, plan, 0, 1) == (0, 0)
    request = answer_pb2.ListMarkChangesRequest(run_id=plan.run_id, page_size=10)
    changes = (await harness.answers.ListMarkChanges(request)).changes
    assert [(each.sample, each.is_golden, each.is_marked_wrong) for each in reversed(changes)] == [
        (0, True, False),
        (1, True, False),
        (1, False, True),
        (0, False, True),
        (0, False, False),
        (1, False, False),
    ]


async def test_two_who_mark_one_answer_at_once_leave_one_mark(harness: ResultsHarness) -> None:
    plan = await answered_run(harness, rows_of(["a", "b"], "y"), [said(0, "a"), said(1, "b")])
    for _ in range(30):
        await marked(harness, plan, 0, 1)
        both = (marked(harness, plan, 0, 1, golden=True), marked(harness, plan, 1, 0, wrong=True))
        await asyncio.gather(*both)
        page = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id))
        assert all(one.is_golden != one.is_marked_wrong for one in page.outcomes)


async def test_what_cannot_be_marked_is_refused(harness: ResultsHarness) -> None:
    plan = await answered_run(harness, rows_of(["a", "b"], "x"), [said(0, "a"), failed(1)])
    assert (await refusal_of(marked(harness, plan, 0, golden=True, wrong=True)))[0] == "INVALID_PARAMETER"
    assert (await refusal_of(marked(harness, plan, 0, 1, wrong=True)))[0] == "OUTCOME_IS_FAILURE"
    both = results_pb2.OutcomeFilter(is_golden=True, is_marked_wrong=True)
    request = results_pb2.ListOutcomesRequest(run_id=plan.run_id, filter=both)
    assert (await refusal_of(harness.public.ListOutcomes(request)))[0] == "INVALID_PARAMETER"
    assert await marked(harness, plan) == (0, 0)
