"""A watched run when its gateway is killed: the same page goes on with the other replica."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from tests.contract.pages.shown_pages import RUN_ID, running, summary_of
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler
from tests.fakes.gateway.balancer import balancer
from tests.fakes.gateway.gateway_process import gateway_processes
from tests.harness.browser import chromium, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHANGES_PER_SECOND = 5
# Enough for a slow machine; the page connects again within a second.
DEADLINE_MS = 20_000


@asynccontextmanager
async def changing(scheduler: FakeScheduler) -> AsyncIterator[None]:
    """A run whose counts grow."""

    async def change() -> None:
        completed = 0
        while True:
            completed += 1
            run = running()
            run.progress.completed = completed
            scheduler.put(run)
            await asyncio.sleep(1 / CHANGES_PER_SECOND)

    task = asyncio.create_task(change())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def completed_on(page: Page) -> int:
    return int(await page.locator("progress.big").evaluate("bar => bar.value"))


async def test_page_goes_on_with_another_gateway_and_is_not_loaded_again() -> None:
    scheduler, results = FakeScheduler(), FakeResults()
    scheduler.put(running())
    results.summaries[RUN_ID] = summary_of(running())
    async with (
        gateway_processes(2, scheduler, results) as gateways,
        balancer([gateway.http.removeprefix("http://") for gateway in gateways]) as front,
        changing(scheduler),
        chromium() as browser,
        tab(browser, front.url) as opened,
    ):
        page = opened.page
        await opened.open(f"/runs/{RUN_ID}")
        await moving(page)
        await page.evaluate("document.body.dataset.document = 'the first'")
        for gateway in gateways:
            # Whichever serves the socket: each is killed in its turn, and is there again for the next.
            await gateway.end(signal.SIGKILL)
            await moving(page)
            await gateway.start()
        await expect(page.locator("body[data-document='the first']")).to_have_count(1)
        await expect(page.locator("#stale")).to_be_hidden(timeout=DEADLINE_MS)
        # The browser reports each lost connection; nothing else may be wrong.
        assert [each for each in opened.complaints if "WebSocket" not in each] == []


async def moving(page: Page) -> None:
    """Counts on the page grow from now on."""
    before = await completed_on(page)
    async with asyncio.timeout(DEADLINE_MS / 1000):
        while await completed_on(page) < before + 2 * CHANGES_PER_SECOND:
            await page.wait_for_timeout(50)
