"""Makes a worker: opens its connections, its engine and its sandboxes, connects its topics, and runs them.

What is opened is closed in reverse.
"""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from services.common.clock import ServerClock
from services.common.grpc.server import GrpcServer, serve_grpc
from services.common.lifecycle import BackgroundLoops
from services.common.nats.access import NatsAccess
from services.common.nats.connection import TRANSIENT_NATS, connect_nats
from services.common.nats.jetstream import JetStream
from services.common.structured_logs import get_logger
from services.worker.consumer.nats_registry import NatsHeartbeat, WorkerIdentity
from services.worker.consumer.wiring import BUCKET_CHECK_SECONDS, ConsumerParts, WorkerResources
from services.worker.engines.vllm.gpu_memory import open_nvml, watch_gpu_memory
from services.worker.engines.wiring import make_engine, make_rate_limiters
from services.worker.engines.yaml_pools import read_pool
from services.worker.sandboxes.wiring import make_sandboxes, sweep
from services.worker.settings import WorkerSettings
from services.worker.topics import make_topics

# Time beyond the drain to publish outcomes that are finished and not stored yet.
_PUBLISH_SECONDS = 5.0
# With the time to close the engine, the sandboxes and the connection.
BEYOND_DRAIN_SECONDS = _PUBLISH_SECONDS + 3.0

log = get_logger()


class RunningWorker:
    """SERVING while it consumes shards; the model may still be loading."""

    def __init__(
        self, *, parts: ConsumerParts, loops: BackgroundLoops, health: GrpcServer, drain_seconds: float
    ) -> None:
        self._parts = parts
        self._loops = loops
        self._health = health
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self._health.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        self._parts.consumer.stop()

    async def drain(self) -> None:
        """Shards whose outcomes are not published in time are not acknowledged, so they are redelivered."""
        try:
            async with asyncio.timeout(self._drain_seconds + _PUBLISH_SECONDS):
                await self._parts.consumer.drain(self._drain_seconds)
                await self._parts.batcher.drain()
        except TimeoutError:
            log.warning("drained in part; the rest will be redelivered")


@asynccontextmanager
async def running_worker(settings: WorkerSettings) -> AsyncIterator[RunningWorker]:
    pool = read_pool(settings.pools_file, settings.pool)
    worker_id = f"{pool.name}-{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as opened:
        health = await serve_grpc(settings.health_address, (), ())
        opened.push_async_callback(health.stop, 0)
        connection = await connect_nats(NatsAccess.of(settings), worker_id)
        opened.push_async_callback(connection.close)
        sandboxes = make_sandboxes(settings)
        opened.push_async_callback(sandboxes.close)
        await sweep(sandboxes)
        resources = WorkerResources(
            settings=settings,
            identity=WorkerIdentity(worker_id=worker_id, pool=pool, pod=settings.pod_name),
            jetstream=JetStream(connection=connection, bucket_check_seconds=BUCKET_CHECK_SECONDS),
            clock=ServerClock(),
            sandboxes=sandboxes,
        )
        limiters = make_rate_limiters(pool, resources.clock)
        engine = make_engine(pool, settings, limiters)
        if pool.engine == "vllm" and (nvml := open_nvml()):
            watch_gpu_memory(nvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
        opened.push_async_callback(engine.close)
        topics = make_topics(resources, engine=engine, limiters=limiters)
        opened.push_async_callback(topics.consuming.engines.close)
        opened.push_async_callback(leave, topics.consuming.heartbeat)
        loops = BackgroundLoops(loops=topics.loops())
        opened.push_async_callback(end_loops, topics.consuming, loops)
        yield RunningWorker(
            parts=topics.consuming, loops=loops, health=health, drain_seconds=settings.drain_seconds
        )


async def end_loops(parts: ConsumerParts, loops: BackgroundLoops) -> None:
    """The pulls end by themselves once prefetching is closed; the other loops are cancelled."""
    parts.consumer.stop()
    await loops.cancel()


async def leave(heartbeat: NatsHeartbeat) -> None:
    """Deletes the heartbeat; if NATS is unreachable, it expires by itself."""
    with suppress(*TRANSIENT_NATS):
        await heartbeat.delete()
