"""The worker's life: pull for the loaded model, work on what came, swap models when another has work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from services.worker.consumer.in_flight import Abandoned, ShardMessage
from services.worker.consumer.ports import ShardSource
from services.worker.consumer.process_shard import Desk, ShardWork
from services.worker.consumer.select_model import ModelChooser
from services.worker.execution.shard import RunId
from services.worker.models.load_models import ModelLoader

_LOOK_FOR_WORK_SECONDS = 1.0
# By then a heartbeat has told the others which model this worker turns to.
_TOLD_SECONDS = 0.5


class ShardServer:
    def __init__(
        self, source: ShardSource, loader: ModelLoader, work: ShardWork, desk: Desk, chooser: ModelChooser
    ) -> None:
        self._source = source
        self._loader = loader
        self._work = work
        self._desk = desk
        self._chooser = chooser
        self._wanted: str | None = None
        self._stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def refused_runs(self) -> Mapping[tuple[RunId, int], str]:
        """Run and epoch to the provider's own reason why it takes no request of it."""
        return self._desk.refused.reasons

    async def run(self) -> None:
        """Serves until told to stop, then until nothing is held."""
        if self._loader.serves_any:
            await self._loader.describe()
        else:
            self._wanted = await self._chooser.choose(is_idle=True) or self._loader.models[0]
        async with asyncio.TaskGroup() as shards:
            while not self._stopping.is_set():
                if self._loader.serves_any or await self._have_model():
                    await self._serve_loaded(shards)

    def stop(self) -> None:
        """Pulls nothing new."""
        self._stopping.set()
        self._desk.intake.close()

    def abandon_ended(self) -> None:
        """Aborts what is asked for runs that ended; of those that wait lets go of what is not begun."""
        for holding in self._desk.held:
            if not self._desk.states.wants(holding.shard):
                holding.abandon(Abandoned.RUN_ENDED)
            elif not holding.has_begun and not self._desk.states.may_begin(holding.shard):
                holding.abandon(Abandoned.RUN_WAITS)

    async def drain(self, limit_seconds: float) -> None:
        """Finishes what is held, or hands on what is not finished in time."""
        try:
            async with asyncio.timeout(limit_seconds):
                await self._desk.intake.until_empty()
        except TimeoutError:
            for holding in self._desk.held:
                holding.abandon(Abandoned.DRAINING)
            await self._desk.intake.until_empty()

    async def _have_model(self) -> bool:
        """Loads what is wanted, or waits a little for work of a model that could be loaded."""
        if self._wanted is None or not self._loader.may_load(self._wanted):
            self._wanted = await self._agree(self._stopping)
        if self._wanted is None:
            await _happened(self._stopping, _LOOK_FOR_WORK_SECONDS)
            return False
        await self._desk.intake.until_empty()
        is_loaded = await self._loader.load(self._wanted)
        # Where the wanted one alone is refused, those that share its engine are served.
        self._wanted = next(iter(self._loader.ready_models), self._wanted)
        return is_loaded

    async def _serve_loaded(self, shards: asyncio.TaskGroup) -> None:
        """Pulls for the loaded model until the intake closes: for another model, a new engine, or the end."""
        models = (None,) if self._loader.serves_any else self._loader.ready_models
        if not self._stopping.is_set():
            self._desk.intake.open()
        async with asyncio.TaskGroup() as pulls:
            for rank, priority in enumerate(self._source.priorities):
                for model in models:
                    pulls.create_task(self._pull(model, rank, shards), name=f"pull {priority} {model or ''}")
            if len(self._loader.models) > len(models):
                pulls.create_task(self._look_for_others(), name="look for other models")

    async def _pull(self, model: str | None, rank: int, shards: asyncio.TaskGroup) -> None:
        intake = self._desk.intake
        try:
            while await intake.turn(rank):
                messages = await self._source.pull(model, rank)
                intake.report(rank, model, came=bool(messages))
                for message in messages:
                    await self._accept(message, shards)
        finally:
            intake.close()  # none pulls on where another broke

    async def _accept(self, message: ShardMessage, shards: asyncio.TaskGroup) -> None:
        if self._desk.held.is_finished(message):
            await message.acknowledge()
            return
        holding = self._desk.held.take(message)
        if holding is None:
            return
        self._desk.intake.take(len(holding.unfinished), len(holding.shard.samples))
        shards.create_task(self._work.work_on(holding), name="shard")

    async def _look_for_others(self) -> None:
        """What is held when the intake closes is finished before the next model is loaded."""
        intake = self._desk.intake
        while not await _happened(intake.closed, self._chooser.look_seconds):
            other = await self._agree(intake.closed)
            if other is not None:
                self._wanted = other
                intake.close()

    async def _agree(self, given_up: asyncio.Event) -> str | None:
        """The model to turn to, once the other workers know of it and none of them came first."""
        intake = self._desk.intake
        model = await self._chooser.choose(is_idle=intake.is_idle())
        if model is None:
            return None
        self._loader.turning_to = model
        is_over = await _happened(given_up, _TOLD_SECONDS)
        if is_over or not await self._chooser.is_agreed(model, is_idle=intake.is_idle()):
            self._loader.turning_to = None
            return None
        return model


async def _happened(event: asyncio.Event, within_seconds: float) -> bool:
    try:
        async with asyncio.timeout(within_seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
