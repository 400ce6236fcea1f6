"""Rows of driven runs: one query for all that ask, and none goes back in time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from proctor.values.run import RunId, RunState
from services.common.errors import RunNotFound
from services.scheduler.dispatch.driven_rows import DrivenRows
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.scheduler.memory.runs import InMemoryRuns
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness
from tests.fakes.scheduler.surroundings import SetClock


@dataclass
class CountedRuns(InMemoryRuns):
    """Counts queries; a query over several gives its rows once `held` is set."""

    queries: list[Sequence[RunId]] = field(default_factory=list)
    held: asyncio.Event | None = None

    async def among(self, run_ids: Sequence[RunId]) -> Sequence[Run]:
        self.queries.append(run_ids)
        found = await super().among(run_ids)
        if self.held is not None:
            await self.held.wait()
        return found


async def rows_of(count: int) -> tuple[CountedRuns, SetClock, DrivenRows, list[RunId]]:
    harness = SchedulerHarness(runs=CountedRuns())
    ids = [(await harness.submit(user=f"user-{number}")).run_id for number in range(count)]
    assert isinstance(harness.runs, CountedRuns)
    return harness.runs, harness.clock, DrivenRows(harness.runs, harness.clock, 0.25), ids


async def test_runs_that_are_driven_are_read_by_one_query() -> None:
    runs, clock, rows, ids = await rows_of(20)
    for run_id in ids:
        await rows.read_now(run_id)
        await rows.read(run_id)
    assert runs.queries == []
    clock.seconds += 0.3
    read = await asyncio.gather(*(rows.read(run_id) for run_id in ids))
    assert [run.run_id for run in read] == ids
    assert [len(query) for query in runs.queries] == [20]


async def test_a_run_that_nobody_asks_for_is_not_read_any_more() -> None:
    runs, clock, rows, ids = await rows_of(2)
    await asyncio.gather(*(rows.read(run_id) for run_id in ids))
    clock.seconds += 5
    await rows.read(ids[0])
    assert runs.queries[-1] == (ids[0],)


async def test_a_row_that_was_read_after_a_change_is_not_replaced_by_an_earlier_one() -> None:
    runs, clock, rows, ids = await rows_of(1)
    runs.held = asyncio.Event()
    reading = asyncio.create_task(rows.read(ids[0]))
    await asyncio.sleep(0)
    clock.seconds += 0.1
    runs.runs[ids[0]] = replace(runs.runs[ids[0]], state=RunState.CANCELLED)
    assert (await rows.read_now(ids[0])).state is RunState.CANCELLED
    runs.held.set()
    assert (await reading).state is RunState.CANCELLED


async def test_slow_queries_serve_all_who_wait_for_them() -> None:
    """Also drivers that began to wait so long ago that nobody seems to drive their runs."""
    runs, clock, rows, ids = await rows_of(20)
    runs.held = asyncio.Event()
    reading = [asyncio.create_task(rows.read(ids[0]))]
    await asyncio.sleep(0)
    reading += [asyncio.create_task(rows.read(run_id)) for run_id in ids[1:]]
    await asyncio.sleep(0)
    clock.seconds += 5
    runs.held.set()
    assert [run.run_id for run in await asyncio.gather(*reading)] == ids
    assert [len(query) for query in runs.queries] == [1, 19]


async def test_a_run_that_was_deleted_is_not_found() -> None:
    runs, clock, rows, ids = await rows_of(1)
    await rows.read(ids[0])
    del runs.runs[ids[0]]
    clock.seconds += 0.3
    with pytest.raises(RunNotFound):
        await rows.read(ids[0])
