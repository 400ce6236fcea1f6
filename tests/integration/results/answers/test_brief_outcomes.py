"""Outcomes without their texts, and from a rollout on, through the real service."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.outcome import Answer, Outcome
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, rows_of
from tests.fakes.results.recorded_run import said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def test_a_brief_list_has_no_texts_and_may_begin_at_a_rollout(harness: ResultsHarness) -> None:
    long = json.dumps({"diff": "x" * 900_000})
    outcomes = [
        Outcome(at, rollout, 0, 1, Answer("said", "submitted", body_json=long))
        for at in range(2)
        for rollout in range(3)
    ]
    plan = await answered_run(harness, rows_of(["first", "second"]), outcomes)
    request = results_pb2.ListOutcomesRequest(
        run_id=plan.run_id, is_brief=True, first_sample=0, first_rollout=1
    )
    page = await harness.public.ListOutcomes(request)
    keys = [(one.outcome.sample, one.outcome.rollout) for one in page.outcomes]
    assert keys == [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    for one in page.outcomes:
        answer = one.outcome.answer
        assert (answer.text, answer.body_json, one.prompt, one.target) == ("", "", "", "")
        assert (answer.finish_reason, one.doc_id) == ("submitted", one.outcome.sample)
        assert one.scores
    request = results_pb2.ListOutcomesRequest(
        run_id=plan.run_id, page_size=1, first_sample=1, first_rollout=2
    )
    [whole] = (await harness.public.ListOutcomes(request)).outcomes
    assert (whole.outcome.rollout, whole.outcome.answer.body_json) == (2, long)
    assert whole.recorded_at == page.outcomes[-1].recorded_at
    assert whole.recorded_at.seconds


@pytest.mark.parametrize("field", ["first_sample", "first_rollout"])
async def test_a_list_cannot_begin_before_the_first(harness: ResultsHarness, field: str) -> None:
    plan = await answered_run(harness, rows_of(["first"]), [said(0, "yes")])
    request = results_pb2.ListOutcomesRequest(run_id=plan.run_id)
    setattr(request, field, -1)
    assert field in str(await refusal_of(harness.public.ListOutcomes(request)))
