"""Selects the model of the pool that the worker switches to: the one that has waited longest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.common.clock import Clock
from services.worker.consumer.ports import ModelWork, PeerWorker, ShardSource, WorkerRegistry
from services.worker.models.model_loader import ModelLoader

# Maximum number of claims in a row: then the others of a large pool go first, and the next look decides.
_CLAIMS_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class SwitchPolicy:
    """How long a worker keeps its model: without work for it, and while it has work."""

    # Longer than a gap between two shards of one run, or a model would be swapped in the middle of it.
    idle_seconds: float
    # A model loads for minutes: short stays would mean a pool that mostly loads.
    min_residency_seconds: float


@dataclass(frozen=True, slots=True)
class SelectModel:
    source: ShardSource
    registry: WorkerRegistry
    loader: ModelLoader
    clock: Clock
    policy: SwitchPolicy

    async def select(self, *, is_idle: bool) -> str | None:
        """The model to switch to; None where the worker keeps its own.

        An idle worker switches to the model that waits longest. One whose own model has work keeps it for the
        minimum residency, and then leaves it only for a model that no worker serves and that waited as long.
        """
        if not is_idle and self.loader.residency_seconds < self.policy.min_residency_seconds:
            return None
        work = await self._work()
        return self._pick(work, await self.registry.peers(), is_idle=is_idle) if work else None

    async def claim(self, *, is_idle: bool) -> str | None:
        """Selects a model like `select`, and claims it, so that the peers see which model this worker loads.

        Of workers that decide by the same state of the pool one gets its model; the others decide again.
        """
        # An idle worker asks no more than before.
        if await self.select(is_idle=is_idle) is None:
            return None
        for _ in range(_CLAIMS_AT_ONCE):
            # Before the state is read again: a switch after this reading makes the report fail.
            last_switch = await self.registry.last_switch()
            model = await self.select(is_idle=is_idle)
            if model is None or last_switch is None:
                return None
            # Before the report, since the heartbeat that goes out with it names the model.
            self.loader.switching_to = model
            if await self.registry.report_switch(after=last_switch):
                return model
            self.loader.switching_to = None
        return None

    def _pick(self, work: Sequence[ModelWork], peers: Sequence[PeerWorker], *, is_idle: bool) -> str | None:
        if not is_idle:
            return oldest(unserved(work, peers), before=self._ago(self.policy.min_residency_seconds))
        # Models that no peer serves come first, then those with more shards than workers on the way.
        underserved = oldest(behind(work, peers), before=self._ago(self.policy.idle_seconds))
        return oldest(unserved(work, peers)) or underserved

    async def _work(self) -> Sequence[ModelWork]:
        """That of the models that this worker could load and does not serve now."""
        ready = self.loader.ready_models
        others = [model for model in self.loader.models if model not in ready and self.loader.may_load(model)]
        return await self.source.work_of(others) if others else ()

    def _ago(self, seconds: float) -> datetime:
        return self.clock.now() - timedelta(seconds=seconds)


def unserved(work: Sequence[ModelWork], peers: Sequence[PeerWorker]) -> Sequence[ModelWork]:
    """The work of models that no peer serves or switches to."""
    return [
        each
        for each in work
        if not any(peer.serves(each.model) or peer.loading_model == each.model for peer in peers)
    ]


def behind(work: Sequence[ModelWork], peers: Sequence[PeerWorker]) -> Sequence[ModelWork]:
    """The work with more undelivered shards than peers on the way: each shard is worth a worker."""
    return [
        each for each in work if each.undelivered > sum(peer.loading_model == each.model for peer in peers)
    ]


def oldest(work: Sequence[ModelWork], *, before: datetime | None = None) -> str | None:
    """The model that has waited longest; with `before`, only if it has waited since then."""
    old_enough = [each for each in work if before is None or each.since <= before]
    return min(old_enough, key=lambda each: each.since).model if old_enough else None
