"""Figures so far: one computation for all who ask, kept by what it cost, never kept when it failed."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.results.runs.errors import RecordNotFound
from services.results.runs.run_plan import RunRecord
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.show_summary import (
    CACHED_PER_SECOND_OF_COMPUTING,
    MIN_CACHED_SECONDS,
    PartialSummaries,
)
from tests.fakes.results.recorded_run import plan_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORD = RunRecord(plan_of([3]), 1)


class Recorder:
    """Computes on demand; the test moves the clock."""

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


async def asked(recorder: Recorder, record: RunRecord = RECORD) -> asyncio.Task[RunSummary]:
    """Someone who waits for an answer."""
    asking = asyncio.ensure_future(recorder.partials.of(record))
    await asyncio.sleep(0)
    return asking


async def test_all_who_ask_at_once_get_one_computation_even_if_the_first_leaves() -> None:
    recorder = Recorder()
    first, *others = [await asked(recorder) for _ in range(5)]
    first.cancel()
    recorder.go.set()
    assert {(await other).total for other in others} == {1}
    assert recorder.computed == 1


async def test_what_cost_much_is_kept_long() -> None:
    recorder = Recorder()
    asking = await asked(recorder)
    recorder.seconds += 20
    recorder.go.set()
    await asking
    recorder.seconds += 20 * CACHED_PER_SECOND_OF_COMPUTING - 1
    assert (await recorder.partials.of(RECORD)).total == 1
    recorder.seconds += 1
    assert (await recorder.partials.of(RECORD)).total == 2
    recorder.seconds += MIN_CACHED_SECONDS
    assert (await recorder.partials.of(RECORD)).total == 3


async def test_a_failure_is_not_kept() -> None:
    recorder = Recorder()
    recorder.go.set()
    recorder.failure = RecordNotFound(run_id=RECORD.plan.run_id)
    with pytest.raises(RecordNotFound):
        await recorder.partials.of(RECORD)
    recorder.failure = None
    assert (await recorder.partials.of(RECORD)).total == 2


async def test_a_later_epoch_is_computed_anew() -> None:
    recorder = Recorder()
    recorder.go.set()
    await recorder.partials.of(RECORD)
    assert (await recorder.partials.of(replace(RECORD, epoch=2))).epoch == 2
