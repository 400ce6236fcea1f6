"""The answer of every replica for a pool, and when it gives none."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from prometheus_client import REGISTRY

from services.common.errors import InvalidParameter
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.scaling.pool_demand import PoolDemand
from services.scheduler.scaling.ports import StoredDemands
from services.scheduler.scaling.show_demand import DemandNotComputed, ShowDemand
from tests.fakes.pools import model_pool
from tests.fakes.scheduler.surroundings import SetClock

POOL = model_pool("gpu", "vllm/a", "vllm/b")


@dataclass
class InMemoryDemands:
    stored: StoredDemands = field(default_factory=StoredDemands)
    reads: int = 0

    async def demands(self) -> StoredDemands:
        self.reads += 1
        return self.stored

    async def keep(self, _: FencingToken, demands: Sequence[PoolDemand], now: datetime) -> None:
        self.stored = StoredDemands({demand.pool: demand for demand in demands}, now)

    def show(self, workers: int, now: datetime, **facts: dict[str, float]) -> None:
        demand = PoolDemand("gpu", workers, **facts)  # type: ignore[arg-type]  # samples and speeds
        self.stored = StoredDemands({"gpu": demand}, now)


def show_demand() -> tuple[ShowDemand, InMemoryDemands, SetClock]:
    store, clock = InMemoryDemands(), SetClock()
    return ShowDemand(pools=[POOL], store=store, clock=clock), store, clock


async def test_answer_is_the_leaders_for_a_minute() -> None:
    shown, store, clock = show_demand()
    store.show(3, clock.now())
    assert (await shown.show("gpu")).workers == 3
    clock.seconds += 59
    assert (await shown.show("gpu")).workers == 3
    clock.seconds += 2
    with pytest.raises(DemandNotComputed, match="pool gpu"):
        await shown.show("gpu")


async def test_nothing_is_answered_before_the_first_leader() -> None:
    shown, _, _ = show_demand()
    with pytest.raises(DemandNotComputed):
        await shown.show("gpu")
    with pytest.raises(InvalidParameter, match="one of gpu"):
        await shown.show("cpu")


async def test_callers_within_a_second_share_what_was_read() -> None:
    shown, store, clock = show_demand()
    store.show(1, clock.now())
    for _ in range(20):
        await shown.show("gpu")
    assert store.reads == 1
    clock.seconds += 1
    await shown.show("gpu")
    assert store.reads == 2


async def test_only_the_change_to_active_is_announced() -> None:
    shown, store, clock = show_demand()

    async def days() -> AsyncIterator[None]:
        for workers in (0, 2, 3, None, 3, 0, 0, 1):
            clock.seconds += 2
            if workers is None:  # no leader for a while
                clock.seconds += 100
            else:
                store.show(workers, clock.now())
            yield

    announced = [demand.workers async for demand in shown.watch_activations("gpu", days)]
    assert announced == [2, 1]


def metric(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"pool": "gpu", **labels})


async def test_metrics_show_the_same_numbers_and_none_that_are_old() -> None:
    shown, store, clock = show_demand()
    await shown.report()
    assert metric("proctor_pool_workers_desired") is None

    clock.seconds += 1
    store.show(2, clock.now(), backlog_samples={"vllm/a": 100.0}, speeds={"vllm/a": 4.0})
    await shown.report()
    assert metric("proctor_pool_workers_desired") == 2
    assert metric("proctor_pool_backlog_samples", model="vllm/a") == 100
    assert metric("proctor_pool_backlog_samples", model="vllm/b") == 0
    assert metric("proctor_pool_backlog_seconds", model="vllm/a") == 25
    assert metric("proctor_pool_backlog_seconds", model="vllm/b") is None

    clock.seconds += 61
    await shown.report()
    assert metric("proctor_pool_workers_desired") is None
    assert metric("proctor_pool_backlog_samples", model="vllm/a") is None
