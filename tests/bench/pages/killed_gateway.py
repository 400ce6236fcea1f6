"""How long a watched page shows nothing new when the gateway behind its socket is killed.

There are two replicas, and no stickiness.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright.async_api import Page, WebSocket

from tests.bench.pages.live_pages import HERTZ
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, summary_of
from tests.fakes.eventually import Condition, eventually
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler
from tests.fakes.gateway.balancer import balancer
from tests.fakes.gateway.gateway_process import GatewayProcess, gateway_processes
from tests.harness.browser import chromium, tab

KILLS = int(os.environ.get("PROCTOR_PAGES_KILLS", "10"))
# The socket is at either gateway, so every second kill counts, more or less.
_MAX_TRIES = 4 * KILLS
# A page that is not live again by then counts with this time.
_WATCHED_SECONDS = 4.0
# In which the page notices that its socket is gone.
_NOTICE_SECONDS = 1.0
_STEP_LIMIT_SECONDS = 60.0
# Notes when the live part of the page changes, in milliseconds since 1970, and marks the document.
_OBSERVED = """() => {
    globalThis.changedAt = [];
    new MutationObserver(() => globalThis.changedAt.push(Date.now()))
        .observe(document.getElementById("live"), { subtree: true, childList: true, attributes: true });
}"""


@dataclass
class Outages:
    """`seconds`: how long the page did not change, by kill. `is_same_document`: no kill loaded it again."""

    seconds: list[float] = field(default_factory=list)
    is_same_document: bool = True


@dataclass
class _Socket:
    """When the page's socket was closed last, and when one was opened."""

    closed_at: float = 0.0
    opened_at: float = 0.0

    def opened(self, socket: WebSocket) -> None:
        self.opened_at = time.time()
        socket.on("close", lambda _: self.closed())

    def closed(self) -> None:
        self.closed_at = time.time()


async def kill_gateways() -> Outages:
    """Raises RuntimeError where too few of the kills end the socket of the page."""
    scheduler, results = FakeScheduler(), FakeResults()
    scheduler.put(running())
    results.summaries[RUN_ID] = summary_of(running())
    found, socket = Outages(), _Socket()
    async with (
        gateway_processes(2, scheduler, results) as gateways,
        balancer([gateway.http.removeprefix("http://") for gateway in gateways]) as front,
        _changing(scheduler),
        chromium() as browser,
        tab(browser, front.url) as opened,
    ):
        opened.page.on("websocket", socket.opened)
        await opened.open(f"/runs/{RUN_ID}")
        await opened.page.evaluate(_OBSERVED)
        for kill in range(_MAX_TRIES):
            if len(found.seconds) >= KILLS:
                return found
            async with asyncio.timeout(_STEP_LIMIT_SECONDS):
                await _kill(gateways[kill % len(gateways)], opened.page, socket, found)
    raise RuntimeError(f"{_MAX_TRIES} kills ended the socket of the page only {len(found.seconds)} times")


async def _kill(gateway: GatewayProcess, page: Page, socket: _Socket, found: Outages) -> None:
    """Counts only where this gateway served the socket."""
    killed_at = time.time()
    await gateway.end(signal.SIGKILL)
    if await _is_within(_NOTICE_SECONDS, lambda: socket.closed_at >= killed_at):
        await _is_within(_WATCHED_SECONDS, lambda: _is_live_again(page, socket, killed_at))
        changes = await page.evaluate("globalThis.changedAt ?? null")
        if changes is None:
            found.is_same_document = False
            await page.evaluate(_OBSERVED)
        else:
            found.seconds.append(_gap([at / 1000 for at in changes], killed_at))
    await gateway.start()


async def _is_live_again(page: Page, socket: _Socket, killed_at: float) -> bool:
    """It was changed through a socket that was opened after the kill, or it was loaded again."""
    last = await page.evaluate("globalThis.changedAt ? globalThis.changedAt.at(-1) ?? 0 : Infinity")
    return socket.opened_at > killed_at and last / 1000 > socket.opened_at


def _gap(changes: Sequence[float], killed_at: float) -> float:
    """The longest time without a change from the kill on: the last push may have been on its way."""
    later = [at for at in changes if at > killed_at]
    gaps = [after - before for before, after in zip([killed_at, *later], later, strict=False)]
    return max(gaps, default=_WATCHED_SECONDS)


async def _is_within(seconds: float, is_true: Condition) -> bool:
    try:
        await eventually(is_true, "", seconds)
    except AssertionError:
        return False
    return True


@asynccontextmanager
async def _changing(scheduler: FakeScheduler) -> AsyncIterator[None]:
    """A run whose counts grow."""

    async def change() -> None:
        recorded = 0
        while True:
            recorded += 1
            run = running()
            run.progress.recorded = recorded
            scheduler.put(run)
            await asyncio.sleep(1 / HERTZ)

    task = asyncio.create_task(change())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
