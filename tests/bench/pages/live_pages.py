"""Live pages of one run at a gateway of its own process: CPU, pushes and their lag."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import structlog

from services.gateway.pages.asset_files import Assets
from tests.bench.harness.process_tree import usage_of_tree
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, summary_of
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler
from tests.fakes.gateway.gateway_process import GatewayProcess, gateway_processes

HERTZ = 5
SETTLE_SECONDS = 2.0
SECONDS = 15.0
_OPENED_AT_ONCE = 50


@dataclass
class LivePages:
    """`lags_ms`: from the change at the scheduler to the page, of a tenth of the pages."""

    pages: int
    cpu_share: float = 0.0
    pushes: int = 0
    lags_ms: list[float] = field(default_factory=list)

    @property
    def pushes_per_second(self) -> float:
        return self.pushes / self.pages / SECONDS


@dataclass
class _Source:
    """A run that changes; its samples per second number the changes."""

    scheduler: FakeScheduler
    changed_at: dict[int, float] = field(default_factory=dict)

    async def change(self) -> None:
        number = 0
        while True:
            number += 1
            run = running()
            run.progress.samples_per_second = number
            self.changed_at[number] = time.monotonic()
            self.scheduler.put(run)
            await asyncio.sleep(1 / HERTZ)


async def watch_pages(pages: int) -> LivePages:
    # The fakes are in this process: a line for each call would cost more than the pages.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    found = LivePages(pages)
    async with _gateway(pages) as (gateway, scheduler), AsyncExitStack() as opened:
        session = await opened.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        )
        url = f"{gateway.http}/runs/{RUN_ID}/socket?build={Assets.load().digest}"
        sockets: list[aiohttp.ClientWebSocketResponse] = []
        while len(sockets) < pages:
            wanted = min(_OPENED_AT_ONCE, pages - len(sockets))
            calls = [session.ws_connect(url, headers={"Origin": gateway.http}) for _ in range(wanted)]
            sockets += await asyncio.gather(*(opened.enter_async_context(call) for call in calls))
        source = _Source(scheduler)
        changing = asyncio.create_task(source.change())
        reading = [
            asyncio.create_task(_read(socket, found, source if number % 10 == 0 else None))
            for number, socket in enumerate(sockets)
        ]
        await asyncio.sleep(SETTLE_SECONDS)
        found.pushes, before = 0, usage_of_tree(gateway.process.pid).cpu_seconds
        found.lags_ms.clear()
        began = time.monotonic()
        await asyncio.sleep(SECONDS)
        used = usage_of_tree(gateway.process.pid).cpu_seconds - before
        found.cpu_share = used / (time.monotonic() - began)
        for task in (changing, *reading):
            task.cancel()
        await asyncio.gather(changing, *reading, return_exceptions=True)
    return found


async def _read(socket: aiohttp.ClientWebSocketResponse, found: LivePages, source: _Source | None) -> None:
    async for message in socket:
        found.pushes += 1
        if source:
            _, _, rest = str(message.data).partition('data-rate="')
            changed_at = source.changed_at.get(int(float(rest.partition('"')[0] or 0)))
            if changed_at:
                found.lags_ms.append((time.monotonic() - changed_at) * 1000)


@asynccontextmanager
async def _gateway(pages: int) -> AsyncIterator[tuple[GatewayProcess, FakeScheduler]]:
    """Between fakes, with room for so many pages of one user."""
    scheduler, results = FakeScheduler(), FakeResults()
    run = running()
    scheduler.put(run)
    results.summaries[RUN_ID] = summary_of(run)
    room = {
        "PROCTOR_GATEWAY_MAX_LIVE_PAGES": str(2 * pages),
        "PROCTOR_GATEWAY_MAX_LIVE_PAGES_PER_USER": str(2 * pages),
        "PROCTOR_GATEWAY_MAX_CONNECTIONS": str(3 * pages + 100),
    }
    async with gateway_processes(1, scheduler, results, **room) as [gateway]:
        yield gateway, scheduler
