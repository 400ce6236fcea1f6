"""Workers by pool: what the leader asks is added up by heartbeat, in whatever order they come and go."""

import random
from collections import Counter
from dataclasses import replace

from prometheus_client import REGISTRY

from proctor.values.providers.worker import WorkerState
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


def test_silent_worker_leaves_the_table_and_another_one_stays() -> None:
    clock, changes = SetClock(), list[int]()
    registry = NatsWorkerRegistry(NoBucket(), clock, lambda: changes.append(1))  # type: ignore[arg-type]  # not listened to

    def receive(worker: Worker) -> None:
        registry._on_heartbeat(f"one.{worker.worker_id}", HEARTBEAT.to_proto(worker).SerializeToString())

    first = Worker("a", "one", "vllm", concurrency=8)
    receive(first)
    clock.seconds += 10
    receive(replace(first, worker_id="b"))
    receive(replace(first, worker_id="b", samples_in_flight=3))
    assert len(changes) == 2
    clock.seconds += 10
    assert [worker.worker_id for worker in registry.workers()] == ["b"]
    assert registry.table().pool("one").concurrencies == {8: 1}
    registry._on_heartbeat("one.b", None)
    assert registry.table().pools == frozenset()


def test_a_heartbeat_under_the_key_of_another_pool_counts_for_nothing() -> None:
    """NATS lets a worker write below its own pool only; what it writes there may say anything."""
    registry = NatsWorkerRegistry(NoBucket(), SetClock(), lambda: None)  # type: ignore[arg-type]  # not listened to
    forged = Worker("b", "two", "vllm", concurrency=8, refusals=(RefusedRun("run", 1, "forged"),))
    registry._on_heartbeat("one.b", HEARTBEAT.to_proto(forged).SerializeToString())
    assert registry.workers() == []


def test_a_heartbeat_with_a_state_of_a_newer_release_is_skipped() -> None:
    registry = NatsWorkerRegistry(NoBucket(), SetClock(), lambda: None)  # type: ignore[arg-type]  # not listened to
    newer = HEARTBEAT.to_proto(Worker("b", "one", "vllm"))
    newer.state = 99  # type: ignore[assignment]  # no member of this release
    registry._on_heartbeat("one.b", newer.SerializeToString())
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
