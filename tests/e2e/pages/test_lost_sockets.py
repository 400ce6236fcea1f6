"""A watched run when its gateway is killed, refuses its socket, as a proxy may, or is of another version."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from proctor.v1 import run_pb2
from services.gateway.pages.asset_files import Assets
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, socket, summary_of
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler
from tests.fakes.gateway.balancer import balancer
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.gateway_process import gateway_processes
from tests.harness.browser import chromium, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHANGES_PER_SECOND = 5
# Enough for a slow machine; the page connects again within a second.
DEADLINE_MS = 20_000
RENEWED_AFTER_MS = 16_000
# The page names the digest of its own files.
_OF_ANOTHER_VERSION = """addEventListener("htmx:ws:before:connection", ({ detail: { connection } }) => {
    connection.url = connection.url.replace(/build=\\w+/, "build=0123456789ab");
})"""


@asynccontextmanager
async def changing(scheduler: FakeScheduler) -> AsyncIterator[None]:
    """A run whose counts grow."""

    async def change() -> None:
        recorded = 0
        while True:
            recorded += 1
            run = running()
            run.progress.recorded = recorded
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


@pytest.mark.thorough
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
        assert [each for each in opened.errors if "WebSocket" not in each] == []


async def moving(page: Page) -> None:
    """Counts on the page grow from now on."""
    before = await completed_on(page)
    async with asyncio.timeout(DEADLINE_MS / 1000):
        while await completed_on(page) < before + 2 * CHANGES_PER_SECOND:
            await page.wait_for_timeout(50)


@asynccontextmanager
async def live_run(**settings: object) -> AsyncIterator[GatewayHarness]:
    async with gateway_harness(**settings) as harness:
        harness.scheduler.put(running())
        harness.results.summaries[RUN_ID] = summary_of(running())
        yield harness


async def test_a_notice_that_nothing_is_renewed_goes_once_the_gateway_is_back() -> None:
    scheduler, results = FakeScheduler(), FakeResults()
    scheduler.put(running())
    results.summaries[RUN_ID] = summary_of(running())
    async with (
        gateway_processes(1, scheduler, results) as [gateway],
        changing(scheduler),
        chromium() as browser,
        tab(browser, gateway.http) as opened,
    ):
        page = opened.page
        await page.clock.install()
        await opened.open(f"/runs/{RUN_ID}")
        await moving(page)
        await gateway.end(signal.SIGKILL)
        # The page asks by requests after 15 s, which fail too.
        await page.clock.run_for(RENEWED_AFTER_MS)
        await expect(page.locator("#old")).to_contain_text("cannot be renewed now", timeout=DEADLINE_MS)
        await gateway.start()
        await moving(page)
        await expect(page.locator("#old")).to_have_count(0)
        await expect(page.locator("#stale")).to_be_hidden(timeout=DEADLINE_MS)


async def test_page_without_a_socket_is_renewed_by_requests_and_loaded_again_at_the_end() -> None:
    async with (
        live_run(max_live_pages=1) as harness,
        # It takes the only place.
        socket(harness, f"/runs/{RUN_ID}/socket?build={Assets.load().digest}"),
        chromium() as browser,
        tab(browser, harness.http) as opened,
    ):
        page, run = opened.page, running()
        await page.clock.install()
        await opened.open(f"/runs/{RUN_ID}")
        await page.evaluate("document.body.dataset.document = 'the first'")
        run.progress.recorded += 1
        harness.scheduler.put(run)
        await page.clock.run_for(RENEWED_AFTER_MS)
        bar, first = page.locator("progress.big"), page.locator("body[data-document='the first']")
        await expect(bar).to_have_attribute("value", str(run.progress.recorded), timeout=DEADLINE_MS)
        await expect(page.locator("#stale")).to_contain_text("renewed every 15 s")
        await expect(first).to_have_count(1)
        run.state = run_pb2.RUN_STATE_COMPLETED
        harness.scheduler.put(run)
        await page.clock.run_for(RENEWED_AFTER_MS)
        await expect(first).to_have_count(0, timeout=DEADLINE_MS)
        await expect(page.locator("#stale")).to_have_count(0)


async def test_page_without_a_socket_says_that_its_run_was_deleted() -> None:
    async with (
        live_run(max_live_pages=1) as harness,
        socket(harness, f"/runs/{RUN_ID}/socket?build={Assets.load().digest}"),
        chromium() as browser,
        tab(browser, harness.http) as opened,
    ):
        page = opened.page
        await page.clock.install()
        await opened.open(f"/runs/{RUN_ID}")
        del harness.scheduler.runs[RUN_ID]
        await page.clock.run_for(RENEWED_AFTER_MS)
        await expect(page.locator("main h1")).to_have_text("Not found", timeout=DEADLINE_MS)


async def test_page_of_another_version_is_asked_to_load_again_and_keeps_what_it_shows() -> None:
    async with live_run() as harness, chromium() as browser, tab(browser, harness.http) as opened:
        page = opened.page
        await page.add_init_script(_OF_ANOTHER_VERSION)
        await opened.open(f"/runs/{RUN_ID}")
        await expect(page.get_by_text("Proctor has been upgraded.")).to_be_visible(timeout=DEADLINE_MS)
        await expect(page.locator("progress.big")).to_be_visible()
        await opened.check()
