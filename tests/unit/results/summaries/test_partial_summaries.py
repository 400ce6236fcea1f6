"""Figures so far: one computation for all who ask, kept by what it cost, never kept when it failed."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.results.runs.errors import RecordNotFound
from services.results.runs.run_plan import RunRecord
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.show_summary import (
    KEPT_PER_SECOND_OF_COMPUTING,
    LEAST_KEPT_SECONDS,
    PartialSummaries,
)
from tests.fakes.results.recorded_run import plan_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORD = RunRecord(plan_of([3]), 1)


class Desk:
    """Computes when told to; its own hand moves the clock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.computed = 0
        self.go = asyncio.Event()
        self.failure: Exception | None = None
        self.partials = PartialSummaries(self.compute, self)

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return self.seconds

    async def compute(self, record: RunRecord) -> RunSummary:
        self.computed += 1
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return RunSummary(
            run_id=record.plan.run_id,
            epoch=record.epoch,
            is_partial=True,
            tasks=(),
            total=self.computed,
            computed_at=NOON,
        )


async def asked(desk: Desk, record: RunRecord = RECORD) -> asyncio.Task[RunSummary]:
    """Someone who waits for an answer."""
    asking = asyncio.ensure_future(desk.partials.of(record))
    await asyncio.sleep(0)
    return asking


async def test_all_who_ask_at_once_get_one_computation_even_if_the_first_leaves() -> None:
    desk = Desk()
    first, *others = [await asked(desk) for _ in range(5)]
    first.cancel()
    desk.go.set()
    assert {(await other).total for other in others} == {1}
    assert desk.computed == 1


async def test_what_cost_much_is_kept_long() -> None:
    desk = Desk()
    asking = await asked(desk)
    desk.seconds += 20
    desk.go.set()
    await asking
    desk.seconds += 20 * KEPT_PER_SECOND_OF_COMPUTING - 1
    assert (await desk.partials.of(RECORD)).total == 1
    desk.seconds += 1
    assert (await desk.partials.of(RECORD)).total == 2
    desk.seconds += LEAST_KEPT_SECONDS
    assert (await desk.partials.of(RECORD)).total == 3


async def test_a_failure_is_not_kept() -> None:
    desk = Desk()
    desk.go.set()
    desk.failure = RecordNotFound(run_id=RECORD.plan.run_id)
    with pytest.raises(RecordNotFound):
        await desk.partials.of(RECORD)
    desk.failure = None
    assert (await desk.partials.of(RECORD)).total == 2


async def test_a_later_epoch_is_computed_anew() -> None:
    desk = Desk()
    desk.go.set()
    await desk.partials.of(RECORD)
    assert (await desk.partials.of(replace(RECORD, epoch=2))).epoch == 2
