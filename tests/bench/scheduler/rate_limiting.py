"""Ten workers against a provider that takes so many requests a second: how much they use, what is refused.

Worker processes, NATS and the scheduler that leads are real; a token bucket in the model server refuses.
Two providers at the same time, each with ten workers of its own: one tells when to come back, one does not.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from proctor.stack.supervision.addresses import choose_addresses
from proctor.values.providers.pool import Pool, Provider
from tests.fakes.callers import CALLER_KEY
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.worker.worker_harness import WorkerHarness, work_shard, worker_harness
from tests.fakes.worker.worker_process import CONCURRENCY, worker_process
from tests.harness.model_server_process import ModelServerProcess, model_server_process
from tests.harness.servers import nats_server, postgres_server

WORKERS = 10
ALLOWED = 50.0
LATENCY_SECONDS = 0.1
MINUTE_SECONDS = 60.0
START_SECONDS = 60.0
SHARD = 16


@dataclass(frozen=True)
class Minute:
    """Requests that the provider answered and refused within a minute."""

    answered: int
    refused: int

    @property
    def used(self) -> float:
        return self.answered / MINUTE_SECONDS / ALLOWED

    @property
    def refused_share(self) -> float:
        return self.refused / max(1, self.answered + self.refused)


@asynccontextmanager
async def leading_scheduler(nats_url: str, postgres_dsn: str, folder: Path) -> AsyncIterator[None]:
    """It has nothing to schedule here; it leads, and so it settles the paces."""
    [address] = choose_addresses(1)
    pools = [{"name": "idle", "engine": "openai", "concurrency": 1, "provider": "openai",
              "base_url": "http://127.0.0.1:9/v1"}]  # fmt: skip
    (folder / "pools.yaml").write_text(json.dumps({"pools": pools}))
    environment = {
        **os.environ,
        "PROCTOR_NATS_URL": nats_url,
        "PROCTOR_POSTGRES_DSN": postgres_dsn,
        "PROCTOR_SCHEDULER_ADDRESS": str(address),
        "PROCTOR_RESULTS_ADDRESS": "127.0.0.1:9",
        "PROCTOR_DISPATCH_PROOF_KEY": DISPATCH_PROOF_KEY,
        "PROCTOR_CALLER_KEY": CALLER_KEY,
        "PROCTOR_POOLS_FILE": str(folder / "pools.yaml"),
    }
    with (folder / "scheduler.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.scheduler", env=environment, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def order_work(harness: WorkerHarness, pool: Pool) -> None:
    """More than can be asked in the time."""
    samples, run_id = int(3 * MINUTE_SECONDS * ALLOWED), str(uuid4())
    for number, first in enumerate(range(0, samples, SHARD)):
        await harness.send(work_shard(number, range(first, first + SHARD), run_id=run_id), pool=pool)


async def minutes_of(server: ModelServerProcess, count: int) -> Sequence[Minute]:
    found: list[Minute] = []
    before = await server.stats()
    for _ in range(count):
        await asyncio.sleep(MINUTE_SECONDS)
        after = await server.stats()
        found.append(Minute(after["answered"] - before["answered"], after["limited"] - before["limited"]))
        before = after
    return found


def pool_name(tells: str) -> str:
    return f"paced-{tells}"


async def measure(tells: str, nats_url: str, harness: WorkerHarness, folder: Path) -> Sequence[Minute]:
    async with AsyncExitStack() as opened:
        server = await opened.enter_async_context(model_server_process())
        limit = {"rate": ALLOWED, "burst": ALLOWED, "tells": tells}
        await server.control(rate_limit=limit, latency_seconds=LATENCY_SECONDS)
        name = pool_name(tells)
        await order_work(harness, Pool(name, "openai", CONCURRENCY, (), Provider("openai", server.url, "")))
        for number in range(WORKERS):
            own = folder / f"{name}-{number}"
            own.mkdir()
            process = worker_process(nats_url, server.url, own, pool_name=name)
            await opened.enter_async_context(process)

        async def has_begun() -> bool:
            return bool((await server.stats())["answered"])

        await eventually(has_begun, "the first request is answered", START_SECONDS)
        return await minutes_of(server, 2)


def print_minutes(measured: Mapping[str, Sequence[Minute]]) -> None:
    table = Table(title=f"{WORKERS} workers, a provider that takes {ALLOWED:g} requests/s")
    for column in ("a refusal tells", "minute", "requests/s", "of what is allowed", "answers that are 429"):
        table.add_column(column, justify="right")
    for tells, minutes in measured.items():
        for number, minute in enumerate(minutes, 1):
            rate = f"{minute.answered / MINUTE_SECONDS:.1f}"
            table.add_row(tells, str(number), rate, f"{minute.used:.3f}", f"{minute.refused_share:.2%}")
    Console(width=100).print(table)


async def main() -> None:
    reported = ("nothing", "seconds")
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        nats = await opened.enter_async_context(nats_server([pool_name(tells) for tells in reported]))
        postgres = await opened.enter_async_context(postgres_server())
        await opened.enter_async_context(leading_scheduler(nats.address, postgres.address, folder))
        harness = await opened.enter_async_context(worker_harness(nats.address))
        async with asyncio.TaskGroup() as group:
            asked = {
                tells: group.create_task(measure(tells, nats.address, harness, folder)) for tells in reported
            }
    measured = {tells: task.result() for tells, task in asked.items()}
    print_minutes(measured)
    for tells, (_, settled) in measured.items():
        if settled.used < 0.9 or settled.refused_share > 0.02:
            raise SystemExit(f"Not reached where a refusal tells {tells}: {settled}")
