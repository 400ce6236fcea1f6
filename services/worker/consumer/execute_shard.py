"""Executes the samples of a shard, within the worker's concurrency limit."""

import asyncio
from dataclasses import dataclass, replace
from enum import Enum, auto

from proctor.values.outcome import Failure, FailureClass, Outcome
from proctor.values.priority import Priority
from services.worker.consumer.concurrency_limit import ConcurrencyLimit
from services.worker.consumer.in_flight import InFlightShard
from services.worker.consumer.ports import Quarantine
from services.worker.consumer.prefetch import Prefetch
from services.worker.engines.errors import EngineDied, ModelCannotLoad, ModelRefused
from services.worker.execution.execute_sample import ExecuteSample
from services.worker.execution.outcome_batcher import OutcomeBatcher
from services.worker.execution.shard import ShardSample
from services.worker.rollouts.process_rollout import ProcessRollout

# A worker may end by chance while it executes a sample alone, but hardly so often with the same one. Each
# more costs an engine's restart of minutes.
_ENDS_ALLOWED = 3


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


@dataclass(slots=True)
class SamplePlace:
    """The place of a sample that is executed. A rollout that rests gives it to others."""

    concurrency: ConcurrencyLimit
    prefetch: Prefetch
    priority: Priority
    is_given: bool = False

    def give(self) -> None:
        self.is_given = True
        self.concurrency.release()
        self.prefetch.lend(self.priority)

    async def take(self) -> None:
        await self.concurrency.acquire()
        self._take_back()

    def end(self, _: object = None) -> None:
        """The sample is executed, or cancelled."""
        if self.is_given:
            self._take_back()
        else:
            self.concurrency.release()

    def _take_back(self) -> None:
        self.is_given = False
        self.prefetch.take_back(self.priority)


@dataclass(frozen=True, slots=True)
class ExecuteShard:
    execute_sample: ExecuteSample
    process_rollout: ProcessRollout
    batcher: OutcomeBatcher
    concurrency: ConcurrencyLimit
    prefetch: Prefetch
    quarantine: Quarantine

    async def execute(self, in_flight: InFlightShard) -> ShardEnd:
        """Executes the unfinished samples."""
        end = ShardEnd.COMPLETE
        try:
            # Also after an error: the shard is acknowledged or forwarded only when its outcomes are stored.
            with self.batcher.executed(in_flight.shard):
                # If the engine or the worker dies again, it is known which sample did it.
                if in_flight.is_suspect:
                    await self._execute_alone(in_flight)
                else:
                    await self._execute_all(in_flight)
        except* ModelRefused:
            end = ShardEnd.RUN_REFUSED
        except* ModelCannotLoad:
            end = ShardEnd.ENGINE_LOST
        except* EngineDied:
            end = ShardEnd.ENGINE_DIED
        return end

    async def _execute_all(self, in_flight: InFlightShard) -> None:
        async with asyncio.TaskGroup() as group:
            for sample in list(in_flight.unfinished.values()):
                # In this loop and not in the tasks: samples start in order, and tasks do not pile up.
                await self.concurrency.acquire()
                in_flight.has_started = True
                place = self._place(in_flight, sample)
                task = group.create_task(self._execute_one(in_flight, sample, place), name="execute sample")
                # Not in the task itself: one that is cancelled before its first step runs none of it.
                task.add_done_callback(place.end if place else self.concurrency.release)

    def _place(self, in_flight: InFlightShard, sample: ShardSample) -> SamplePlace | None:
        """Only a rollout gives its place to others."""
        if sample.rollout_spec is None:
            return None
        return SamplePlace(self.concurrency, self.prefetch, in_flight.priority)

    async def _execute_alone(self, in_flight: InFlightShard) -> None:
        async with self.concurrency.exclusive():
            in_flight.has_started = True
            for sample in list(in_flight.unfinished.values()):
                await self._execute_suspect(in_flight, sample)

    async def _execute_suspect(self, in_flight: InFlightShard, sample: ShardSample) -> None:
        """Fails a sample with which too many workers and engines have ended while it was alone in them."""
        shard = in_flight.shard
        ends = await self.quarantine.begin(shard, sample.number)
        if ends >= _ENDS_ALLOWED:
            message = f"This sample was executed alone {ends} times, and its engine or worker died each time."
            failure = Failure(FailureClass.ENGINE, message)
            self._finish(in_flight, sample, shard.outcome(sample.number, failure))
            return
        try:
            await self._execute_one(in_flight, sample)
        except (ModelRefused, ModelCannotLoad, asyncio.CancelledError):
            # Neither these nor a drain are the sample's fault. After any other error its execution counts.
            await self.quarantine.end(shard, sample.number)
            raise
        await self.quarantine.end(shard, sample.number)

    async def _execute_one(
        self, in_flight: InFlightShard, sample: ShardSample, place: SamplePlace | None = None
    ) -> None:
        """Without a `place` a rollout keeps its own."""
        began = self.concurrency.gpu_seconds
        if sample.rollout_spec:
            outcome = await self.process_rollout.process(in_flight.shard, sample, place)
        else:
            outcome = await self.execute_sample.execute(in_flight.shard, sample)
        used = self.concurrency.gpu_seconds - began
        self._finish(in_flight, sample, replace(outcome, gpu_seconds=used) if outcome and used else outcome)

    def _finish(self, in_flight: InFlightShard, sample: ShardSample, outcome: Outcome | None) -> None:
        """Queues the outcome for publishing; the shard is acknowledged only after that."""
        # Before the outcome is queued: a shard that is abandoned now must not send this sample again.
        del in_flight.unfinished[sample.number]
        self.prefetch.finish(1)
        if outcome is not None:
            in_flight.failed += isinstance(outcome.result, Failure)
            in_flight.published.add(self.batcher.add(in_flight.shard, outcome))
