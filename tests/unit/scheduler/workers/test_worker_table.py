"""Workers by pool: what the leader asks is added up by heartbeat, in whatever order they come and go."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from prometheus_client import REGISTRY

from proctor.values.providers.worker import MAX_POOL_WORKERS, WorkerState
from services.common.clock import Clock
from services.common.nats.bucket import Bucket
from services.common.nats.streams import HEARTBEAT_BOUNDS
from services.scheduler.workers.nats import NatsWorkerRegistry
from services.scheduler.workers.proto import HEARTBEAT
from services.scheduler.workers.report_workers import ReportWorkers
from services.scheduler.workers.worker import RefusedRun, Worker, WorkerTable
from tests.fakes.pools import model_pool
from tests.fakes.scheduler.surroundings import ListedWorkers, SetClock


def some_worker(draw: random.Random, number: int) -> Worker:
    broken = {model: "no config.json" for model in ("a/x", "a/y") if draw.random() < 0.6}
    refused = (RefusedRun("run", 1, draw.choice(["", "wrong key"])),) if draw.random() < 0.2 else ()
    return Worker(
        f"w{number}",
        draw.choice(["one", "two"]),
        "vllm",
        concurrency=draw.choice([1, 8, 64]),
        cannot_load=broken,
        refusals=refused,
    )


def test_table_says_what_a_look_at_each_worker_says() -> None:
    draw, table, live = random.Random(7), WorkerTable(), dict[str, Worker]()
    for _ in range(2000):
        key = f"w{draw.randrange(6)}"
        if key in live:
            table.drop(key, live.pop(key).pool)
        if draw.random() < 0.7:
            live[key] = some_worker(draw, int(key[1:]))
            table.put(key, live[key])
        assert table.workers() == [live[key] for key in sorted(live)]
        assert table.pools == {worker.pool for worker in live.values()}
        for name in ("one", "two", "three"):
            own = [worker for worker in live.values() if worker.pool == name]
            pool = table.pool(name)
            assert pool.concurrencies == Counter(worker.concurrency for worker in own)
            for model in ("a/x", "a/z"):
                cannot = bool(own) and all(model in worker.cannot_load for worker in own)
                assert pool.loading_problem(model) == ("no config.json" if cannot else None)
            refused = any(each.reason for worker in own for each in worker.refusals)
            assert pool.provider_refusal("run", 1) == ("wrong key" if refused else None)


class NoBucket:
    """Heartbeats are given by hand."""


def registry_of(
    *pools: str, clock: Clock | None = None, changed: Callable[[], None] = lambda: None
) -> NatsWorkerRegistry:
    buckets = {pool: cast("Bucket", NoBucket()) for pool in pools}
    return NatsWorkerRegistry(buckets, clock or SetClock(), changed)


def test_silent_worker_leaves_the_table_and_another_one_stays() -> None:
    clock, changes = SetClock(), list[int]()
    registry = registry_of("one", clock=clock, changed=lambda: changes.append(1))

    def receive(worker: Worker) -> None:
        registry._on_heartbeat("one", worker.worker_id, HEARTBEAT.to_proto(worker).SerializeToString())

    first = Worker("a", "one", "vllm", concurrency=8)
    receive(first)
    clock.seconds += 10
    receive(replace(first, worker_id="b"))
    receive(replace(first, worker_id="b", samples_in_flight=3))
    assert len(changes) == 2
    clock.seconds += 10
    assert [worker.worker_id for worker in registry.workers()] == ["b"]
    assert registry.table().pool("one").concurrencies == {8: 1}
    registry._on_heartbeat("one", "b", None)
    assert registry.table().pools == frozenset()


def test_a_heartbeat_under_the_key_of_another_pool_counts_for_nothing() -> None:
    """NATS lets a worker write into the bucket of its own pool, where it may write anything."""
    registry = registry_of("one", "two")
    forged = Worker("b", "two", "vllm", concurrency=8, refusals=(RefusedRun("run", 1, "forged"),))
    registry._on_heartbeat("one", "b", HEARTBEAT.to_proto(forged).SerializeToString())
    assert registry.workers() == []


def test_of_more_workers_than_a_pool_may_have_the_last_ones_are_known() -> None:
    registry = registry_of("one", "two")
    invented = Worker("", "one", "vllm", concurrency=8)
    registry._on_heartbeat("two", "real", content(replace(invented, worker_id="real", pool="two")))
    registry._on_heartbeat("one", "real", content(replace(invented, worker_id="real")))
    for number in range(MAX_POOL_WORKERS):
        name = f"invented {number}"
        registry._on_heartbeat("one", name, content(replace(invented, worker_id=name)))
    assert registry.table().pool("one").by_key.keys() == {
        f"one invented {number}" for number in range(MAX_POOL_WORKERS)
    }
    # Its next heartbeat comes after theirs.
    registry._on_heartbeat("one", "real", content(replace(invented, worker_id="real")))
    names = [worker.worker_id for worker in registry.table().pool("one").by_key.values()]
    assert (len(names), names[-1]) == (MAX_POOL_WORKERS, "real")
    assert [worker.worker_id for worker in registry.table().pool("two").by_key.values()] == ["real"]


def test_large_heartbeats_of_a_pool_take_no_more_memory_than_its_bucket_has() -> None:
    registry = registry_of("one")
    # With its other fields it is no larger than the bucket takes.
    large = Worker("", "one", "vllm", note="x" * (HEARTBEAT_BOUNDS.value_bytes - 64))
    most = HEARTBEAT_BOUNDS.total_bytes // len(content(large))
    for number in range(2 * most):
        name = f"w{number}"
        registry._on_heartbeat("one", name, content(replace(large, worker_id=name)))
    assert most - 2 <= len(registry.workers()) <= most
    registry._on_heartbeat("one", "w0", None)
    registry._on_heartbeat("one", f"w{2 * most - 1}", None)
    registry._on_heartbeat("one", "small", content(Worker("small", "one", "vllm")))
    assert "one small" in registry.table().pool("one").by_key


def content(worker: Worker) -> bytes:
    return HEARTBEAT.to_proto(worker).SerializeToString()


def test_a_heartbeat_with_a_state_of_a_newer_release_is_skipped() -> None:
    registry = registry_of("one", "two")
    newer = HEARTBEAT.to_proto(Worker("b", "one", "vllm"))
    newer.state = 99  # type: ignore[assignment]  # no member of this release
    registry._on_heartbeat("one", "b", newer.SerializeToString())
    assert registry.workers() == []


def test_workers_are_counted_by_state_whatever_their_notes_say() -> None:
    off = "the clock of the machine is 4:00:00 ahead of that of NATS"
    live = [
        Worker("a", "counted", "vllm", state=WorkerState.READY, note=off),
        Worker("b", "counted", "vllm", state=WorkerState.READY),
        Worker("c", "counted", "vllm", state=WorkerState.NOT_LOADED, note="no config.json"),
    ]
    pools = [model_pool("counted", "vllm/a", concurrency=10)]
    ReportWorkers(pools, ListedWorkers(live)).report()

    def count(state: WorkerState) -> float | None:
        labels = {"pool": "counted", "state": state}
        return REGISTRY.get_sample_value("proctor_pool_workers", labels)

    assert {state: count(state) for state in WorkerState} == {
        WorkerState.LOADING: 0,
        WorkerState.READY: 2,
        WorkerState.DRAINING: 0,
        WorkerState.NOT_LOADED: 1,
    }
