"""Turns the samples of a shard into outcomes, within the worker's concurrency limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from services.worker.consumer.in_flight import Holding
from services.worker.consumer.prefetch import Intake
from services.worker.engines.engine import EngineDied, EngineFailure, ModelCannotLoad, ModelRefused
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.execute_sample import SampleAsker
from services.worker.execution.shard import Failure, Outcome, ShardSample


class Slots:
    def __init__(self, count: int) -> None:
        self.count = count
        self.in_use = 0
        self._free = asyncio.Semaphore(count)
        self._door = asyncio.Lock()

    async def acquire(self) -> None:
        if self._door.locked():
            async with self._door:
                pass
        await self._free.acquire()
        self.in_use += 1

    def release(self) -> None:
        self._leave()
        self._free.release()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Waits until nothing else is asked and lets nobody in meanwhile."""
        async with self._door, AsyncExitStack() as taken:
            for _ in range(self.count):
                await self._free.acquire()
                taken.callback(self._free.release)
            self.in_use = 1
            taken.callback(self._leave)
            yield

    def _leave(self) -> None:
        self.in_use -= 1


class EngineLost(Exception):
    """The engine died, or could not be started, while samples were asked: the rest is for another."""

    def __init__(self, failure: EngineFailure) -> None:
        super().__init__(str(failure))
        # Only a death may be the samples' doing.
        self.has_died = isinstance(failure, EngineDied)


class RunRefused(Exception):
    """The provider takes no request of the run; the scheduler hears of it and fails the run."""


class ShardExecutor:
    def __init__(self, asker: SampleAsker, batcher: OutcomeBatcher, slots: Slots, intake: Intake) -> None:
        self._asker = asker
        self._batcher = batcher
        self._slots = slots
        self._intake = intake

    async def execute(self, holding: Holding) -> None:
        """Asks what is unfinished; raises EngineLost where the rest has to be asked by another engine.

        Raises RunRefused where asking the rest would be refused as well.
        """
        lost: EngineFailure | None = None
        refusal: EngineFailure | None = None
        try:
            if holding.faults and len(holding.shard.samples) == 1:
                await self._ask_alone(holding)
            else:
                await self._ask_all(holding)
        except* (EngineDied, ModelCannotLoad) as failures:
            lost = _first(failures)
        except* ModelRefused as refusals:
            refusal = _first(refusals)
        finally:
            self._batcher.flush(holding.shard)
        if lost is not None:
            raise EngineLost(lost) from lost
        if refusal is not None:
            raise RunRefused from refusal

    async def _ask_all(self, holding: Holding) -> None:
        async with asyncio.TaskGroup() as group:
            for sample in list(holding.unfinished.values()):
                await self._slots.acquire()
                holding.has_begun = True
                asking = group.create_task(self._ask(holding, sample))
                # Not in the task itself: one that is cancelled before its first step runs none of it.
                asking.add_done_callback(lambda _: self._slots.release())

    async def _ask_alone(self, holding: Holding) -> None:
        async with self._slots.alone():
            holding.has_begun = True
            for sample in list(holding.unfinished.values()):
                await self._ask(holding, sample)

    async def _ask(self, holding: Holding, sample: ShardSample) -> None:
        outcome = await self._asker.ask(holding.shard, sample)
        del holding.unfinished[sample.number]
        self._intake.finish(1)
        if outcome is not None:
            record(holding, outcome, self._batcher)


def record(holding: Holding, outcome: Outcome, batcher: OutcomeBatcher) -> None:
    """Sends the outcome on its way; the holding waits for it before it is acknowledged."""
    holding.failed += isinstance(outcome.result, Failure)
    holding.published.add(batcher.add(outcome))


def _first(failures: BaseExceptionGroup[EngineFailure]) -> EngineFailure:
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    assert isinstance(failure, EngineFailure)
    return failure
