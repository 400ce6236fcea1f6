"""CPU of the leader, of NATS and of Postgres with many runs, shards and workers, and how long orders take.

One process sends the heartbeats of all workers, acknowledges shards and reports their samples as recorded,
so the figures are those of dispatch, without engines and results. `PROCTOR_LED_RUNS`, `PROCTOR_LED_WORKERS`
and `PROCTOR_LED_WATCHERS` set how many there are: 100, 1,000, and 200 that follow the states of runs. NATS is
that of a local stack, whose heap is bounded: in a cluster it takes less CPU for as many watchers.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from proctor.stack.local_stack import LocalStack
from proctor.stack.supervision.child import ChildSpec
from proctor.v1 import model_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.wire.proofs import PROGRESS_PROOF, progress_proof
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from tests.bench.harness.stack_meter import Measured, StackMeter
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

RUNS = int(os.environ.get("PROCTOR_LED_RUNS", "100"))
WORKERS = int(os.environ.get("PROCTOR_LED_WORKERS", "1000"))
WATCHERS = int(os.environ.get("PROCTOR_LED_WATCHERS", "200"))
# Two shards of each run in a second.
SHARDS_DONE_PER_SECOND = 2 * RUNS
# A full credit of 256 shards of 32 samples, and what is done meanwhile.
ROWS = 16_384
MEASURED_SECONDS = 30.0
ORDERS = 40
# As workers send them, and as many samples at a time that each run has its whole credit.
HEARTBEAT_SECONDS = 3.0
CONCURRENCY = 512
POOL = "remote"
ENVIRONMENT = {
    "PROCTOR_SCHEDULER_MAX_RUNNING_RUNS": str(RUNS),
    "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": "1000",
    # Nothing is in results, so a search for what is lost would find all of it.
    "PROCTOR_SCHEDULER_RECONCILE_QUIET_SECONDS": "3600",
}


class StackWithoutWorkers(LocalStack):
    """Its workers are those of this process."""

    async def _start_children(self, specs: Iterable[ChildSpec]) -> None:
        await super()._start_children([spec for spec in specs if not spec.name.startswith("worker")])


@dataclass
class SimulatedWorkers:
    jetstream: JetStream
    dispatch_proof_key: str
    shards_done: int = 0

    async def send_heartbeats(self) -> None:
        bucket = Bucket(self.jetstream, streams.heartbeat_bucket(POOL))
        while True:
            ends_at = time.monotonic() + HEARTBEAT_SECONDS
            for number in range(WORKERS):
                await bucket.put(f"worker-{number}", _status(number))
                await asyncio.sleep((ends_at - time.monotonic()) / (WORKERS - number))

    async def follow_states(self) -> None:
        async for _ in Bucket(self.jetstream, streams.RUNS_BUCKET).watch():
            pass

    async def work(self) -> None:
        """Takes the same number of shards in each second, and reports their samples as results would."""
        consumer = streams.work_consumer(POOL, messaging.ANY_MODEL, Priority.HIGH, 600.0)
        puller = Puller(self.jetstream, consumer)
        recorded: dict[str, int] = {}
        while True:
            ends_at = time.monotonic() + 0.1
            for message in await puller.fetch(SHARDS_DONE_PER_SECOND // 10, 1.0):
                await message.ack()
                shard = work_messages_pb2.WorkShard.FromString(message.data)
                recorded[shard.run_id] = recorded.get(shard.run_id, 0) + len(shard.samples)
                await self._report(shard, recorded[shard.run_id])
                self.shards_done += 1
            await asyncio.sleep(max(ends_at - time.monotonic(), 0.0))

    async def _report(self, shard: work_messages_pb2.WorkShard, recorded: int) -> None:
        report = work_messages_pb2.ProgressReport(run_id=shard.run_id, epoch=shard.epoch)
        report.tasks.add(task=shard.task, recorded=recorded)
        report.shards.add(shard=shard.shard, recorded=len(shard.samples))
        payload = report.SerializeToString()
        headers = {PROGRESS_PROOF: progress_proof(payload, self.dispatch_proof_key)}
        subject = messaging.progress_subject(shard.run_id)
        await self.jetstream.connection.publish(subject, payload, headers=headers)


def _status(number: int) -> bytes:
    return work_messages_pb2.WorkerStatus(
        worker_id=f"worker-{number}",
        pool=POOL,
        engine="openai",
        provider="openai",
        models=["openai/fake"],
        concurrency=CONCURRENCY,
        state=model_pb2.WORKER_STATE_READY,
    ).SerializeToString()


@asynccontextmanager
async def simulated_workers(stack: StackHarness) -> AsyncIterator[SimulatedWorkers]:
    key = stack.stack.options.state_dir / "nats" / "dispatch_proof.key"
    async with AsyncExitStack() as opened:
        connection = await connect_nats(stack.stack.nats_url, "bench")
        opened.push_async_callback(connection.close)
        workers = SimulatedWorkers(JetStream(connection), key.read_text(encoding="utf-8"))
        loops = [workers.send_heartbeats(), *(workers.follow_states() for _ in range(WATCHERS))]
        for task in [asyncio.create_task(loop) for loop in loops]:
            opened.callback(task.cancel)
        yield workers


async def until_dispatched(stack: StackHarness) -> int:
    """Shards on the stream, once that are all for which the runs have credit and the stream has room."""
    query = "SELECT count(*) FROM scheduler.shards WHERE state = 'dispatched'"
    counted = [0]
    async with stack.database() as database:
        # Three times the same: a planning run sends nothing for a while.
        while not counted[-1] or len(set(counted[-3:])) > 1:
            await asyncio.sleep(5.0)
            counted.append(await database.fetchval(query))
    return counted[-1]


async def times_of_orders(stack: StackHarness) -> Sequence[float]:
    times = []
    for _ in range(ORDERS):
        began = time.monotonic()
        await stack.submit(keyed_order(limit=32))
        times.append(time.monotonic() - began)
        await asyncio.sleep(max(MEASURED_SECONDS / ORDERS - times[-1], 0.0))
    return times


async def measure(stack: StackHarness) -> None:
    async with simulated_workers(stack) as workers:
        for _ in range(RUNS):
            await stack.submit()
        shards = await until_dispatched(stack)
        working = asyncio.create_task(workers.work())
        await asyncio.sleep(5.0)
        meter, done_before = StackMeter(stack), workers.shards_done
        times = await times_of_orders(stack)
        measured = meter.measured()
        done = workers.shards_done - done_before
        working.cancel()
        assert done, "no shard arrived"
    print_figures(measured, times, shards, done / measured.wall_seconds)


def print_figures(measured: Measured, times: Sequence[float], shards: int, done: float) -> None:
    title = (
        f"{RUNS} runs with {shards:,} shards on the stream, {WORKERS:,} workers, {done:.0f} shards a second"
    )
    table = Table(title=title)
    table.add_column("process")
    table.add_column("cores", justify="right")
    for name, seconds in measured.cpu_seconds.items():
        table.add_row(name, f"{seconds / measured.wall_seconds:.3f}")
    table.add_row("an order takes: median, s", f"{np.median(times):.3f}")
    table.add_row("an order takes: 99 %, s", f"{np.percentile(times, 99):.3f}")
    Console(width=100).print(table)


async def main() -> None:
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        order = StackOrder(rows=ROWS, environment=ENVIRONMENT)
        await measure(await opened.enter_async_context(stack_harness(folder, order, StackWithoutWorkers)))
