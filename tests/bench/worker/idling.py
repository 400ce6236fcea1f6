"""Load of NATS by workers without work: CPU, calls of JetStream's API, and messages, by their number.

A real nats-server; the workers are the service's own loops, each on a connection of its own, fifty in one
process. `PROCTOR_IDLE_WORKERS` sets the numbers (default 100,1000).
"""

import asyncio
import contextlib
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from nats.aio.client import Client
from rich.console import Console
from rich.table import Table

from services.common.nats.connection import TRANSIENT_NATS, connect_nats
from services.common.nats.streams import heartbeat_bucket
from tests.bench.harness.process_tree import usage_of_tree
from tests.fakes.eventually import eventually
from tests.fakes.worker.worker_harness import POOL
from tests.harness.servers import RunningServer, nats_server

COUNTS = tuple(map(int, os.environ.get("PROCTOR_IDLE_WORKERS", "100,1000").split(",")))
# A worker that has just started asks more often.
SETTLING_SECONDS = 30.0
MEASURED_SECONDS = 60.0
START_LIMIT_SECONDS = 300.0
# As in a cluster: a local stack bounds the heap of its NATS to 24 MiB, and 1,000 connections need more.
SERVER_ENVIRONMENT = {"PATH": os.defpath}
# In one process. As in an upgrade of a cluster, the next ones start once these have reported.
WORKERS_PER_PROCESS = 50
HEARTBEATS = heartbeat_bucket(POOL.name)


@dataclass(frozen=True)
class Cost:
    """Per second of the time measured."""

    workers: int
    nats_cpu: float
    nats_mib: float
    api_calls: float
    messages: float
    workers_cpu: float


@dataclass(frozen=True)
class _Sample:
    at: float
    nats_cpu: float
    api_calls: int
    messages: int
    own_cpu: float


async def sample(connection: Client, server: RunningServer) -> _Sample:
    info = await connection.jetstream().account_info()
    heartbeats = await connection.jetstream().stream_info(f"KV_{HEARTBEATS.name}")
    assert server.child.pid is not None
    nats_cpu = usage_of_tree(server.child.pid).cpu_seconds
    return _Sample(
        time.monotonic(),
        nats_cpu,
        info.api.total,
        heartbeats.state.last_seq,
        usage_of_tree(os.getpid()).cpu_seconds - nats_cpu,
    )


@asynccontextmanager
async def workers(address: str, first: int, count: int) -> AsyncIterator[None]:
    """A process of idle workers."""
    command = (sys.executable, "-m", "tests.bench.worker.idle_workers", address, str(first), str(count))
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def measure(count: int) -> Cost:
    async with AsyncExitStack() as opened:
        server = await opened.enter_async_context(nats_server(environment=SERVER_ENVIRONMENT))
        connection = await connect_nats(server.address, "bench")
        opened.push_async_callback(connection.close)

        async def are_there(wanted: int = count) -> bool:
            try:
                info = await connection.jetstream().stream_info(f"KV_{HEARTBEATS.name}")
                return bool(info.state.messages == wanted)
            except TRANSIENT_NATS:
                return False

        for first in range(0, count, WORKERS_PER_PROCESS):
            started = min(first + WORKERS_PER_PROCESS, count)
            await opened.enter_async_context(workers(server.address, first, started - first))
            reported = f"{started} workers have reported"
            await eventually(partial(are_there, started), reported, START_LIMIT_SECONDS)
        await asyncio.sleep(SETTLING_SECONDS)
        before = await sample(connection, server)
        await asyncio.sleep(MEASURED_SECONDS)
        after = await sample(connection, server)
        assert await are_there(), "a worker was lost"
        assert server.child.pid is not None
        seconds = after.at - before.at
        return Cost(
            count,
            (after.nats_cpu - before.nats_cpu) / seconds,
            usage_of_tree(server.child.pid).anon_mib,
            (after.api_calls - before.api_calls) / seconds,
            (after.messages - before.messages) / seconds,
            (after.own_cpu - before.own_cpu) / seconds,
        )


def print_costs(costs: Sequence[Cost]) -> None:
    table = Table(title=f"Idle workers over {MEASURED_SECONDS:g} s")
    for column in (
        "workers",
        "NATS: cores",
        "NATS: MiB",
        "API calls/s",
        "API calls/s and worker",
        "heartbeats/s",
        "all workers: cores",
    ):
        table.add_column(column, justify="right")
    for cost in costs:
        table.add_row(
            f"{cost.workers:,}",
            f"{cost.nats_cpu:.3f}",
            f"{cost.nats_mib:.0f}",
            f"{cost.api_calls:.1f}",
            f"{cost.api_calls / cost.workers:.3f}",
            f"{cost.messages:.0f}",
            f"{cost.workers_cpu:.2f}",
        )
    Console(width=110).print(table)


async def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print_costs([await measure(count) for count in COUNTS])
