"""Processes one shard: check, execute or split, acknowledge or forward, and write one log line."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.common.traces import SpanKind, span
from services.worker.consumer.execute_shard import ExecuteShard, ShardEnd
from services.worker.consumer.in_flight import Abandoned, InFlightShard, InFlightShards
from services.worker.consumer.prefetch import Prefetch
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.metrics import REDELIVERIES, SHARD_SECONDS, SHARDS

log = get_logger()
# Within this time the scheduler fails the refused run; otherwise the rest is tried again, here or elsewhere.
_REFUSED_SECONDS = 1.0
# Below the grace period of a draining worker; a full stream is left to the redelivery.
_SEND_REST_SECONDS = 5.0
# Without it a shard that fails at once would go round in a busy loop.
_NACK_DELAY_SECONDS = 2.0


async def split_shard(in_flight: InFlightShard) -> None:
    """Publishes each sample in a message of its own."""
    # Before the first send: a single sample may come back here while this shard is not removed yet.
    in_flight.is_forwarded = True
    for sample in tuple(in_flight.unfinished):
        await in_flight.message.send_single(sample)


class Disposition(StrEnum):
    """The end of a delivery."""

    ACKNOWLEDGED = "acknowledged"
    TERMINATED = "terminated"
    FORWARDED = "forwarded"
    NACKED = "nacked"


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Collaborators shared by all shards of one worker process."""

    in_flight: InFlightShards
    prefetch: Prefetch
    run_states: RunStates
    refused_runs: RefusedRuns
    # Set once the worker pulls nothing new.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class ProcessShard:
    executor: ExecuteShard
    context: WorkerContext
    clock: Clock

    async def process(self, in_flight: InFlightShard) -> None:
        """Never raises: a shard that fails here is redelivered, and split when it keeps failing."""
        facts: dict[str, str | int] = {
            "proctor.run_id": str(in_flight.shard.run_id),
            "proctor.samples": len(in_flight.unfinished),
        }
        with span("process shard", SpanKind.CONSUMER, parent=in_flight.message.trace, attributes=facts):
            await self._process(in_flight)

    async def _process(self, in_flight: InFlightShard) -> None:
        started = self.clock.monotonic()
        disposition = Disposition.NACKED
        try:
            disposition = await self._execute_and_finish(in_flight)
        except Exception as error:  # the edge of the consumer
            shard = in_flight.shard
            log.error("shard failed", run_id=shard.run_id, shard=shard.number, exc_info=error)
            await _nack_safely(in_flight)
        finally:
            is_finished = disposition is Disposition.ACKNOWLEDGED
            # Executed samples were already subtracted; subtract the rest.
            self.context.prefetch.drop(len(in_flight.unfinished))
            self.context.prefetch.release(len(in_flight.shard.samples))
            self.context.prefetch.free_slots(in_flight.priority, in_flight.rollouts)
            # Last: until here a redelivery finds the shard in flight and does not start it again.
            self.context.in_flight.remove(in_flight, is_finished=is_finished)
        seconds = self.clock.monotonic() - started
        SHARDS.labels(disposition.value).inc()
        SHARD_SECONDS.observe(seconds)
        REDELIVERIES.inc(in_flight.failed_deliveries > 0)
        _log(in_flight, disposition, seconds)

    async def _execute_and_finish(self, in_flight: InFlightShard) -> Disposition:
        run_states = self.context.run_states
        if not run_states.may_start(in_flight.shard):
            is_current = run_states.is_current(in_flight.shard)
            in_flight.abandon(Abandoned.RUN_WAITS if is_current else Abandoned.RUN_FINISHED)
            return await finish_shard(in_flight, ShardEnd.COMPLETE)
        if in_flight.needs_splitting:
            await split_shard(in_flight)
            return await finish_shard(in_flight, ShardEnd.COMPLETE)
        return await finish_shard(in_flight, await self._execute(in_flight))

    async def _execute(self, in_flight: InFlightShard) -> ShardEnd:
        """Executes in a task of its own.

        Abandoning the shard cancels its execution and not its acknowledgement.
        """
        if in_flight.abandoned is not None:
            return ShardEnd.ABANDONED
        task = asyncio.create_task(self._run_executor(in_flight), name="execute shard")
        in_flight.executing = task
        try:
            # `wait` and not `await task`: a cancelled task is a result here, and no error.
            await asyncio.wait((task,))
        finally:
            task.cancel()
        if task.cancelled():
            return ShardEnd.ABANDONED
        end = task.result()
        if end in (ShardEnd.ENGINE_LOST, ShardEnd.ENGINE_DIED):
            # The engine is loaded again before anything new is pulled.
            self.context.prefetch.close()
        return end

    async def _run_executor(self, in_flight: InFlightShard) -> ShardEnd:
        """A refused shard is forwarded after a short wait, during which it takes no room from other runs."""
        end = await self.executor.execute(in_flight)
        if end is ShardEnd.RUN_REFUSED:
            unfinished, samples = len(in_flight.unfinished), len(in_flight.shard.samples)
            with self.context.prefetch.suspended(unfinished, samples):
                await asyncio.sleep(_REFUSED_SECONDS)
        return end


async def finish_shard(in_flight: InFlightShard, end: ShardEnd) -> Disposition:
    """Acknowledges only after the outcomes are stored durably; raises where they are not."""
    # Without waiting for outcomes: a run that comes back asks for what is missing.
    if in_flight.abandoned in (Abandoned.RUN_FINISHED, Abandoned.RUN_WAITS):
        await in_flight.message.terminate()
        return Disposition.TERMINATED
    await in_flight.until_published()
    # An engine that died after the last answer has left nothing to forward.
    if end is ShardEnd.COMPLETE or not in_flight.unfinished:
        await in_flight.message.acknowledge()
        return Disposition.ACKNOWLEDGED
    return await _forward_rest(in_flight, end)


async def _forward_rest(in_flight: InFlightShard, end: ShardEnd) -> Disposition:
    """Publishes the samples without an answer. A drain does not count as a failed delivery."""
    # ENGINE_LOST does not count: the engine never started, so no sample can be the cause.
    failed_deliveries = in_flight.failed_deliveries + (end is ShardEnd.ENGINE_DIED)
    in_flight.is_forwarded = True
    try:
        async with asyncio.timeout(_SEND_REST_SECONDS):
            rest = tuple(in_flight.unfinished)
            await in_flight.message.send_rest(rest, failed_deliveries=failed_deliveries)
    except TimeoutError:
        await in_flight.message.nack(_NACK_DELAY_SECONDS)
        return Disposition.NACKED
    await in_flight.message.acknowledge()
    return Disposition.FORWARDED


async def _nack_safely(in_flight: InFlightShard) -> None:
    try:
        await in_flight.message.nack(_NACK_DELAY_SECONDS)
    except Exception as error:  # noqa: BLE001  # it is redelivered by itself after its ack deadline
        log.warning("shard not nacked", shard=in_flight.shard.number, error=repr(error))


def _log(in_flight: InFlightShard, disposition: Disposition, seconds: float) -> None:
    shard = in_flight.shard
    log.info(
        "shard",
        run_id=shard.run_id,
        shard=shard.number,
        attempt=shard.attempt,
        task=shard.task,
        samples=len(shard.samples),
        unfinished=len(in_flight.unfinished),
        failed=in_flight.failed,
        disposition=disposition.value,
        seconds=round(seconds, 3),
    )
