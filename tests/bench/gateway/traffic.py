"""200 users who read, at 100 requests a second: latency, memory, and the limit of changes to the request.

`PROCTOR_TRAFFIC_SECONDS` sets how long (300). Requests are sent on time, whether or not earlier ones were
answered, so that a slow answer is not hidden by a client that waits for it.
"""

import asyncio
import os
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import aiohttp
import numpy as np
from rich.console import Console
from rich.table import Table

from proctor.v1 import run_pb2
from tests.bench.harness.stack_meter import StackMeter
from tests.e2e.harness.run_ends import ended
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

USERS = 200
REQUESTS_PER_SECOND = 100
SECONDS = float(os.environ.get("PROCTOR_TRAFFIC_SECONDS", "300"))
RUNS = 12
ROWS = 500
MAX_CHANGES_PER_MINUTE = 100
# Beyond the limit, so that it shows whether one too many or one too few passes.
CHANGES_OF_A_BURST = 130
# A burst must not run over the end of its minute.
BURST_AT_SECONDS = (5.0, 35.0)
ENVIRONMENT = {"PROCTOR_SCHEDULER_MAX_REQUESTS_PER_MINUTE": str(MAX_CHANGES_PER_MINUTE)}


@dataclass
class Traffic:
    url: str
    paths: Mapping[str, str]
    latencies_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[int] = field(default_factory=Counter)
    passed_of_bursts: list[int] = field(default_factory=list)
    _draw: random.Random = field(default_factory=lambda: random.Random(11))

    async def read(self, session: aiohttp.ClientSession, meter: StackMeter) -> None:
        """Sends each request when it is due, counted from the beginning."""
        names, began = sorted(self.paths), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(int(SECONDS * REQUESTS_PER_SECOND)):
                await asyncio.sleep(max(began + number / REQUESTS_PER_SECOND - time.monotonic(), 0))
                user = f"user-{self._draw.randrange(USERS)}"
                group.create_task(self._read_one(session, self._draw.choice(names), user))
                if number % REQUESTS_PER_SECOND == 0:
                    meter.look()

    async def _read_one(self, session: aiohttp.ClientSession, name: str, user: str) -> None:
        began = time.monotonic()
        async with session.get(self.url + self.paths[name], headers={"X-Proctor-User": user}) as response:
            await response.read()
            self.statuses[response.status] += 1
        self.latencies_ms[name].append((time.monotonic() - began) * 1000)

    async def change(self, session: aiohttp.ClientSession) -> None:
        """In each minute one user of its own asks for more changes than it may."""
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            second = time.time() % 60
            if not BURST_AT_SECONDS[0] <= second <= BURST_AT_SECONDS[1]:
                await asyncio.sleep((BURST_AT_SECONDS[0] - second) % 60)
                continue
            changes = (self._change_one(session) for _ in range(CHANGES_OF_A_BURST))
            self.passed_of_bursts.append(sum(await asyncio.gather(*changes)))
            await asyncio.sleep(60 - time.time() % 60)

    async def _change_one(self, session: aiohttp.ClientSession) -> bool:
        """A cancel of a run that is not there: counted, and harmless."""
        path = f"{self.url}/api/v1/benchmarking/cancel/{uuid4()}"
        async with session.post(path, headers={"X-Proctor-User": "changer"}) as response:
            await response.read()
            return response.status != 429


async def measure(stack: StackHarness) -> tuple[Traffic, dict[str, tuple[float, float]]]:
    """The traffic, and each process's highest memory of the first tenth and of the whole."""
    runs = [await ended(stack, await stack.submit(keyed_order())) for _ in range(RUNS)]
    assert all(run.state == run_pb2.RUN_STATE_COMPLETED for run in runs)
    run_id = runs[-1].run_id
    traffic = Traffic(
        f"http://{stack.stack.gateway_http}",
        {
            "results of a run": f"/api/v1/benchmarking/results/{run_id}",
            "leaderboard": "/api/v1/benchmarking/leaderboard?suite=keyed",
            "list of results": "/api/v1/benchmarking/results",
            "history": "/api/v1/benchmarking/history",
            "queue": "/api/v1/queue",
            "models": "/v1/models",
            "files": "/v1/files",
            "suites": "/api/v1/suites",
        },
    )
    meter = StackMeter(stack)
    early = StackMeter(stack)

    async def first_tenth() -> None:
        ends = time.monotonic() + SECONDS / 10
        while time.monotonic() < ends:
            early.look()
            await asyncio.sleep(1)

    connector = aiohttp.TCPConnector(limit=USERS)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        group.create_task(traffic.read(session, meter))
        group.create_task(traffic.change(session))
        group.create_task(first_tenth())
    whole, beginning = meter.measured().peak_mib, early.measured().peak_mib
    return traffic, {name: (beginning[name], whole[name]) for name in whole}


def print_traffic(traffic: Traffic, memory: Mapping[str, tuple[float, float]]) -> None:
    table = Table(
        title=f"{USERS} users, {REQUESTS_PER_SECOND} reads a second for {SECONDS:g} s: milliseconds"
    )
    for column in ("read", "requests", "median", "p99", "longest"):
        table.add_column(column, justify="right")
    everything = [each for those in traffic.latencies_ms.values() for each in those]
    for name, those in [*sorted(traffic.latencies_ms.items()), ("all", everything)]:
        median, p99 = np.percentile(those, [50, 99])
        table.add_row(name, str(len(those)), f"{median:.1f}", f"{p99:.1f}", f"{max(those):.1f}")
    Console(width=100).print(table)
    memory_table = Table(title="Peak private memory, MiB")
    for column in ("process", "first tenth", "whole"):
        memory_table.add_column(column, justify="right")
    for name, (beginning, whole) in memory.items():
        memory_table.add_row(name, f"{beginning:.0f}", f"{whole:.0f}")
    Console(width=100).print(memory_table)
    Console(width=100).print(
        f"Status codes of reads: {dict(traffic.statuses)}. Changes that passed in each minute, of "
        f"{CHANGES_OF_A_BURST} (limit {MAX_CHANGES_PER_MINUTE}): {traffic.passed_of_bursts}"
    )


async def main() -> None:
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        stack = await opened.enter_async_context(
            stack_harness(folder, StackOrder(rows=ROWS, environment=ENVIRONMENT))
        )
        traffic, memory = await measure(stack)
    print_traffic(traffic, memory)
    if set(traffic.passed_of_bursts) - {MAX_CHANGES_PER_MINUTE} or set(traffic.statuses) != {200}:
        raise SystemExit("A limit was not exact, or a read was refused.")
