"""How long a watched page shows nothing new when the gateway behind its socket is killed.

There are two replicas, and no stickiness.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright.async_api import Page, WebSocket

from tests.bench.pages.live_pages import HERTZ
from tests.contract.pages.shown_pages import RUN_ID, running, summary_of
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler
from tests.fakes.gateway.balancer import balancer
from tests.fakes.gateway.gateway_process import GatewayProcess, gateway_processes
from tests.harness.browser import chromium, tab

KILLS = 10
_WATCHED_SECONDS = 4.0
_SETTLE_SECONDS = 2.0
# Notes when the live part of the page changes, in milliseconds since 1970, and marks the document.
_OBSERVED = """() => {
    globalThis.changedAt = [];
    new MutationObserver(() => globalThis.changedAt.push(Date.now()))
        .observe(document.getElementById("live"), { subtree: true, childList: true, attributes: true });
}"""


@dataclass
class Outages:
    """`seconds`: from a kill to the next change on the page. `is_same_document`: no kill loaded it again."""

    seconds: list[float] = field(default_factory=list)
    is_same_document: bool = True


async def kill_gateways() -> Outages:
    scheduler, results = FakeScheduler(), FakeResults()
    scheduler.put(running())
    results.summaries[RUN_ID] = summary_of(running())
    found = Outages()
    async with (
        gateway_processes(2, scheduler, results) as gateways,
        balancer([gateway.http.removeprefix("http://") for gateway in gateways]) as front,
        _changing(scheduler),
        chromium() as browser,
        tab(browser, front.url) as opened,
    ):
        closed = asyncio.Event()
        opened.page.on("websocket", lambda socket: _note_close(socket, closed))
        await opened.open(f"/runs/{RUN_ID}")
        await opened.page.evaluate(_OBSERVED)
        await asyncio.sleep(_SETTLE_SECONDS)
        while len(found.seconds) < KILLS:
            for gateway in gateways:
                await _kill(gateway, opened.page, closed, found)
    return found


async def _kill(gateway: GatewayProcess, page: Page, closed: asyncio.Event, found: Outages) -> None:
    """Counts only where this gateway served the socket."""
    closed.clear()
    killed_at = time.time()
    await gateway.end(signal.SIGKILL)
    await asyncio.sleep(_WATCHED_SECONDS)
    changes = await page.evaluate("globalThis.changedAt ?? null")
    if changes is None:
        found.is_same_document = False
        await page.evaluate(_OBSERVED)
    elif closed.is_set():
        # The last push may have been on its way.
        later = [at / 1000 for at in changes if at / 1000 > killed_at]
        gaps = [after - before for before, after in zip([killed_at, *later], later, strict=False)]
        found.seconds.append(max(gaps, default=_WATCHED_SECONDS))
    await gateway.start()
    await asyncio.sleep(_SETTLE_SECONDS)


def _note_close(socket: WebSocket, closed: asyncio.Event) -> None:
    socket.on("close", lambda _: closed.set())


@asynccontextmanager
async def _changing(scheduler: FakeScheduler) -> AsyncIterator[None]:
    """A run whose counts grow."""

    async def change() -> None:
        completed = 0
        while True:
            completed += 1
            run = running()
            run.progress.completed = completed
            scheduler.put(run)
            await asyncio.sleep(1 / HERTZ)

    task = asyncio.create_task(change())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
