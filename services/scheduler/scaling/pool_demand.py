"""How many workers a pool needs, by its backlog, its speed, its workers and what it needed before.

A backlog takes the same GPU time with few workers as with many, so a worker that is there stays while it has
work. A new one is worth its load time only if enough work is left once it has loaded.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# The weight of the latest measurement in an average: rows differ in length.
_LATEST_WEIGHT = 0.3
# Below this share of what they take at a time the workers that are there have room; others would find none.
_BUSY_SHARE = 0.5
# Among the models of a backlog: rollouts of all models, whose time says nothing of that of samples.
ROLLOUTS = "rollouts"


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """`backlog_seconds`: what is left once new workers have loaded shall be done in this time.

    `load_seconds` is assumed of an engine that has not loaded a model yet.
    """

    backlog_seconds: float
    load_seconds: float


@dataclass(frozen=True, slots=True)
class PoolMoment:
    """Observation of a pool. `backlog_samples`, by model, are of runs that have or soon get a slot.

    `speeds` are samples per second of one worker, of the models whose workers are busy. `load_seconds` is the
    time that a worker has just taken to load, None if none has.
    In workers: `busy` is what those that are ready have in flight; `useful`, how many find something to do;
    `for_rollouts`, how many have a slot for each rollout, 0 while nothing says how many slots one has.
    """

    backlog_samples: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    ready: int = 0
    busy: float = 0.0
    useful: float = 0.0
    for_rollouts: float = 0.0
    is_throttled: bool = False
    load_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PoolDemand:
    """Computed demand of a pool, and its measured speeds. It is stored, so that all replicas give one answer.

    `speeds` are samples per second of one worker by model, as measured so far.
    """

    pool: str
    workers: int = 0
    backlog_samples: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    load_seconds: float | None = None

    @property
    def is_active(self) -> bool:
        return self.workers > 0

    def backlog_seconds(self, model: str) -> float | None:
        """The time that one worker needs for its samples; None while its speed is unknown."""
        speed = self.speeds.get(model)
        return self.backlog_samples.get(model, 0.0) / speed if speed else None


def next_demand(before: PoolDemand, now: PoolMoment, rule: ScalingRule) -> PoolDemand:
    """The demand after an observation; `before` is that of the observation before."""
    learned = PoolDemand(
        pool=before.pool,
        workers=before.workers,
        backlog_samples=now.backlog_samples,
        speeds=_learned_speeds(before.speeds, now),
        load_seconds=before.load_seconds if now.load_seconds is None else now.load_seconds,
    )
    return PoolDemand(
        pool=before.pool,
        workers=_workers(learned, now, rule),
        backlog_samples=learned.backlog_samples,
        speeds=learned.speeds,
        load_seconds=learned.load_seconds,
    )


def _workers(learned: PoolDemand, now: PoolMoment, rule: ScalingRule) -> int:
    outstanding = sum(now.backlog_samples.values())
    if outstanding <= 0:
        # A worker that holds requests finishes them.
        return min(learned.workers, 1) if now.busy else 0
    # Never fewer while work is left: a worker that leaves and comes back loads its model again.
    kept = max(learned.workers, 1)
    return min(max(kept, _grown(learned, now, rule)), math.ceil(now.useful))


def _grown(learned: PoolDemand, now: PoolMoment, rule: ScalingRule) -> int:
    """Workers for what is left of the backlog after the time that a new worker takes to load.

    While a model's speed is unknown, one worker shows it. A rollout takes minutes, about as long as a backlog
    may, so each gets a slot at once.
    """
    # Throttled servers answer no faster to more workers.
    has_room = now.ready and now.busy < _BUSY_SHARE * now.ready
    if has_room or now.is_throttled:
        return 0
    worker_seconds = sum(learned.backlog_seconds(model) or 0.0 for model in now.backlog_samples)
    load_seconds = rule.load_seconds if learned.load_seconds is None else learned.load_seconds
    # What the present workers finish while a new one loads is not its work.
    left = worker_seconds - now.ready * load_seconds
    for_backlog = math.ceil(left / rule.backlog_seconds) if left > 0 else 0
    return max(for_backlog, math.ceil(now.for_rollouts))


def _learned_speeds(before: Mapping[str, float], now: PoolMoment) -> Mapping[str, float]:
    # Models without a busy worker keep their last speed.
    speeds = dict(before)
    for model, speed in now.speeds.items():
        known = speeds.get(model, speed)
        speeds[model] = known + _LATEST_WEIGHT * (speed - known)
    return speeds
