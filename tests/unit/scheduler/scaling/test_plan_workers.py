"""Observations of a pool by the leader: outstanding samples, the speed of a worker, and its loading time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from proctor.values.providers.worker import WorkerState
from proctor.values.run import RunCounts, RunId, RunState, TaskCounts
from proctor.values.scoring import ScoringMethod
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.progress.progress_tracker import ProgressReport, ProgressTracker
from services.scheduler.runs.admission.forecast_queue import (
    MeasuredRun,
    PastOfBenchmarks,
    QueueForecast,
    QueueMoment,
)
from services.scheduler.runs.admission.run_queue import PendingRun, QueuedRuns
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.scaling.plan_workers import PlanWorkers
from services.scheduler.scaling.pool_demand import PoolDemand, ScalingRule
from services.scheduler.scaling.ports import StoredDemands
from services.scheduler.workers.worker import Worker
from tests.fakes.pools import model_pool, provider_pool
from tests.fakes.scheduler.surroundings import START, ListedWorkers, SetClock
from tests.fakes.scheduler_rules import queue_limits

GPU = model_pool("gpu", "vllm/a", concurrency=10)
REMOTE = provider_pool("remote", concurrency=10)
TERM = FencingToken(1)


@dataclass
class SetForecast:
    """The queue as the test says."""

    clock: SetClock
    tracker: ProgressTracker
    running: list[Run] = field(default_factory=list)
    pending: list[Run] = field(default_factory=list)
    slots: int = 2

    async def forecast(self, _: Sequence[Run] = ()) -> QueueForecast:
        queue = QueuedRuns(self.running, [PendingRun(run, START) for run in self.pending], len(self.pending))
        moment = QueueMoment(queue, queue_limits(max_running_runs=self.slots), self.clock.now(), frozenset())
        measured = {
            run.run_id: MeasuredRun(self.tracker.counts(run.run_id, run.epoch)) for run in self.running
        }
        return QueueForecast(moment, measured, PastOfBenchmarks({}, {}))


@dataclass
class KeptDemands:
    by_pool: dict[str, PoolDemand] = field(default_factory=dict)

    async def demands(self) -> StoredDemands:
        return StoredDemands(self.by_pool, START)

    async def keep(self, _: FencingToken, demands: Sequence[PoolDemand], __: datetime) -> None:
        self.by_pool = {demand.pool: demand for demand in demands}


class Planning:
    """Time passes in rounds of five seconds."""

    def __init__(self) -> None:
        self.clock, self.tracker = SetClock(), ProgressTracker()
        self.queue = SetForecast(self.clock, self.tracker)
        self.workers, self.store = ListedWorkers(), KeptDemands()
        self.planner = PlanWorkers(
            pools=(GPU, REMOTE),
            registry=self.workers,
            tracker=self.tracker,
            forecasts=self.queue,  # type: ignore[arg-type]  # asked for its forecast alone
            store=self.store,
            clock=self.clock,
            rule=ScalingRule(backlog_seconds=100, load_seconds=60),
        )

    async def next_round(self, **recorded: int) -> dict[str, PoolDemand]:
        self.clock.seconds += 5
        for run_id, count in recorded.items():
            counts = RunCounts(1, (TaskCounts("t", count),))
            self.tracker.record(ProgressReport(run_id, counts), self.clock.seconds)
        await self.planner.plan(TERM)
        return self.store.by_pool


def run(
    name: str,
    total: int,
    *,
    pool: str = "gpu",
    model: str = "vllm/a",
    group: str = "",
    parallel: int | None = None,
) -> Run:
    order = RunOrder("toy", model, parallel_group=group, parallel=parallel)
    fresh = Run(RunId(name), order, "ann", pool, ScoringMethod.GENERATE, START)
    return replace(fresh, state=RunState.RUNNING, planned_epoch=1, total=total, admitted_at=START)


def worker(
    name: str,
    state: WorkerState = WorkerState.READY,
    *,
    samples_in_flight: int = 0,
    pool: str = "gpu",
    rollouts: int = 0,
) -> Worker:
    loaded = "vllm/a" if pool == "gpu" and state is WorkerState.READY else ""
    return Worker(
        name,
        pool,
        "vllm",
        loaded_model=loaded,
        state=state,
        samples_in_flight=samples_in_flight + rollouts,
        concurrency=10,
        rollouts_in_flight=rollouts,
        rollout_slots=4,
    )


async def test_speed_is_that_of_one_busy_worker_and_sizes_the_pool() -> None:
    planning = Planning()
    planning.queue.running = [run("r", 100_000)]
    assert (await planning.next_round())["gpu"].workers == 1
    planning.workers.live = [worker("w1", samples_in_flight=10), worker("w2", samples_in_flight=10)]
    await planning.next_round(r=0)
    await planning.next_round(r=100)
    demand = (await planning.next_round(r=200))["gpu"]
    # 20 samples per second of two workers.
    assert demand.speeds == {"vllm/a": 10.0}
    assert demand.backlog_samples == {"vllm/a": 99_800}
    assert demand.workers == 99


async def test_idle_workers_show_no_speed_and_get_no_company() -> None:
    planning = Planning()
    planning.queue.running = [run("r", 100_000)]
    planning.workers.live = [worker("w1", samples_in_flight=1)]
    for count in (0, 100):
        await planning.next_round(r=count)
    demand = (await planning.next_round(r=200))["gpu"]
    assert demand.speeds == {}
    assert demand.workers == 1


async def test_load_time_is_that_of_the_last_worker() -> None:
    planning = Planning()
    planning.queue.running = [run("r", 100_000)]
    planning.workers.live = [worker("w1", WorkerState.LOADING)]
    for _ in range(4):
        await planning.next_round()
    planning.workers.live = [worker("w1"), worker("w2", WorkerState.LOADING)]
    assert (await planning.next_round())["gpu"].load_seconds == 20
    planning.workers.live = [worker("w1")]
    assert (await planning.next_round())["gpu"].load_seconds == 20, "w2 went without having loaded"


async def test_pending_runs_count_when_they_get_a_slot_while_a_worker_loads() -> None:
    planning = Planning()
    planning.queue.pending = [run("a", 500), run("b", 300), run("c", 200)]
    demand = (await planning.next_round())["gpu"]
    # Two slots are free; when the third run gets one is unknown.
    assert demand.backlog_samples == {"vllm/a": 800}


async def test_models_of_a_provider_are_counted_together() -> None:
    planning = Planning()
    planning.queue.running = [
        run("a", 50, pool="remote", model="openai/x"),
        run("b", 70, pool="remote", model="openai/y"),
    ]
    demands = await planning.next_round()
    assert demands["remote"].backlog_samples == {"any": 120}
    assert (demands["gpu"].workers, demands["remote"].workers) == (0, 1)


async def test_rollouts_get_a_worker_for_as_many_as_one_has_slots_for() -> None:
    planning = Planning()
    planning.queue.running = [run("r", 30, group="order")]
    assert (await planning.next_round())["gpu"].workers == 1, "the first shows its slots"
    planning.workers.live = [worker("w1")]
    assert (await planning.next_round())["gpu"].workers == 1, "it has room"
    # Four of ten requests in flight would leave room; four of four slots leave none.
    planning.workers.live = [worker("w1", rollouts=4)]
    demand = (await planning.next_round(r=2))["gpu"]
    assert demand.backlog_samples == {"rollouts": 28}
    assert demand.speeds == {}
    assert demand.workers == 7


async def test_worker_stays_while_it_holds_a_rollout() -> None:
    planning = Planning()
    planning.store.by_pool = {"gpu": PoolDemand("gpu", workers=3)}
    planning.queue.running = [run("r", 30, group="order")]
    planning.workers.live = [worker("w1", rollouts=1), worker("w2", rollouts=1), worker("w3")]
    assert (await planning.next_round(r=28))["gpu"].workers == 2


async def test_no_worker_is_added_for_rollouts_that_their_order_holds_back() -> None:
    planning = Planning()
    planning.queue.running = [run("r", 300, group="order", parallel=8)]
    planning.workers.live = [worker("w1", rollouts=4)]
    demand = (await planning.next_round())["gpu"]
    assert (demand.backlog_samples, demand.workers) == ({"rollouts": 300}, 2)
    # The bound is one of all models of the order.
    planning.queue.running = [run(name, 150, group="order", parallel=8) for name in ("r", "s")]
    demand = (await planning.next_round())["gpu"]
    assert (demand.backlog_samples, demand.workers) == ({"rollouts": 300}, 2)
