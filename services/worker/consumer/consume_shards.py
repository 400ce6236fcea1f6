"""The worker's main loop: pull shards of the loaded model, process them, switch models."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.worker.consumer.in_flight import Abandoned, ShardMessage
from services.worker.consumer.ports import ShardSource
from services.worker.consumer.process_shard import ProcessShard, WorkerContext
from services.worker.consumer.select_model import SelectModel
from services.worker.models.load_models import ModelLoader

_SELECT_MODEL_SECONDS = 1.0
# By then a heartbeat has reported to the peers which model this worker switches to.
_ANNOUNCED_SECONDS = 0.5
# Work that no change of a run's state announced is found after this time.
_LONGEST_PAUSE_SECONDS = 20.0


class QuietChecks:
    """When to look for work of other models: often after news, more and more rarely while there is none."""

    def __init__(self, first_seconds: float) -> None:
        self.first_seconds = first_seconds
        self._pause_seconds = first_seconds
        self._next_at = 0.0
        self._known: object = None

    def is_due(self, news: object) -> bool:
        """`news` differs from that of the call before where something has happened."""
        now = asyncio.get_running_loop().time()
        if news != self._known:
            self._known, self._pause_seconds, self._next_at = news, self.first_seconds, now
        if now < self._next_at:
            return False
        self._next_at = now + self._pause_seconds
        self._pause_seconds = max(self.first_seconds, min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS))
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
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    # How often the states of runs have changed.
    _changes: int = field(default=0, init=False)
    _load_checks: QuietChecks = field(default_factory=lambda: QuietChecks(_SELECT_MODEL_SECONDS), init=False)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def refused_runs(self) -> Mapping[tuple[RunId, int], str]:
        """Run and epoch to the provider's own reason why it refuses every request of it."""
        return self.context.refused_runs.reasons

    async def run(self) -> None:
        """Consumes until `stop`, then until no shard is in flight."""
        if self.loader.serves_any:
            await self.loader.describe()
        else:
            self._selected = await self.selector.select(is_idle=True) or self.loader.models[0]
        async with asyncio.TaskGroup() as shards:
            while not self._stopping.is_set():
                if self.loader.serves_any or await self._load_selected():
                    await self._consume(shards)

    def stop(self) -> None:
        """Pulls nothing new."""
        self._stopping.set()
        self.context.prefetch.close()

    def abandon_ended(self) -> None:
        """Abandons shards of runs that ended, and those not yet started of runs that wait."""
        self._changes += 1
        for in_flight in self.context.in_flight:
            if not self.context.run_states.is_live(in_flight.shard):
                in_flight.abandon(Abandoned.RUN_ENDED)
            elif not in_flight.has_started and not self.context.run_states.may_start(in_flight.shard):
                in_flight.abandon(Abandoned.RUN_WAITS)

    async def drain(self, limit_seconds: float) -> None:
        """Finishes what is in flight; what takes longer than the limit is forwarded to other workers."""
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
        if not may_load and self._load_checks.is_due((self._changes, len(self.loader.cannot_load))):
            self._selected = await self._select_and_announce(self._stopping)
            may_load = self._selected is not None
        if self._selected is None or not may_load:
            await _is_set_within(self._stopping, _SELECT_MODEL_SECONDS)
            return False
        await self.context.prefetch.until_empty()
        is_loaded = await self.loader.load(self._selected)
        # If only the selected model is refused, the others that share its engine are served.
        self._selected = next(iter(self.loader.ready_models), self._selected)
        return is_loaded

    async def _consume(self, shards: asyncio.TaskGroup) -> None:
        """Pulls until prefetching is closed: for a model switch, a new engine, or the end."""
        models = (None,) if self.loader.serves_any else self.loader.ready_models
        if not self._stopping.is_set():
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
            while await self._is_wanted(model, priority, shards):
                message = await self.source.pull(model, priority)
                self.context.prefetch.report(priority, model, is_flowing=message is not None)
                await self._accept(message, shards)
        finally:
            self.context.prefetch.close()  # where one pull fails, the others end too

    async def _is_wanted(self, model: str | None, priority: Priority, shards: asyncio.TaskGroup) -> bool:
        """Waits for room. Without it, a shard that a waiting pull brings is for another worker to execute."""
        if self.context.prefetch.closed.is_set() or not self.context.prefetch.has_room(priority):
            await self._accept(await self.source.hold(model, priority), shards)
        return await self.context.prefetch.until_room(priority)

    async def _accept(self, message: ShardMessage | None, shards: asyncio.TaskGroup) -> None:
        if message is None:
            return
        if self.context.in_flight.is_finished(message):
            await message.acknowledge()
            return
        in_flight = self.context.in_flight.add(message)
        if in_flight is None:
            return
        self.context.prefetch.add(len(in_flight.unfinished), len(in_flight.shard.samples))
        shards.create_task(self.processor.process(in_flight), name="shard")

    async def _watch_other_models(self) -> None:
        """Shards in flight are finished before the next model is loaded."""
        checks = QuietChecks(self.selector.policy.idle_seconds)
        while not await _is_set_within(self.context.prefetch.closed, checks.first_seconds):
            if not checks.is_due((self._changes, self.context.prefetch.is_idle())):
                continue
            other = await self._select_and_announce(self.context.prefetch.closed)
            if other is not None:
                self._selected = other
                self.context.prefetch.close()

    async def _select_and_announce(self, cancelled: asyncio.Event) -> str | None:
        """The model to switch to, once the peers know of it and none of them has precedence."""
        model = await self.selector.select(is_idle=self.context.prefetch.is_idle())
        if model is None:
            return None
        self.loader.switching_to = model
        is_cancelled = await _is_set_within(cancelled, _ANNOUNCED_SECONDS)
        is_idle = self.context.prefetch.is_idle()
        if is_cancelled or not await self.selector.is_still_best(model, is_idle=is_idle):
            self.loader.switching_to = None
            return None
        return model


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
