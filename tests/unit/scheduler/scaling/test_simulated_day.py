"""A simulated day of a GPU pool: bursts of runs, models that load for minutes, spot nodes that vanish."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from services.scheduler.scaling.pool_demand import PoolDemand, PoolMoment, ScalingRule, next_demand
from tests.fakes.scheduler.autoscaled_pool import (
    STEP_SECONDS,
    FakeAutoscaler,
    ScaledObjectSpec,
    SimulatedPool,
    SimulatedRun,
)

DAY = 24 * 3600
NODE_SECONDS = 180.0
LOAD_SECONDS = 480.0
SPEED = 4.0
CONCURRENCY = 64
MODEL = "vllm/large"
RULE = ScalingRule(backlog_seconds=600, load_seconds=120)


@dataclass
class Day:
    """One day; `lost_at` are times at which half of the workers vanish."""

    runs: Sequence[SimulatedRun]
    spec: ScaledObjectSpec = field(default_factory=lambda: ScaledObjectSpec(max_replicas=16))
    lost_at: Sequence[int] = ()
    # The scaler answers UNAVAILABLE: no scheduler leads.
    away: range = range(0)

    def simulate(self) -> SimulatedPool:
        pool = SimulatedPool(NODE_SECONDS, LOAD_SECONDS, SPEED, CONCURRENCY, slots=3, runs=list(self.runs))
        demand, now = PoolDemand("gpu"), 0
        scaler = FakeAutoscaler(self.spec, lambda: None if now in self.away else float(demand.workers))
        for now in range(0, DAY, STEP_SECONDS):
            if now not in self.away:
                was_active, demand = demand.is_active, next_demand(demand, moment(pool, now), RULE)
                if demand.is_active and not was_active:
                    scaler.push()
            if now % self.spec.polling_seconds == 0:
                scaler.poll(now)
                scaler.sync(now)
            if now in self.lost_at:
                pool.lose(0.5)
            pool.resize(scaler.replicas, now)
            pool.work(now)
        return pool

    @property
    def ideal_gpu_seconds(self) -> float:
        """Without loading and idling."""
        return sum(run.samples for run in self.runs) / SPEED


def moment(pool: SimulatedPool, now: float) -> PoolMoment:
    """As the leader observes it."""
    ready, running = pool.ready(now), pool.running(now)
    samples = sum(run.left for run in running)
    return PoolMoment(
        backlog_samples={MODEL: samples} if running else {},
        speeds={MODEL: SPEED} if ready and running else {},
        ready=len(ready),
        busy=min(samples / CONCURRENCY, len(ready)),
        useful=samples / CONCURRENCY,
        load_seconds=LOAD_SECONDS if ready else None,
    )


def bursts(seed: int) -> list[SimulatedRun]:
    """Six times a day some runs of very different sizes come within ten minutes, and single ones between."""
    source = random.Random(seed)
    runs = [
        SimulatedRun(hour * 3600 + source.uniform(0, 600), source.choice([500, 3000, 12_000, 40_000]))
        for hour in (1, 5, 8, 9, 14, 20)
        for _ in range(source.randrange(2, 6))
    ]
    runs += [SimulatedRun(source.uniform(0, DAY - 4 * 3600), 200) for _ in range(6)]
    return sorted(runs, key=lambda run: run.arrived_at)


def bound_seconds(day: Day, run: SimulatedRun) -> float:
    """A cold start, the time for a backlog, and what was before it at full size; twice where nodes vanish."""
    before = sum(
        other.samples
        for other in day.runs
        if other.arrived_at <= run.arrived_at + 3600 and (other.finished_at or DAY) >= run.arrived_at
    )
    starts = 2 + 2 * len(day.lost_at)
    cold = NODE_SECONDS + LOAD_SECONDS
    return starts * (cold + RULE.backlog_seconds) + before / SPEED / day.spec.max_replicas


@pytest.mark.parametrize("seed", range(8))
def test_no_run_of_a_day_is_late_and_no_worker_comes_in_vain(seed: int) -> None:
    day = Day(bursts(seed))
    pool = day.simulate()
    for run in day.runs:
        assert run.finished_at is not None
        assert run.finished_at - run.arrived_at <= bound_seconds(day, run)
    assert pool.workers == []
    # Each time that there is work, the number rises once and falls once.
    busy_times = sum(bool(after and not before) for before, after in pairwise(pool.history))
    assert pool.reversals <= 4 * busy_times
    assert pool.wasted_workers == 0
    ideal = day.ideal_gpu_seconds
    used = f"{pool.gpu_seconds / 3600:.1f} GPU hours, {ideal / 3600:.1f} ideal"
    print(f"day {seed}: {used}, up to {max(pool.history)} workers")  # noqa: T201  # with pytest -s
    assert pool.gpu_seconds <= 2 * ideal + busy_times * 12 * (LOAD_SECONDS + 2 * day.spec.cooldown_seconds)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_that_vanish_are_replaced_and_every_run_ends(seed: int) -> None:
    day = Day(bursts(seed), lost_at=(3600 + 1500, 8 * 3600 + 1800, 9 * 3600 + 900))
    pool = day.simulate()
    for run in day.runs:
        assert run.finished_at is not None
        assert run.finished_at - run.arrived_at <= bound_seconds(day, run)
    assert pool.workers == []


def test_workers_stay_while_no_scheduler_answers() -> None:
    """Ten minutes without a leader, from the middle of a run until after its end."""
    away = range(3600, 4200)
    pool = Day([SimulatedRun(600, 150_000)], away=away).simulate()
    during = pool.history[away.start // STEP_SECONDS : away.stop // STEP_SECONDS]
    assert set(during) == {16}
    assert pool.workers == []


def test_steady_small_runs_keep_one_worker_and_do_not_restart_it() -> None:
    """A run every four minutes, shorter than the cool-down of five."""
    day = Day([SimulatedRun(600 + 240 * number, 300) for number in range(100)])
    pool = day.simulate()
    assert max(pool.history) == 1
    assert pool.reversals == 1
