"""Samples on their way to results: some ahead and no more, whatever fails or is stopped meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from threading import Event

import pytest

from proctor.values.sample import Prompt
from proctor.values.scoring import TaskScoring
from services.common.errors import DependencyUnavailable
from services.scheduler.planning import plan_run
from services.scheduler.planning.plan_run import (
    CHUNKS_ON_THEIR_WAY,
    PHASE_SECONDS,
    PlanningFailed,
    RunStopped,
    storing_samples,
)
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.errors import RowsUnavailable
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.fakes.callers import OPERATOR
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler.surroundings import InMemoryRecord
from tests.fakes.suites.toy_suites import ToyRows

# Rendering thousands of rows takes longer than a test waits where the machine is busy.
CHUNK_SAMPLES = 50


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_run, "CHUNK_SAMPLES", CHUNK_SAMPLES)


class HeldRecord(InMemoryRecord):
    """Stores a chunk only once it may; `arrived` counts chunks, and `on_chunk` is called with the count."""

    def __init__(self, on_chunk: Callable[[int], object] = lambda _: None) -> None:
        super().__init__()
        self.may_store = asyncio.Event()
        self.arrived = self.given_up = 0
        # For threads, which read rows while a chunk is on its way.
        self.has_arrived = Event()
        self.on_chunk = on_chunk

    async def put_samples(
        self, staging_id: str, samples: Sequence[RenderedSample], scoring: TaskScoring | None
    ) -> None:
        self.arrived += 1
        self.has_arrived.set()
        try:
            await self.may_store.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        self.on_chunk(self.arrived)
        await super().put_samples(staging_id, samples, scoring)


def stand_of_chunks(record: InMemoryRecord, chunks: int) -> SchedulerHarness:
    return SchedulerHarness(record=record, rows=ToyRows(count=chunks * CHUNK_SAMPLES))


def one_task() -> RunOrder:
    return toy_order(tasks=("say",))


def chunk_of(position: int) -> Sequence[RenderedSample]:
    return [RenderedSample(position, position, b"", Prompt(""), size_bytes=1)]


async def test_so_many_chunks_are_on_their_way_and_all_are_stored_at_the_end() -> None:
    record = HeldRecord()
    put: list[int] = []

    async def put_all() -> None:
        async with storing_samples(record, "a set", None) as send:
            for position in range(5):
                await send(chunk_of(position))
                put.append(position)

    async with asyncio.TaskGroup() as group:
        putting = group.create_task(put_all())
        await eventually(lambda: record.arrived == CHUNKS_ON_THEIR_WAY, "chunks on their way")
        assert put == list(range(CHUNKS_ON_THEIR_WAY))
        assert not putting.done()
        record.may_store.set()
    assert [sample.position for sample in record.staged["a set"]] == [0, 1, 2, 3, 4]


async def test_rows_are_read_while_results_stores_what_came_before() -> None:
    read: list[int] = []
    record = HeldRecord()
    harness = stand_of_chunks(record, chunks=4)
    harness.rows.on_row = lambda: read.append(1)
    run, _ = await harness.start(one_task())
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.tools.planner.plan(harness.fencing_token, run))
        # What tells that a chunk is full is the first row of the next.
        ahead = (CHUNKS_ON_THEIR_WAY + 1) * CHUNK_SAMPLES + 1
        await eventually(lambda: len(read) == ahead, "the next chunk is put together")
        # A thread may have read the rows before the loop comes to the chunk.
        await eventually(lambda: record.arrived == CHUNKS_ON_THEIR_WAY, "all chunks are on their way")
        record.may_store.set()
    assert (await harness.runs.get(run.run_id)).total == 4 * CHUNK_SAMPLES
    [samples] = record.sets.values()
    assert [sample.position for sample in samples] == list(range(4 * CHUNK_SAMPLES))


async def test_results_away_in_the_middle_is_raised_as_it_is_and_planning_begins_anew() -> None:
    def fail_at_the_third(arrived: int) -> None:
        if arrived >= 3 and harness.record.refusal is None:
            harness.record.refusal = DependencyUnavailable(dependency="results")

    record = HeldRecord(fail_at_the_third)
    record.may_store.set()
    harness = stand_of_chunks(record, chunks=6)
    run, _ = await harness.start(one_task())
    with pytest.raises(DependencyUnavailable):
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert not record.sets
    record.refusal, record.on_chunk = None, lambda _: None
    await harness.tools.planner.plan(harness.fencing_token, run)
    [samples] = record.sets.values()
    assert len(samples) == (await harness.runs.get(run.run_id)).total == 6 * CHUNK_SAMPLES


async def test_row_that_cannot_be_read_ends_what_is_on_its_way() -> None:
    record = HeldRecord()
    harness = stand_of_chunks(record, chunks=4)
    read: list[int] = []

    def break_in_the_second_chunk() -> None:
        read.append(1)
        if len(read) == CHUNK_SAMPLES + 10:
            assert record.has_arrived.wait(60)
            raise RowsUnavailable("toy", "its rows", ["the mirror has it not"])

    harness.rows.on_row = break_in_the_second_chunk
    run, _ = await harness.start(one_task())
    with pytest.raises(PlanningFailed) as failure:
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert failure.value.error.reason == "ROWS_UNAVAILABLE"
    assert (record.arrived, record.given_up, record.sets) == (1, 1, {})


async def test_run_stopped_in_the_middle_leaves_nothing_on_its_way_and_nothing_committed() -> None:
    record = HeldRecord()
    harness = stand_of_chunks(record, chunks=4)
    run, _ = await harness.start(one_task())
    read: list[int] = []

    def stop_in_the_second_chunk() -> None:
        read.append(1)
        if len(read) == CHUNK_SAMPLES + 10:
            assert record.has_arrived.wait(60)
            asyncio.run(harness.changing.cancel(run.run_id, OPERATOR))
            harness.clock.seconds += 2 * PHASE_SECONDS

    harness.rows.on_row = stop_in_the_second_chunk
    with pytest.raises(RunStopped):
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert len(read) < 2 * CHUNK_SAMPLES
    assert record.given_up == record.arrived > 0
    assert not record.sets


async def test_leader_that_ends_while_planning_gives_up_what_is_on_its_way() -> None:
    record = HeldRecord()
    harness = stand_of_chunks(record, chunks=4)
    run, _ = await harness.start(one_task())
    async with asyncio.TaskGroup() as group:
        planning = group.create_task(harness.tools.planner.plan(harness.fencing_token, run))
        await eventually(lambda: record.arrived == CHUNKS_ON_THEIR_WAY, "chunks on their way")
        planning.cancel()
    assert record.given_up == CHUNKS_ON_THEIR_WAY
    assert not record.sets
