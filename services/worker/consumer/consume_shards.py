"""The worker's main loop: pull shards of the loaded model, process them, switch models."""

import asyncio
from collections.abc import Mapping

from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.worker.consumer.in_flight import Abandoned, ShardMessage
from services.worker.consumer.process_shard import ProcessShard, WorkerContext
from services.worker.consumer.select_model import SelectModel, ShardSource
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


class ShardConsumer:
    def __init__(
        self,
        source: ShardSource,
        loader: ModelLoader,
        processor: ProcessShard,
        context: WorkerContext,
        selector: SelectModel,
    ) -> None:
        self._source = source
        self._loader = loader
        self._processor = processor
        self._in_flight = context.in_flight
        self._prefetch = context.prefetch
        self._run_states = context.run_states
        self._refused_runs = context.refused_runs
        self._selector = selector
        self._selected: str | None = None
        self._stopping = asyncio.Event()
        # How often the states of runs have changed.
        self._changes = 0
        self._load_checks = QuietChecks(_SELECT_MODEL_SECONDS)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def refused_runs(self) -> Mapping[tuple[RunId, int], str]:
        """Run and epoch to the provider's own reason why it refuses every request of it."""
        return self._refused_runs.reasons

    async def run(self) -> None:
        """Consumes until `stop`, then until no shard is in flight."""
        if self._loader.serves_any:
            await self._loader.describe()
        else:
            self._selected = await self._selector.select(is_idle=True) or self._loader.models[0]
        async with asyncio.TaskGroup() as shards:
            while not self._stopping.is_set():
                if self._loader.serves_any or await self._load_selected():
                    await self._consume(shards)

    def stop(self) -> None:
        """Pulls nothing new."""
        self._stopping.set()
        self._prefetch.close()

    def abandon_ended(self) -> None:
        """Abandons shards of runs that ended, and those not yet started of runs that wait."""
        self._changes += 1
        for in_flight in self._in_flight:
            if not self._run_states.is_live(in_flight.shard):
                in_flight.abandon(Abandoned.RUN_ENDED)
            elif not in_flight.has_started and not self._run_states.may_start(in_flight.shard):
                in_flight.abandon(Abandoned.RUN_WAITS)

    async def drain(self, limit_seconds: float) -> None:
        """Finishes what is in flight; what takes longer than the limit is forwarded to other workers."""
        try:
            async with asyncio.timeout(limit_seconds):
                await self._prefetch.until_empty()
        except TimeoutError:
            for in_flight in self._in_flight:
                in_flight.abandon(Abandoned.DRAINING)
            await self._prefetch.until_empty()

    async def _load_selected(self) -> bool:
        """Whether a model is loaded; waits a little where no model that could be loaded has work."""
        may_load = self._selected is not None and self._loader.may_load(self._selected)
        if not may_load and self._load_checks.is_due((self._changes, len(self._loader.cannot_load))):
            self._selected = await self._select_and_announce(self._stopping)
            may_load = self._selected is not None
        if self._selected is None or not may_load:
            await _is_set_within(self._stopping, _SELECT_MODEL_SECONDS)
            return False
        await self._prefetch.until_empty()
        is_loaded = await self._loader.load(self._selected)
        # Where the selected one alone is refused, those that share its engine are served.
        self._selected = next(iter(self._loader.ready_models), self._selected)
        return is_loaded

    async def _consume(self, shards: asyncio.TaskGroup) -> None:
        """Pulls until prefetching is closed: for a model switch, a new engine, or the end."""
        models = (None,) if self._loader.serves_any else self._loader.ready_models
        if not self._stopping.is_set():
            self._prefetch.open()
        async with asyncio.TaskGroup() as pulls:
            for priority in Priority:
                for model in models:
                    pull = self._pull(model, priority, shards)
                    pulls.create_task(pull, name=f"pull {priority} {model or ''}")
            if len(self._loader.models) > len(models):
                pulls.create_task(self._watch_other_models(), name="watch other models")

    async def _pull(self, model: str | None, priority: Priority, shards: asyncio.TaskGroup) -> None:
        try:
            while await self._is_wanted(model, priority, shards):
                message = await self._source.pull(model, priority)
                self._prefetch.report(priority, model, is_flowing=message is not None)
                await self._accept(message, shards)
        finally:
            self._prefetch.close()  # where one pull fails, the others end too

    async def _is_wanted(self, model: str | None, priority: Priority, shards: asyncio.TaskGroup) -> bool:
        """Waits for room. Without it, a shard that a waiting pull brings is for another worker to execute."""
        if self._prefetch.closed.is_set() or not self._prefetch.has_room(priority):
            await self._accept(await self._source.hold(model, priority), shards)
        return await self._prefetch.until_room(priority)

    async def _accept(self, message: ShardMessage | None, shards: asyncio.TaskGroup) -> None:
        if message is None:
            return
        if self._in_flight.is_finished(message):
            await message.acknowledge()
            return
        in_flight = self._in_flight.add(message)
        if in_flight is None:
            return
        self._prefetch.add(len(in_flight.unfinished), len(in_flight.shard.samples))
        shards.create_task(self._processor.process(in_flight), name="shard")

    async def _watch_other_models(self) -> None:
        """Shards in flight are finished before the next model is loaded."""
        checks = QuietChecks(self._selector.policy.idle_seconds)
        while not await _is_set_within(self._prefetch.closed, checks.first_seconds):
            if not checks.is_due((self._changes, self._prefetch.is_idle())):
                continue
            other = await self._select_and_announce(self._prefetch.closed)
            if other is not None:
                self._selected = other
                self._prefetch.close()

    async def _select_and_announce(self, cancelled: asyncio.Event) -> str | None:
        """The model to switch to, once the peers know of it and none of them has precedence."""
        model = await self._selector.select(is_idle=self._prefetch.is_idle())
        if model is None:
            return None
        self._loader.switching_to = model
        is_cancelled = await _is_set_within(cancelled, _ANNOUNCED_SECONDS)
        is_idle = self._prefetch.is_idle()
        if is_cancelled or not await self._selector.is_still_best(model, is_idle=is_idle):
            self._loader.switching_to = None
            return None
        return model


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
