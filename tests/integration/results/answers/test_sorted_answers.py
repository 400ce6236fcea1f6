"""Answers sorted by a value through the real service: every page in order, each answer once."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.outcome import Outcome
from proctor.values.usage import Timing
from services.results.answers import list_outcomes
from services.results.runs.run_plan import RunPlan
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, rows_of
from tests.fakes.results.recorded_run import failed, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


def timed(at: int, text: str, seconds: float) -> Outcome:
    return replace(said(at, text), timing=Timing(total_seconds=seconds))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plan(harness: ResultsHarness) -> RunPlan:
    """Right are 0 and 3; 4 failed; 2 is the longest and the slowest."""
    outcomes = [
        timed(0, "right", 0.5),
        timed(1, "wrong!", 0.25),
        timed(2, "wrong by far", 4.0),
        timed(3, "right", 1.5),
        failed(4),
        timed(5, "no", 0.5),
    ]
    return await answered_run(harness, rows_of([f"question {at}" for at in range(6)], "s"), outcomes)


async def ordered(harness: ResultsHarness, plan: RunPlan, **asked: Any) -> list[int]:
    """Samples over all pages of two."""
    request = results_pb2.ListOutcomesRequest(run_id=plan.run_id, page_size=2, **asked)
    found: list[int] = []
    while True:
        page = await harness.public.ListOutcomes(request)
        assert len(page.outcomes) <= 2
        found += [one.outcome.sample for one in page.outcomes]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


@pytest.mark.parametrize(
    ("sort", "up", "down"),
    [
        (results_pb2.OUTCOME_SORT_SAMPLE, [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]),
        # Failures have neither a score nor a length nor a time; equal values are in the order of samples.
        (results_pb2.OUTCOME_SORT_SCORE, [1, 2, 5, 0, 3], [0, 3, 1, 2, 5]),
        (results_pb2.OUTCOME_SORT_LENGTH, [5, 0, 3, 1, 2], [2, 1, 0, 3, 5]),
        (results_pb2.OUTCOME_SORT_TIME, [1, 0, 5, 3, 2], [2, 3, 0, 5, 1]),
    ],
)
async def test_pages_go_on_where_the_last_ended_in_both_directions(
    harness: ResultsHarness, plan: RunPlan, sort: Any, up: list[int], down: list[int]
) -> None:
    assert await ordered(harness, plan, sort=sort) == up
    assert await ordered(harness, plan, sort=sort, is_descending=True) == down


async def test_filters_hold_in_every_order(harness: ResultsHarness, plan: RunPlan) -> None:
    slowest = {"sort": results_pb2.OUTCOME_SORT_TIME, "is_descending": True}
    assert await ordered(harness, plan, filter=results_pb2.OutcomeFilter(max_score=0.5), **slowest) == [
        2,
        5,
        1,
    ]
    assert await ordered(harness, plan, filter=results_pb2.OutcomeFilter(min_characters=5), **slowest) == [
        2,
        3,
        0,
        1,
    ]
    assert await ordered(harness, plan, filter=results_pb2.OutcomeFilter(text="wrong"), **slowest) == [2, 1]
    assert await ordered(harness, plan, filter=results_pb2.OutcomeFilter(row_id="s-5"), **slowest) == [5]
    assert await ordered(harness, plan, filter=results_pb2.OutcomeFilter(is_golden=True), **slowest) == []
    assert await ordered(harness, plan, task="rows", status=3, sort=results_pb2.OUTCOME_SORT_SAMPLE) == [4]


async def test_failures_are_listed_by_their_class(harness: ResultsHarness, plan: RunPlan) -> None:
    others = results_pb2.OutcomeFilter(failure_class=outcome_pb2.FAILURE_CLASS_RATE_LIMIT)
    assert await ordered(harness, plan, filter=others) == []
    chosen = results_pb2.OutcomeFilter(failure_class=outcome_pb2.FAILURE_CLASS_TIMEOUT)
    assert await ordered(harness, plan, filter=chosen) == [4]
    assert await ordered(harness, plan, filter=chosen, sort=results_pb2.OUTCOME_SORT_SAMPLE) == [4]


async def test_a_text_is_looked_for_window_by_window(
    harness: ResultsHarness, plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_outcomes, "MAX_WINDOW", 2)
    chosen = results_pb2.OutcomeFilter(text="right")
    assert await ordered(harness, plan, filter=chosen, sort=results_pb2.OUTCOME_SORT_TIME) == [0, 3]


async def test_what_cannot_be_sorted_is_refused(
    harness: ResultsHarness, plan: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(**asked: Any) -> tuple[str, str]:
        return await refusal_of(
            harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id, **asked))
        )

    by_time = results_pb2.ListOutcomesRequest(
        run_id=plan.run_id, page_size=1, sort=results_pb2.OUTCOME_SORT_TIME
    )
    token = (await harness.public.ListOutcomes(by_time)).next_page_token
    assert (await refused(sort=results_pb2.OUTCOME_SORT_LENGTH, page_token=token))[0] == "INVALID_PAGE_TOKEN"
    assert (await refused(sort=9))[0] == "INVALID_PARAMETER"
    assert (await refused(sort=results_pb2.OUTCOME_SORT_SCORE, filter={"metric": "rouge"}))[
        0
    ] == "UNKNOWN_METRIC"
    monkeypatch.setattr(list_outcomes, "MAX_SORTED", 5)
    assert "too many to sort" in (await refused(sort=results_pb2.OUTCOME_SORT_TIME))[1]
