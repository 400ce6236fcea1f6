"""The model that a worker switches to, and when it keeps its own."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from proctor.values.priority import Priority
from services.worker.consumer.ports import ModelWork, PeerWorker, ShardMessage
from services.worker.consumer.select_model import SelectModel, SwitchPolicy
from services.worker.models.model_loader import ModelLoader
from tests.fakes.worker.scripted_engine import ScriptedEngine

A, B, C = "vllm/a", "vllm/b", "vllm/c"
START = datetime(2026, 1, 1, tzinfo=UTC)


class Pool:
    """Clock, source and registry of a worker that has loaded A; tests set the work and the peers."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.work: dict[str, ModelWork] = {}
        self.peer_workers: list[PeerWorker] = []
        # Switches of peers that come between a look at the pool and the report of an own switch.
        self.faster_peers: list[PeerWorker] = []
        self.switches: int | None = 0
        engine = ScriptedEngine(loadable=(A, B, C))
        self.loader = ModelLoader(engine, ((A,), (B,), (C,)), self, retry_seconds=60)
        self.selector = SelectModel(
            self, self, self.loader, self, SwitchPolicy(idle_seconds=2, min_residency_seconds=60)
        )

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def pull(self, model: str | None, priority: Priority) -> ShardMessage | None:
        raise NotImplementedError((model, priority))

    async def hold(self, model: str | None, priority: Priority) -> ShardMessage | None:
        raise NotImplementedError((model, priority))

    async def work_of(self, models: Collection[str]) -> Sequence[ModelWork]:
        return [self.work[model] for model in models if model in self.work]

    async def peers(self) -> Sequence[PeerWorker]:
        return list(self.peer_workers)

    async def last_switch(self) -> int | None:
        return self.switches

    async def report_switch(self, *, after: int) -> bool:
        assert self.loader.switching_to
        assert self.switches is not None
        if self.faster_peers:
            self.peer_workers.append(self.faster_peers.pop(0))
            self.switches += 1
        if self.switches != after:
            return False
        self.switches += 1
        return True

    def wait_for(self, model: str, *, since: float, undelivered: int = 1) -> None:
        self.work[model] = ModelWork(model, undelivered, START + timedelta(seconds=since))


async def pool_at_a() -> Pool:
    pool = Pool()
    assert await pool.loader.load(A)
    return pool


async def test_idle_worker_switches_to_the_model_that_waited_longest() -> None:
    pool = await pool_at_a()
    assert await pool.selector.select(is_idle=True) is None
    pool.wait_for(B, since=-1)
    pool.wait_for(C, since=-5)
    assert await pool.selector.select(is_idle=True) == C


async def test_busy_worker_keeps_its_model_for_the_minimum_residency() -> None:
    pool = await pool_at_a()
    pool.wait_for(B, since=10)
    pool.seconds = 59
    assert await pool.selector.select(is_idle=False) is None
    pool.seconds = 69
    assert await pool.selector.select(is_idle=False) is None
    pool.seconds = 71
    assert await pool.selector.select(is_idle=False) == B


async def test_residency_begins_with_each_model_but_not_with_a_restart() -> None:
    pool = await pool_at_a()
    pool.seconds = 50
    assert await pool.loader.load(A)
    assert pool.loader.residency_seconds == 50
    assert await pool.loader.load(B)
    assert pool.loader.residency_seconds == 0


async def test_model_that_another_worker_has_or_loads_is_left_to_it() -> None:
    pool = await pool_at_a()
    pool.seconds = 300
    pool.wait_for(B, since=0, undelivered=0)
    for other in (PeerWorker((B,)), PeerWorker((A,), B)):
        pool.peer_workers = [other]
        assert await pool.selector.select(is_idle=True) is None
        assert await pool.selector.select(is_idle=False) is None
    pool.peer_workers = [PeerWorker((B,), C)]
    assert await pool.selector.select(is_idle=True) == B


async def test_idle_worker_helps_those_that_do_not_keep_up_one_for_each_message() -> None:
    pool = await pool_at_a()
    pool.wait_for(B, since=0, undelivered=2)
    pool.peer_workers = [PeerWorker((B,)), PeerWorker((), B)]
    pool.seconds = 1
    assert await pool.selector.select(is_idle=True) is None
    pool.seconds = 3
    assert await pool.selector.select(is_idle=True) == B
    pool.peer_workers.append(PeerWorker((), B))
    assert await pool.selector.select(is_idle=True) is None


async def test_busy_worker_leaves_help_to_the_idle() -> None:
    pool = await pool_at_a()
    pool.seconds = 300
    pool.wait_for(B, since=0, undelivered=9)
    pool.peer_workers = [PeerWorker((B,))]
    assert await pool.selector.select(is_idle=False) is None


async def test_work_of_a_worker_that_died_is_taken_over_though_it_was_delivered() -> None:
    pool = await pool_at_a()
    pool.wait_for(B, since=0, undelivered=0)
    assert await pool.selector.select(is_idle=True) == B


async def test_model_that_a_peer_took_first_is_left_to_it() -> None:
    pool = await pool_at_a()
    pool.wait_for(B, since=0)
    pool.faster_peers = [PeerWorker((A,), B)]
    assert await pool.selector.claim(is_idle=True) is None
    assert pool.loader.switching_to is None
    assert pool.switches == 1


async def test_who_was_late_takes_the_next_model() -> None:
    pool = await pool_at_a()
    pool.wait_for(B, since=0)
    pool.wait_for(C, since=1)
    pool.faster_peers = [PeerWorker((A,), B)]
    assert await pool.selector.claim(is_idle=True) == C
    assert pool.loader.switching_to == C
    assert pool.switches == 2


async def test_worker_among_many_peers_waits_until_its_next_look() -> None:
    pool = await pool_at_a()
    pool.seconds = 10
    pool.wait_for(B, since=0, undelivered=100)
    pool.faster_peers = [PeerWorker((A,), B)] * 5
    assert await pool.selector.claim(is_idle=True) is None
    assert await pool.selector.claim(is_idle=True) == B


async def test_no_switch_without_knowledge_of_other_switches() -> None:
    pool = await pool_at_a()
    pool.wait_for(B, since=0)
    pool.switches = None
    assert await pool.selector.claim(is_idle=True) is None
    assert pool.loader.switching_to is None


async def test_model_that_cannot_be_loaded_is_passed_over() -> None:
    pool = await pool_at_a()
    pool.wait_for("vllm/broken", since=-9)
    pool.wait_for(B, since=0)
    pool.loader.groups = ((A,), ("vllm/broken",), (B,))
    await pool.loader.load("vllm/broken")
    assert await pool.selector.select(is_idle=True) == B
