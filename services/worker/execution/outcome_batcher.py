"""Publishes outcomes of a run in batches: one that is full or old, or when no shard of the run is left."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from proctor.values.outcome import Failure, Outcome
from proctor.values.run import RunId
from services.common.traces import continued_trace, current_trace
from services.worker.execution.shard import OutcomeBatch, Shard


class OutcomePublisher(Protocol):
    async def publish(self, batch: OutcomeBatch, message_id: str) -> None:
        """Returns once the batch is stored durably; retries over outages with the same id."""


@dataclass(frozen=True, slots=True)
class OutcomeBatchLimits:
    # A message that is lost in an outage is published again as a whole, and read again as a whole.
    outcomes: int = 250
    # With JSON and UTF-8 at most a few times that in bytes, below the 8 MiB of a NATS message here.
    characters: int = 500_000
    # What an answer waits at most. A shard that ends waits as long, where others of its run fill the batch:
    # a message for each would cost the worker, NATS and results more than the answers in it.
    age_seconds: float = 0.1


@dataclass(slots=True)
class _OpenBatch:
    timer: asyncio.TimerHandle
    published: asyncio.Future[None]
    outcomes: list[Outcome] = field(default_factory=list)
    # By identity: a comparison would read their samples.
    shards: dict[int, Shard] = field(default_factory=dict)
    characters: int = 0
    # The trace of the shard that began the batch, which has outcomes of several.
    trace: str = ""


class OutcomeBatcher:
    """Its queue is bounded by the shards in flight: each waits until its outcomes are published."""

    def __init__(
        self, publisher: OutcomePublisher, new_id: Callable[[], str], limits: OutcomeBatchLimits | None = None
    ) -> None:
        self._publisher = publisher
        self._new_id = new_id
        self._limits = limits or OutcomeBatchLimits()
        self._open: dict[tuple[RunId, int], _OpenBatch] = {}
        # Shards that are executed here, by run and epoch.
        self._executed: Counter[tuple[RunId, int]] = Counter()
        self._closed: asyncio.Queue[_OpenBatch] = asyncio.Queue()

    def add(self, shard: Shard, outcome: Outcome) -> asyncio.Future[None]:
        """The future is done when the outcome, one of the shard, is stored durably."""
        key = (shard.run_id, shard.epoch)
        batch = self._open.get(key) or self._start(key)
        batch.outcomes.append(outcome)
        batch.shards[id(shard)] = shard
        batch.characters += _characters(outcome)
        if len(batch.outcomes) >= self._limits.outcomes or batch.characters >= self._limits.characters:
            self._close(key)
        return batch.published

    @contextmanager
    def executed(self, shard: Shard) -> Iterator[None]:
        """Publishes the open batch of the run at the end, unless another shard of it is executed then."""
        key = (shard.run_id, shard.epoch)
        self._executed[key] += 1
        try:
            yield
        finally:
            self._executed[key] -= 1
            if not self._executed[key]:
                del self._executed[key]
                self._close(key)

    async def run(self, lanes: int = 4) -> None:
        """Publishes until cancelled, a few batches at a time."""
        async with asyncio.TaskGroup() as group:
            for lane in range(lanes):
                group.create_task(self._publish_closed(), name=f"publish outcomes {lane}")

    async def drain(self) -> None:
        """Publishes every open batch and waits until all are stored durably."""
        for key in list(self._open):
            self._close(key)
        await self._closed.join()

    def _start(self, key: tuple[RunId, int]) -> _OpenBatch:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limits.age_seconds, self._close, key)
        batch = self._open[key] = _OpenBatch(timer, loop.create_future(), trace=current_trace())
        return batch

    def _close(self, key: tuple[RunId, int]) -> None:
        batch = self._open.pop(key, None)
        if batch is not None:
            # A timer that fires later would close the next batch of the run.
            batch.timer.cancel()
            self._closed.put_nowait(batch)

    async def _publish_closed(self) -> None:
        while True:
            batch = await self._closed.get()
            shards = tuple(batch.shards.values())
            is_last = (shards[0].run_id, shards[0].epoch) not in self._executed
            outcomes = OutcomeBatch(shards, tuple(batch.outcomes), is_last)
            try:
                with continued_trace(batch.trace):
                    # One id for all tries: the stream drops a batch that it holds already.
                    await self._publisher.publish(outcomes, self._new_id())
            except Exception as error:  # noqa: BLE001  # an edge: the shards that wait for this batch are nacked
                batch.published.set_exception(error)
                batch.published.exception()  # retrieved, also where the shard was terminated meanwhile
            else:
                batch.published.set_result(None)
            finally:
                self._closed.task_done()


def _characters(outcome: Outcome) -> int:
    """Roughly its size in a message."""
    result = outcome.result
    if isinstance(result, Failure):
        return len(result.message) + 30
    texts = len(result.text) + len(result.reasoning) + len(result.finish_reason) + len(result.body_json)
    return texts + 16 * len(result.choices) + 60
