"""A worker between a real NATS and an engine of the test's own: shards in, outcomes out."""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from nats.aio.client import Client

from proctor.v1 import outcome_pb2, run_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.values.providers.pool import Pool, PoolModel, Provider
from services.common.clock import ServerClock
from services.common.lifecycle import BackgroundLoops, every
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.stream_maker import StreamMaker
from services.worker.consumer.nats_registry import WorkerIdentity
from services.worker.consumer.wiring import BUCKET_CHECK_SECONDS, ConsumerParts, WorkerResources
from services.worker.engines.ports import Engine
from services.worker.engines.wiring import make_rate_limiters
from services.worker.execution.shard import Shard
from services.worker.settings import WorkerSettings
from services.worker.topics import make_topics
from services.worker.wiring import end_loops
from tests.fakes.eventually import eventually
from tests.fakes.worker.refusing_sandboxes import RefusingSandboxes
from tests.harness.servers import POOLS, RunningServer

POOL = Pool("remote", "openai", 8, (), Provider("openai", "http://127.0.0.1:9/v1", ""))
RUN = "11111111-1111-4111-8111-111111111111"


def always(_: Shard) -> bool:
    """Runs whose shards may all start."""
    return True


def pool_of(*models: str) -> Pool:
    return Pool("local", "vllm", 8, tuple(PoolModel(model, "/nowhere", {}) for model in models), None)


def work_shard(
    shard: int, samples: Sequence[int], *, attempt: int = 1, run_id: str = RUN, model: str = "openai/fake"
) -> work_messages_pb2.WorkShard:
    work = work_messages_pb2.WorkShard(
        run_id=run_id, shard=shard, attempt=attempt, epoch=1, model=model, task="addition"
    )
    work.params.max_tokens = 8
    work.time_left.FromTimedelta(timedelta(hours=1))
    for sample in samples:
        work.samples.add(sample=sample).prompt.text = f"sample {sample} KEY=k{sample}"
    return work


async def crash(server: RunningServer) -> None:
    """Kills it and waits until it is up again: its supervisor starts it."""
    assert server.child.pid is not None
    restarts = server.child.restarts
    os.kill(server.child.pid, signal.SIGKILL)
    await eventually(lambda: server.child.restarts > restarts, "the server is started again")
    await eventually(server.child.ready.is_set, "the server is up again", 30)


@dataclass
class WorkerHarness:
    """The test's own side of the streams: the scheduler's and the results' part."""

    connection: Client
    jetstream: JetStream
    outcomes: list[outcome_pb2.Outcome] = field(default_factory=list)
    batches: list[work_messages_pb2.OutcomeBatch] = field(default_factory=list)

    async def send(
        self, work: work_messages_pb2.WorkShard, *, pool: Pool = POOL, priority: Priority = Priority.HIGH
    ) -> None:
        token = messaging.model_token(work.model) if pool.models else messaging.ANY_MODEL
        subject = messaging.work_subject(pool.name, token, priority, work.run_id)
        message_id = f"{work.run_id}/{work.shard}/{work.attempt}"
        await self.jetstream.publish(subject, work.SerializeToString(), message_id)

    async def collect(self) -> None:
        """For ever: takes outcomes as results would."""
        puller = Puller(self.jetstream, streams.outcome_consumer(30.0))
        while True:
            for message in await puller.fetch(1, 1.0):
                batch = work_messages_pb2.OutcomeBatch.FromString(message.data)
                self.batches.append(batch)
                self.outcomes.extend(batch.outcomes)
                await message.ack()

    @property
    def counts(self) -> Counter[int]:
        """How often each sample's outcome came."""
        return Counter(outcome.sample for outcome in self.outcomes)

    async def left_in_work(self) -> int:
        """In the streams of all pools."""
        left = [await self.jetstream.pending(streams.work_stream(pool), "work.>") for pool in POOLS]
        return sum(left)

    async def until_answered(self, samples: int, limit_seconds: float = 30.0) -> None:
        await eventually(
            lambda: len(self.counts) >= samples, f"{samples} samples have an outcome", limit_seconds
        )

    async def until_settled(self, limit_seconds: float = 30.0) -> None:
        async def is_settled() -> bool:
            return await self.left_in_work() == 0

        await eventually(is_settled, "no message is left", limit_seconds)

    async def publish_state(
        self,
        state: run_pb2.RunState.ValueType,
        *,
        epoch: int = 1,
        run_id: str = RUN,
        time_left: timedelta | None = None,
    ) -> None:
        control = work_messages_pb2.RunControl(state=state, epoch=epoch)
        if time_left is not None:
            control.time_left.FromTimedelta(time_left)
        await Bucket(self.jetstream, streams.RUNS_BUCKET).put(run_id, control.SerializeToString())

    async def statuses(self) -> list[work_messages_pb2.WorkerStatus]:
        """Of the workers of all pools."""
        buckets = [Bucket(self.jetstream, streams.heartbeat_bucket(pool)) for pool in POOLS]
        values = [value for bucket in buckets for value in (await bucket.entries()).values()]
        return [work_messages_pb2.WorkerStatus.FromString(value) for value in values]

    async def wipe(self) -> None:
        """Every stream is gone, with what was in it."""
        manager = self.connection.jsm()
        for info in await manager.streams_info():
            assert info.config.name is not None
            await manager.delete_stream(info.config.name)


@asynccontextmanager
async def worker_harness(url: str) -> AsyncIterator[WorkerHarness]:
    connection = await connect_nats(url, "tests")
    harness = WorkerHarness(connection, JetStream(connection))
    maker = StreamMaker(connection, POOLS)
    loops = BackgroundLoops(
        {
            "collect outcomes": harness.collect(),
            "make streams": every(0.2, maker.make_missing, name="make streams"),
        }
    )
    try:
        yield harness
    finally:
        await loops.cancel()
        await connection.close()


@asynccontextmanager
async def worker_in_process(
    url: str,
    engine: Engine,
    *,
    pool: Pool = POOL,
    settings: WorkerSettings | None = None,
    worker_id: str = "worker-1",
) -> AsyncIterator[ConsumerParts]:
    settings = settings or WorkerSettings(ack_wait_seconds=2, switch_when_idle_seconds=0.2)
    async with AsyncExitStack() as opened:
        connection = await connect_nats(url, worker_id)
        opened.push_async_callback(connection.close)
        resources = WorkerResources(
            settings=settings,
            identity=WorkerIdentity(worker_id, pool),
            jetstream=JetStream(connection=connection, bucket_check_seconds=BUCKET_CHECK_SECONDS),
            clock=ServerClock(),
            sandboxes=RefusingSandboxes(),
        )
        limiters = make_rate_limiters(pool, resources.clock)
        topics = make_topics(resources, engine=engine, limiters=limiters)
        opened.push_async_callback(end_loops, topics.consuming, BackgroundLoops(loops=topics.loops()))
        yield topics.consuming
