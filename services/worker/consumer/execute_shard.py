"""Executes the samples of a shard, within the worker's concurrency limit."""

import asyncio
from dataclasses import dataclass, replace
from enum import Enum, auto

from proctor.values.outcome import Failure, Outcome
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.in_flight import InFlightShard
from services.worker.consumer.prefetch import Prefetch
from services.worker.engines.errors import EngineDied, ModelCannotLoad, ModelRefused
from services.worker.execution.execute_sample import ExecuteSample
from services.worker.execution.outcome_batcher import OutcomeBatcher
from services.worker.execution.shard import ShardSample
from services.worker.rollouts.process_rollout import ProcessRollout


class ShardEnd(Enum):
    """How the work on a shard ended. All but COMPLETE leave a rest, for another worker or engine."""

    COMPLETE = auto()
    ABANDONED = auto()
    # The provider refuses every request of the run; the heartbeat reports it, so the scheduler fails it.
    RUN_REFUSED = auto()
    # The engine could not be started.
    ENGINE_LOST = auto()
    # Maybe because of one of the samples.
    ENGINE_DIED = auto()


@dataclass(frozen=True, slots=True)
class ExecuteShard:
    execute_sample: ExecuteSample
    process_rollout: ProcessRollout
    batcher: OutcomeBatcher
    concurrency: ConcurrencyLimit
    prefetch: Prefetch

    async def execute(self, in_flight: InFlightShard) -> ShardEnd:
        """Executes the unfinished samples."""
        end = ShardEnd.COMPLETE
        try:
            # If the engine dies again, it is known which sample did it.
            if in_flight.failed_deliveries and len(in_flight.shard.samples) == 1 and not in_flight.rollouts:
                await self._execute_alone(in_flight)
            else:
                await self._execute_all(in_flight)
        except* ModelRefused:
            end = ShardEnd.RUN_REFUSED
        except* ModelCannotLoad:
            end = ShardEnd.ENGINE_LOST
        except* EngineDied:
            end = ShardEnd.ENGINE_DIED
        finally:
            # Also after an error: the shard is acknowledged or forwarded only when these are stored.
            self.batcher.flush(in_flight.shard)
        return end

    async def _execute_all(self, in_flight: InFlightShard) -> None:
        async with asyncio.TaskGroup() as group:
            for sample in list(in_flight.unfinished.values()):
                # In this loop and not in the tasks: samples start in order, and tasks do not pile up.
                await self.concurrency.acquire()
                in_flight.has_started = True
                task = group.create_task(self._execute_one(in_flight, sample), name="execute sample")
                # Not in the task itself: one that is cancelled before its first step runs none of it.
                task.add_done_callback(lambda _: self.concurrency.release())

    async def _execute_alone(self, in_flight: InFlightShard) -> None:
        async with self.concurrency.exclusive():
            in_flight.has_started = True
            for sample in list(in_flight.unfinished.values()):
                await self._execute_one(in_flight, sample)

    async def _execute_one(self, in_flight: InFlightShard, sample: ShardSample) -> None:
        is_rollout = bool(sample.rollout_spec)
        execute = self.process_rollout.process if is_rollout else self.execute_sample.execute
        began = self.concurrency.gpu_seconds
        outcome = await execute(in_flight.shard, sample)
        # Before the outcome is queued: a shard that is abandoned now must not send this sample again.
        del in_flight.unfinished[sample.number]
        self.prefetch.finish(1)
        if outcome is not None:
            used = self.concurrency.gpu_seconds - began
            record(in_flight, replace(outcome, gpu_seconds=used) if used else outcome, self.batcher)


def record(in_flight: InFlightShard, outcome: Outcome, batcher: OutcomeBatcher) -> None:
    """Queues the outcome for publishing; the shard is acknowledged only after that."""
    in_flight.failed += isinstance(outcome.result, Failure)
    in_flight.published.add(batcher.add(in_flight.shard, outcome))
