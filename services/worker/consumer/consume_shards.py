"""The worker's main loop: pull shards of the loaded model, process them, switch models."""

import asyncio
from dataclasses import dataclass, field

from proctor.values.priority import Priority
from services.worker.consumer.in_flight import Abandoned
from services.worker.consumer.ports import ShardMessage, ShardSource
from services.worker.consumer.process_shard import ProcessShard, WorkerContext
from services.worker.consumer.select_model import SelectModel
from services.worker.models.model_loader import ModelLoader

# A round costs one request to NATS. A shorter pause would save little, since a model loads for minutes.
_SELECT_MODEL_SECONDS = 1.0
# Work that no change of a run's state announced is found after this time.
_MAX_PAUSE_SECONDS = 20.0


class PollBackoff:
    """When to poll for work of other models: at once after a change, else twice as rarely each time."""

    def __init__(self, first_seconds: float) -> None:
        self.first_seconds = first_seconds
        self._pause_seconds = first_seconds
        self._next_at = 0.0
        self._version: object = None

    def is_due(self, version: object) -> bool:
        """`version` differs from that of the call before where something has changed."""
        now = asyncio.get_running_loop().time()
        if version != self._version:
            # A change undoes the backoff: work that is announced is looked for at once.
            self._version, self._pause_seconds, self._next_at = version, self.first_seconds, now
        if now < self._next_at:
            return False
        self._next_at = now + self._pause_seconds
        self._pause_seconds = max(self.first_seconds, min(2 * self._pause_seconds, _MAX_PAUSE_SECONDS))
        return True


@dataclass(slots=True)
class ConsumeShards:
    """The main loop of a worker, with the model that it has selected. `run` it once, and `stop` it."""

    source: ShardSource
    loader: ModelLoader
    processor: ProcessShard
    context: WorkerContext
    selector: SelectModel
    _selected: str | None = field(default=None, init=False)
    # How often the states of runs have changed.
    _changes: int = field(default=0, init=False)
    _load_backoff: PollBackoff = field(default_factory=lambda: PollBackoff(_SELECT_MODEL_SECONDS), init=False)

    async def run(self) -> None:
        """Consumes until `stop`, then until no shard is in flight."""
        if self.loader.serves_any:
            await self.loader.describe()
        else:
            # A claim, as later: replicas that start together would all load the same model.
            self._selected = await self.selector.claim(is_idle=True) or self.loader.models[0]
        async with asyncio.TaskGroup() as shards:
            while not self.context.stopping.is_set():
                if self.loader.serves_any or await self._load_selected():
                    await self._consume(shards)

    def stop(self) -> None:
        """Pulls nothing new."""
        self.context.stopping.set()
        self.context.prefetch.close()

    def abandon_finished(self) -> None:
        """Abandons shards of finished runs and earlier epochs, and shards not yet started of waiting runs."""
        self._changes += 1
        for in_flight in self.context.in_flight:
            if not self.context.run_states.is_current(in_flight.shard):
                in_flight.abandon(Abandoned.RUN_FINISHED)
            elif not in_flight.has_started and not self.context.run_states.may_start(in_flight.shard):
                in_flight.abandon(Abandoned.RUN_WAITS)

    async def drain(self, limit_seconds: float) -> None:
        """Finishes shards in flight; those that take longer than the limit are forwarded to other workers."""
        try:
            async with asyncio.timeout(limit_seconds):
                await self.context.prefetch.until_empty()
        except TimeoutError:
            for in_flight in self.context.in_flight:
                in_flight.abandon(Abandoned.DRAINING)
            await self.context.prefetch.until_empty()

    async def _load_selected(self) -> bool:
        """Whether a model is loaded; waits a little where no model that could be loaded has work."""
        may_load = self._selected is not None and self.loader.may_load(self._selected)
        if not may_load and self._load_backoff.is_due((self._changes, len(self.loader.cannot_load))):
            self._selected = await self._claimed_model()
            may_load = self._selected is not None
        if self._selected is None or not may_load:
            await _is_set_within(self.context.stopping, _SELECT_MODEL_SECONDS)
            return False
        # The engine is about to change under the samples that it still answers.
        await self.context.prefetch.until_empty()
        is_loaded = await self.loader.load(self._selected)
        # If only the selected model is refused, the others that share its engine are served.
        self._selected = next(iter(self.loader.ready_models), self._selected)
        return is_loaded

    async def _consume(self, shards: asyncio.TaskGroup) -> None:
        """Pulls until prefetching is closed: for a model switch, a new engine, or the end."""
        models = (None,) if self.loader.serves_any else self.loader.ready_models
        if not self.context.stopping.is_set():
            self.context.prefetch.open()
        async with asyncio.TaskGroup() as pulls:
            for priority in Priority:
                for model in models:
                    pull = self._pull(model, priority, shards)
                    pulls.create_task(pull, name=f"pull {priority} {model or ''}")
            if len(self.loader.models) > len(models):
                pulls.create_task(self._watch_other_models(), name="watch other models")

    async def _pull(self, model: str | None, priority: Priority, shards: asyncio.TaskGroup) -> None:
        try:
            # One task for each model and priority: a pull waits at the server, so it cannot serve two.
            while await self._hold_until_room(model, priority, shards):
                message = await self.source.pull(model, priority)
                self.context.prefetch.report(priority, model, is_flowing=message is not None)
                await self._accept(message, priority, shards)
        finally:
            self.context.prefetch.close()  # where one pull fails, the others end too

    async def _hold_until_room(
        self, model: str | None, priority: Priority, shards: asyncio.TaskGroup
    ) -> bool:
        """Holds the pull while there is no room, and accepts what has come already. False at the end.

        What comes meanwhile is for another worker to execute.
        """
        if self.context.prefetch.closed.is_set() or not self.context.prefetch.has_room(priority):
            await self._accept(await self.source.hold(model, priority), priority, shards)
        return await self.context.prefetch.until_room(priority)

    async def _accept(
        self, message: ShardMessage | None, priority: Priority, shards: asyncio.TaskGroup
    ) -> None:
        if message is None:
            return
        # Its outcomes are stored: asking again would cost money and change nothing.
        if self.context.in_flight.is_finished(message):
            await message.acknowledge()
            return
        in_flight = self.context.in_flight.add(message, priority)
        # A redelivery of what this worker executes: its ack deadline passed. It is not asked twice.
        if in_flight is None:
            return
        self.context.prefetch.add(len(in_flight.unfinished), len(in_flight.shard.samples))
        self.context.prefetch.take_slots(priority, in_flight.rollouts)
        shards.create_task(self.processor.process(in_flight), name="shard")

    async def _watch_other_models(self) -> None:
        """Shards in flight are finished before the next model is loaded."""
        backoff = PollBackoff(self.selector.policy.idle_seconds)
        while not await _is_set_within(self.context.prefetch.closed, backoff.first_seconds):
            if not backoff.is_due((self._changes, self.context.prefetch.is_idle())):
                continue
            other = await self._claimed_model()
            if other is not None:
                self._selected = other
                self.context.prefetch.close()

    async def _claimed_model(self) -> str | None:
        return await self.selector.claim(is_idle=self.context.prefetch.is_idle())


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
