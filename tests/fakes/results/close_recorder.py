"""Runs that are opened, recorded and closed in memory, and stores that take their time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from proctor.values.scoring import MetricUse, TaskGroup
from services.results.runs.run_plan import RunPlan
from services.results.samples.sample import StoredSample
from services.results.statistics.columns import ScoreChunk
from services.results.summaries.ports import Stores
from tests.fakes.results.memory_results import (
    MemoryOutcomes,
    MemoryProgress,
    MemoryRows,
    memory_stores,
)
from tests.fakes.results.recorded_run import (
    CHOICE_SCORING,
    choice_sample,
    new_id,
    plan_of,
)
from tests.fakes.results.stores import close_run_of, record_outcomes_of, show_summary_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return self.seconds


class Recorder:
    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.stores: Stores = memory_stores(self.rows)
        self.clock = HandClock()
        self.record = record_outcomes_of(self.stores, MemoryProgress()).record
        self.summarize = show_summary_of(self.stores, self.clock).show
        self.close = close_run_of(self.stores, self.clock).close

    async def open(
        self,
        samples: list[StoredSample],
        rollouts: int = 1,
        metrics: tuple[MetricUse, ...] = CHOICE_SCORING.metrics,
        *,
        groups: bool = False,
    ) -> RunPlan:
        sample_set_id = new_id()
        await self.stores.sample_sets.stage(sample_set_id, samples)
        await self.stores.sample_sets.commit(sample_set_id, len(samples))
        plan = plan_of([len(samples)], [sample_set_id], rollouts=rollouts)
        tasks = [replace(task, scoring=replace(CHOICE_SCORING, metrics=metrics)) for task in plan.tasks]
        benchmark = (TaskGroup("toy", tuple(task.task for task in tasks)),) if groups else ()
        return (await self.stores.records.open(replace(plan, tasks=tuple(tasks), groups=benchmark), 1)).plan


def samples(count: int) -> list[StoredSample]:
    return [choice_sample(position) for position in range(count)]


class SlowOutcomes(MemoryOutcomes):
    """Its scores come when the test says so."""

    def __init__(self, rows: MemoryRows) -> None:
        super().__init__(rows)
        self.may_go_on = asyncio.Event()

    async def scores(self, run_id: str, window: range, metrics: Sequence[str]) -> AsyncIterator[ScoreChunk]:
        async for chunk in super().scores(run_id, window, metrics):
            yield chunk
            await self.may_go_on.wait()
