"""The leader computes how many workers each pool needs, and stores it for all replicas."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from proctor.values.messaging import ANY_MODEL
from proctor.values.providers.pool import Pool
from proctor.values.providers.worker import WorkerState
from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.runs.admission.forecast_queue import ForecastQueue, QueueForecast
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.scaling.pool_demand import (
    ROLLOUTS,
    PoolDemand,
    PoolMoment,
    ScalingRule,
    next_demand,
)
from services.scheduler.scaling.ports import DemandStore
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import Worker

log = get_logger()

# KEDA asks every few seconds, so a newer figure would not be read.
_ROUND_SECONDS = 5.0
# Every report of progress touches the queue, and a forecast costs several queries.
_MIN_ROUND_SECONDS = 1.0
# A run of unknown length needs a worker all the same.
_UNKNOWN_SAMPLES = 1.0


@dataclass(slots=True)
class PlanWorkers:
    """Keeps when it saw workers begin to load, beside what it stores."""

    pools: Sequence[Pool]
    registry: WorkerRegistry
    tracker: ProgressTracker
    forecasts: ForecastQueue
    store: DemandStore
    clock: Clock
    rule: ScalingRule
    _began_to_load: dict[str, float] = field(init=False, default_factory=dict)

    async def lead(self, token: FencingToken) -> NoReturn:
        """Every few seconds, and soon after the queue has changed."""
        while True:
            version = self.tracker.version(ANY_RUN)
            try:
                await self.plan(token)
            except LeadershipLost:
                raise
            except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
                log.warning("needs of pools not computed", error=repr(error))
            await asyncio.sleep(_MIN_ROUND_SECONDS)
            await self.tracker.wait_beyond(ANY_RUN, version, _ROUND_SECONDS, self.clock.monotonic())

    async def plan(self, token: FencingToken) -> None:
        known = (await self.store.demands()).by_pool
        forecast = await self.forecasts.forecast()
        demands = []
        for pool in self.pools:
            before = known.get(pool.name, PoolDemand(pool.name))
            after = next_demand(before, self._moment(pool, before, forecast), self._rule_of(pool))
            if after.workers != before.workers:
                log.info("workers wanted", pool=pool.name, workers=after.workers, before=before.workers)
            demands.append(after)
        await self.store.keep(token, demands, self.clock.now())

    def _rule_of(self, pool: Pool) -> ScalingRule:
        """A worker of a provider has nothing to load."""
        return ScalingRule(self.rule.backlog_seconds, 0.0) if pool.serves_any_model else self.rule

    def _moment(self, pool: Pool, before: PoolDemand, forecast: QueueForecast) -> PoolMoment:
        rule = self._rule_of(pool)
        # A worker that starts now is ready then, so runs with a slot by then are its work.
        ahead = rule.load_seconds if before.load_seconds is None else before.load_seconds
        samples: defaultdict[str, float] = defaultdict(float)
        # An order may bound how many of its rollouts are dispatched, over all its models.
        rollouts: defaultdict[str, float] = defaultdict(float)
        for run in forecast.runs_with_slots_within(ahead):
            if run.pool == pool.name:
                left = forecast.outcomes_left(run)
                left = _UNKNOWN_SAMPLES if left is None else left
                samples[_key(pool, run)] += left
                if group := run.order.parallel_group:
                    rollouts[group] = min(rollouts[group] + left, run.order.parallel or math.inf)
        workers = list(self.registry.table().pool(pool.name).by_key.values())
        ready = [worker for worker in workers if _is_ready(pool, worker)]
        slots = max((worker.rollout_slots for worker in workers), default=0)
        wanted_slots = sum(rollouts.values())
        useful = (sum(samples.values()) - samples.get(ROLLOUTS, 0.0)) / pool.concurrency
        return PoolMoment(
            backlog_samples=samples,
            speeds=dict(self._speeds(pool, ready, forecast.running)),
            ready=len(ready),
            busy=sum(_busy(pool, worker) for worker in ready),
            # A rollout that loses its worker begins anew: those that have one keep it.
            useful=max(
                useful + wanted_slots / (slots or 1), sum(worker.rollouts_in_flight > 0 for worker in ready)
            ),
            for_rollouts=wanted_slots / slots if slots else 0.0,
            is_throttled=any(worker.throttled_servers for worker in workers),
            load_seconds=self._loaded_seconds(pool, workers),
        )

    def _speeds(
        self, pool: Pool, ready: Sequence[Worker], running: Iterable[Run]
    ) -> Iterator[tuple[str, float]]:
        """Samples per second of one worker, of models whose workers have no room."""
        now = self.clock.monotonic()
        speeds: defaultdict[str, float] = defaultdict(float)
        for run in running:
            if run.pool == pool.name and not run.order.is_of_rollouts:
                speeds[_key(pool, run)] += self.tracker.samples_per_second(run.run_id, now) or 0.0
        for model, speed in speeds.items():
            serving = [worker for worker in ready if model == ANY_MODEL or worker.answers_for(model)]
            busy = sum(_busy(pool, worker) for worker in serving)
            # Half-idle workers are slow for want of samples: their speed would call for more of them.
            if serving and speed and 2 * busy >= len(serving):
                yield model, speed / len(serving)

    def _loaded_seconds(self, pool: Pool, workers: Sequence[Worker]) -> float | None:
        """The time that the last worker took which has loaded since the round before."""
        now, loaded = self.clock.monotonic(), None
        for worker in workers:
            if worker.state is WorkerState.LOADING:
                self._began_to_load.setdefault(worker.worker_id, now)
            # Whatever it became: a worker that failed to load says nothing about the time.
            elif (began := self._began_to_load.pop(worker.worker_id, None)) is not None and _is_ready(
                pool, worker
            ):
                loaded = now - began
        self._forget_gone()
        return loaded

    def _forget_gone(self) -> None:
        live = {worker.worker_id for worker in self.registry.workers()}
        for worker_id in self._began_to_load.keys() - live:
            del self._began_to_load[worker_id]


def _key(pool: Pool, run: Run) -> str:
    """Models of a provider are too many to show each."""
    if run.order.is_of_rollouts:
        return ROLLOUTS
    return ANY_MODEL if pool.serves_any_model else run.order.model


def _busy(pool: Pool, worker: Worker) -> float:
    """The share of what the worker takes at a time that is in flight."""
    of_rollouts = worker.rollouts_in_flight / worker.rollout_slots if worker.rollout_slots else 0.0
    return max(worker.samples_in_flight - worker.rollouts_in_flight, 0) / pool.concurrency + of_rollouts


def _is_ready(pool: Pool, worker: Worker) -> bool:
    return worker.state is WorkerState.READY and (pool.serves_any_model or bool(worker.loaded_model))


def models_of(pool: Pool) -> Mapping[str, None]:
    """The names by which its backlog is shown."""
    names = [ANY_MODEL] if pool.serves_any_model else [model.name for model in pool.models]
    return dict.fromkeys([*names, ROLLOUTS])
