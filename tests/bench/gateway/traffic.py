"""What identity costs: 200 users who read and change, with keys in a declared project and without any.

Two stacks are asked in turn, request by request, so that what else the machine does falls on both. One has no
keys, and runs of a project that is not declared: its policies leave out nothing. In the other each user has a
key and is a member of the project of its runs. Requests are sent on time, whether or not earlier ones were
answered, so that a slow answer is not hidden by a client that waits for it. A burst of changes at the end
shows that their limit is exact.

`PROCTOR_TRAFFIC_SECONDS` sets how long requests are sent (45).
"""

import asyncio
import json
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import aiohttp
import numpy as np
from rich.console import Console
from rich.table import Table

from proctor.client.proctor_client import ProctorClient
from tests.bench.harness.stack_meter import Measured, StackMeter
from tests.e2e.harness.run_ends import completed
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

USERS = 200
REQUESTS_PER_SECOND = 100
SECONDS = float(os.environ.get("PROCTOR_TRAFFIC_SECONDS", "45"))
WARM_SECONDS = 4.0
# Of so many requests, one is a change.
REQUESTS_PER_CHANGE = 20
RUNS = 12
ROWS = 200
MAX_CHANGES_PER_MINUTE = 100
# Beyond the limit, so that it shows whether one too many or one too few passes.
CHANGES_OF_A_BURST = 130
# A burst must not run over the end of its minute.
BURST_SECONDS = (1.0, 45.0)
OPEN = {"PROCTOR_SCHEDULER_MAX_REQUESTS_PER_MINUTE": str(MAX_CHANGES_PER_MINUTE)}
OPERATOR = "operator"
NAMES = tuple(f"user-{number}" for number in range(USERS))
KEYS = {name: f"the-key-of-{name}-0123456789" for name in (OPERATOR, *NAMES)}
KEYED = {
    "PROCTOR_GATEWAY_API_KEYS": json.dumps(KEYS),
    "PROCTOR_GATEWAY_OPERATORS": json.dumps([OPERATOR]),
}
CHANGE = "a change"
PROCESSES = ("gateway", "scheduler", "results", "postgres")


@dataclass
class Site:
    """A stack with closed runs, and what was measured of it."""

    stack: StackHarness
    headers: Sequence[Mapping[str, str]]
    paths: Mapping[str, str]
    latencies_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[int] = field(default_factory=Counter)
    measured: Measured | None = None

    async def ask(self, session: aiohttp.ClientSession, name: str, user: int) -> None:
        began = time.monotonic()
        if name == CHANGE:
            await self.change(session, self.headers[user])
        else:
            url = f"http://{self.stack.stack.gateway_http}{self.paths[name]}"
            async with session.get(url, headers=self.headers[user]) as response:
                await response.read()
                self.statuses[response.status] += 1
        self.latencies_ms[name].append((time.monotonic() - began) * 1000)

    async def change(self, session: aiohttp.ClientSession, headers: Mapping[str, str]) -> bool:
        """A cancel of a run that is not there: counted, and harmless. Whether it was within the limit."""
        path = f"http://{self.stack.stack.gateway_http}/api/v1/benchmarking/cancel/{uuid4()}"
        async with session.post(path, headers=headers) as response:
            await response.read()
            return response.status != 429


async def send(session: aiohttp.ClientSession, sites: Sequence[Site], seconds: float) -> None:
    """Sends each request when it is due, counted from the beginning: the same to all sites."""
    names, draw, began = sorted(sites[0].paths), random.Random(11), time.monotonic()
    per_site = round(seconds * REQUESTS_PER_SECOND / len(sites))
    async with asyncio.TaskGroup() as group:
        for number in range(per_site):
            name = draw.choice(names) if number % REQUESTS_PER_CHANGE else CHANGE
            user = draw.randrange(USERS)
            # None is always the first.
            for place, site in enumerate(draw.sample(sites, len(sites)), number * len(sites)):
                await asyncio.sleep(max(began + place / REQUESTS_PER_SECOND - time.monotonic(), 0))
                group.create_task(site.ask(session, name, user))


async def measure(session: aiohttp.ClientSession, sites: Sequence[Site]) -> None:
    await send(session, sites, WARM_SECONDS)  # caches and plans of statements
    for site in sites:
        site.latencies_ms.clear()
    meters = [StackMeter(site.stack) for site in sites]
    await send(session, sites, SECONDS)
    for site, meter in zip(sites, meters, strict=True):
        meter.look()
        site.measured = meter.measured()


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    """Nobody has a key, and users name themselves."""
    headers = [{"X-Proctor-User": name} for name in NAMES]
    with temporary_state_dir() as folder:
        async with stack_harness(folder.parent, StackOrder(rows=ROWS, environment=OPEN)) as stack:
            yield Site(stack, headers, await _closed_runs(stack, project_id=1))


