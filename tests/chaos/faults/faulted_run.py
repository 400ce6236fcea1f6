"""A run that a fault strikes in the middle: watched until it is time, struck, seen to its end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

import asyncpg

from proctor.v1 import run_pb2
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness, keyed_order

ROWS = 2_000
# With the 64 requests that the stack's worker has open at a time, a run of 2,000 takes seven seconds.
LATENCY_SECONDS = 0.2
END_LIMIT_SECONDS = 240.0
SHARD_SAMPLES = 64
# Of a task with so many rows that shards grow in its middle, in which a strike at 30 % falls.
LARGE_ROWS = 6_000
GROWN_SHARD_SAMPLES = 128

_LOOK = """
SELECT
    (SELECT count(*) FROM results.outcomes WHERE run_id = $1) AS recorded,
    (SELECT coalesce(sum(cardinality(samples)), 0) FROM scheduler.shards
     WHERE run_id = $1 AND state = 'dispatched') AS dispatched
"""

Fault = Callable[[], Awaitable[None]]


@dataclass
class FaultedRun:
    """`samples_in_flight`: an upper limit of the samples that were on the wire at the faults so far.

    It is measured, not assumed: for each fault the most samples in shards dispatched and not done that any
    look at Postgres has seen, and one shard more, which may have been dispatched since the last look.
    """

    stack: StackHarness
    run_id: str
    total: int
    samples_in_flight: int = 0
    most_dispatched: int = 0

    @classmethod
    async def start(
        cls, stack: StackHarness, order: run_pb2.RunOrder | None = None, total: int = ROWS
    ) -> Self:
        """Submits a run once all is as `made_ready` has it."""
        await made_ready(stack)
        return cls(stack, await stack.submit(order or keyed_order(limit=total)), total)

    async def strike_at(self, share: float, fault: Fault) -> int:
        """Lets the fault strike once `share` of the rows is recorded; gives how many were."""
        async with self.stack.database() as database:
            recorded = await self._reach(share, database)
        assert 0.1 * self.total <= recorded <= 0.9 * self.total, f"struck too late: {recorded} were recorded"
        shard_samples = GROWN_SHARD_SAMPLES if self.total >= LARGE_ROWS else SHARD_SAMPLES
        self.samples_in_flight += self.most_dispatched + shard_samples
        await fault()
        return recorded

    async def recorded(self) -> int:
        async with self.stack.database() as database:
            return (await self._look(database))[0]

    async def ended(self, limit_seconds: float = END_LIMIT_SECONDS) -> run_pb2.Run:
        """The run as the watch shows it last: final and closed, by itself."""
        run = run_pb2.Run()
        try:
            async with asyncio.timeout(limit_seconds):
                async for seen in self.stack.client.watch_run(self.run_id):
                    run = seen
        except TimeoutError as error:
            recorded = await self.recorded()
            raise AssertionError(
                f"not ended within {limit_seconds:g} s, {recorded} recorded: {run}"
            ) from error
        return run

    async def _reach(self, share: float, database: asyncpg.Connection) -> int:
        seen = 0

        async def is_reached() -> bool:
            nonlocal seen
            seen, dispatched = await self._look(database)
            self.most_dispatched = max(self.most_dispatched, dispatched)
            return seen >= share * self.total

        await eventually(is_reached, f"{share:.0%} of the run is recorded", END_LIMIT_SECONDS)
        return seen

    async def _look(self, database: asyncpg.Connection) -> tuple[int, int]:
        row = await database.fetchrow(_LOOK, self.run_id)
        assert row is not None
        return int(row["recorded"]), int(row["dispatched"])


async def made_ready(stack: StackHarness, latency_seconds: float = LATENCY_SECONDS) -> None:
    """All is up, and the model server takes its time and has counted nothing."""
    children = stack.stack.children.values()
    await eventually(lambda: all(child.ready.is_set() for child in children), "the stack is up", 60)
    await stack.model_server.control(fault=None, latency_seconds=latency_seconds)
    await eventually(lambda: is_idle(stack), "the model server has nothing of an earlier run")
    await stack.model_server.control(reset_stats=True)


async def is_idle(stack: StackHarness) -> bool:
    return bool((await stack.model_server.stats())["in_flight"] == 0)