@asynccontextmanager
async def keyed_site() -> AsyncIterator[Site]:
    """Each user has a key, and is a runner of the project of all runs."""
    headers = [{"Authorization": f"Bearer {KEYS[name]}"} for name in NAMES]
    with temporary_state_dir() as folder:
        async with (
            stack_harness(folder.parent, StackOrder(rows=ROWS, environment=KEYED)) as stack,
            ProctorClient(stack.stack.gateway_grpc, api_key=KEYS[OPERATOR]) as client,
        ):
            project_id = await _declared_project(stack)
            named = StackHarness(stack.stack, client, stack.model_server)
            yield Site(stack, headers, await _closed_runs(named, project_id))


async def _declared_project(stack: StackHarness) -> int:
    url = f"http://{stack.stack.gateway_http}/api/v1/projects"
    operator = {"Authorization": f"Bearer {KEYS[OPERATOR]}"}
    async with aiohttp.ClientSession(headers=operator, raise_for_status=True) as session:
        async with session.post(url, json={"name": "traffic"}) as response:
            project_id = int((await response.json())["project_id"])
        for user in NAMES:
            member = {"user": user, "role": "runner"}
            async with session.put(f"{url}/{project_id}/members", json=member) as response:
                await response.read()

    async def is_heard() -> bool:
        headers = {"Authorization": f"Bearer {KEYS[NAMES[-1]]}"}
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
            return str(project_id) in await response.text()

    await eventually(is_heard, "the gateway knows the last member", 10)
    return project_id


async def _closed_runs(stack: StackHarness, project_id: int) -> Mapping[str, str]:
    """Addresses that are read once there are runs, by name."""
    order = keyed_order(project_id=project_id)
    runs = [await completed(stack, order) for _ in range(RUNS)]
    return {
        "results of a run": f"/api/v1/benchmarking/results/{runs[-1]}",
        "leaderboard": f"/api/v1/benchmarking/leaderboard?suite=keyed&project_id={project_id}",
        "list of results": "/api/v1/benchmarking/results",
        "history": "/api/v1/benchmarking/history",
        "queue": "/api/v1/queue",
        "models": "/v1/models",
        "files": "/v1/files",
        "suites": "/api/v1/suites",
    }


async def passed_of_burst(site: Site, session: aiohttp.ClientSession) -> int:
    """How many changes of one user pass in one minute, of more than it may make."""
    second = time.time() % 60
    if not BURST_SECONDS[0] <= second <= BURST_SECONDS[1]:
        await asyncio.sleep((BURST_SECONDS[0] - second) % 60)
    changer = {"X-Proctor-User": "changer"}
    return sum(await asyncio.gather(*(site.change(session, changer) for _ in range(CHANGES_OF_A_BURST))))


def print_traffic(without: Site, keyed: Site) -> None:
    console = Console(width=110)
    title = f"{USERS} users, {REQUESTS_PER_SECOND} requests a second for {SECONDS:g} s: milliseconds"
    columns = ("request", "asked", "median without", "with keys", "p99 without", "with keys", "p99, ratio")
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    reads = [name for name in sorted(without.latencies_ms) if name != CHANGE]
    for label, names in [*((name, [name]) for name in reads), ("all reads", reads), (CHANGE, [CHANGE])]:
        taken = [[ms for name in names for ms in site.latencies_ms[name]] for site in (without, keyed)]
        (median, p99), (keyed_median, keyed_p99) = (np.percentile(each, [50, 99]) for each in taken)
        figures = (f"{each:.1f}" for each in (median, keyed_median, p99, keyed_p99))
        table.add_row(label, str(len(taken[0])), *figures, f"{keyed_p99 / p99:.2f}")
    console.print(table)
    process_table = Table(title="CPU of a request, µs, and private memory, MiB")
    for column in ("process", "CPU without", "with keys", "difference", "MiB without", "with keys"):
        process_table.add_column(column, justify="right")
    asked = sum(map(len, without.latencies_ms.values()))
    measured = [site.measured for site in (without, keyed) if site.measured]
    for process in PROCESSES:
        cpu = [each.cpu_seconds[process] * 1e6 / asked for each in measured]
        memory = [each.peak_mib[process] for each in measured]
        figures = (f"{each:.0f}" for each in (*cpu, cpu[1] - cpu[0], *memory))
        process_table.add_row(process, *figures)
    console.print(process_table)


async def both_sites(opened: AsyncExitStack) -> tuple[Site, Site]:
    """Started together."""
    starting = [opened.enter_async_context(site()) for site in (open_site, keyed_site)]
    without, keyed = await asyncio.gather(*starting)
    return without, keyed


async def main() -> None:
    async with (
        AsyncExitStack() as opened,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=USERS)) as session,
    ):
        without, keyed = await both_sites(opened)
        await measure(session, (without, keyed))
        passed = await passed_of_burst(without, session)
    print_traffic(without, keyed)
    statuses = without.statuses + keyed.statuses
    print(
        f"Status codes of reads: {dict(statuses)}. Changes of one user that passed in a minute, of "
        f"{CHANGES_OF_A_BURST} (limit {MAX_CHANGES_PER_MINUTE}): {passed}"
    )
    if passed != MAX_CHANGES_PER_MINUTE or set(statuses) != {200}:
        raise SystemExit("A limit was not exact, or a read was refused.")
