"""Runs in a browser: the list, a run that goes and one that has ended, on the real stack."""

import asyncio
import os
import signal

import pytest
from playwright.async_api import expect

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.e2e.pages.conftest import Site
from tests.fakes.eventually import eventually
from tests.harness.browser import Looks, tab, tab_in
from tests.harness.stack_harness import keyed_order

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_list_of_runs_in_every_look(site: Site, looks: Looks) -> None:
    await site.check_in(looks, "/runs", "runs", until="table.runs a")


async def test_ended_run_in_every_look(site: Site, looks: Looks) -> None:
    await site.check_in(looks, f"/runs/{site.runs[0]}", "run-ended", until="table.figures")


async def test_live_run_in_every_look(site: Site, looks: Looks) -> None:
    await site.stack.model_server.control(latency_seconds=0.3)
    run_id = await site.stack.submit(keyed_order())
    try:
        await site.check_in(looks, f"/runs/{run_id}", "run-live", until="#live tbody tr")
    finally:
        await site.stack.model_server.control(latency_seconds=0)
        await site.stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))


async def test_pages_are_read_without_scripts(site: Site) -> None:
    assert "openai/fake" in (await site.reads_without_scripts("/runs")).replace("\n", "")
    text = await site.reads_without_scripts(f"/runs/{site.runs[0]}")
    assert "sentiment" in text
    assert "exact_match" in text


async def test_report_opens_as_a_styled_page_and_as_one_file(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open(f"/runs/{site.runs[0]}")
        async with page.expect_download() as saved:
            await page.get_by_role("link", name="Report as a file").click()
        assert (await saved.value).suggested_filename.endswith(".html")
        await page.get_by_role("link", name="Report", exact=True).click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("openai/fake")
        share = page.locator(".shares .scored").first
        # By its own style sheet and by the style of the one element.
        assert await share.evaluate("each => getComputedStyle(each).backgroundColor") != "rgba(0, 0, 0, 0)"
        assert await share.evaluate("each => each.clientWidth") > 0
        assert opened.errors == []


async def test_run_is_watched_to_its_figures_without_a_reload(site: Site) -> None:
    await site.stack.model_server.control(latency_seconds=0.05)
    run_id = await site.stack.submit(keyed_order(limit=1000))
    async with tab(site.browser, site.url) as opened:
        await opened.open(f"/runs/{run_id}")
        await opened.page.evaluate("window.sameDocument = true")
        done = opened.page.locator("progress.big")

        async def progressed() -> bool:
            return float(await done.get_attribute("value") or 0) > 0

        await eventually(progressed, "progress is pushed")
        # Figures of a chart are read as a table too, which stays open while rows are added.
        await opened.page.locator("#speed-table summary").click()
        rows = opened.page.locator("#speed-table[open] tbody tr")
        known = await rows.count()
        await expect(rows.nth(known)).to_be_visible(timeout=30_000)
        await site.stack.model_server.control(latency_seconds=0)
        await opened.page.locator("table.figures").wait_for(timeout=60_000)
        assert await opened.page.evaluate("window.sameDocument")
        assert opened.errors == []


async def test_run_is_paused_resumed_and_stopped_from_its_page(site: Site) -> None:
    await site.stack.model_server.control(latency_seconds=0.2)
    run_id = await site.stack.submit(keyed_order())
    try:
        async with tab(site.browser, site.url) as opened:
            page = opened.page
            await opened.open(f"/runs/{run_id}")
            await page.get_by_role("button", name="Pause").click()
            await expect(page.locator(".notice")).to_contain_text("paused")
            await page.locator(".notice").get_by_role("button", name="Resume").click()
            await expect(page.locator(".notice")).to_contain_text("continues")
            await page.get_by_role("link", name="Stop…").click()
            await page.get_by_role("dialog").get_by_role("button", name="Stop the run").click()
            await expect(page.locator("#live .state")).to_have_text("cancelled")
            assert opened.errors == []
    finally:
        await site.stack.model_server.control(latency_seconds=0)


async def test_killed_gateway_is_watched_again_without_a_reload(site: Site) -> None:
    await site.stack.model_server.control(latency_seconds=0.2)
    run_id = await site.stack.submit(keyed_order())
    try:
        async with tab(site.browser, site.url) as opened:
            await opened.open(f"/runs/{run_id}")
            await opened.page.locator("#live tbody tr").first.wait_for()
            await opened.page.evaluate("window.sameDocument = true")
            pid = site.stack.stack.child("gateway").pid
            assert pid
            os.kill(pid, signal.SIGKILL)
            await eventually(
                lambda: site.stack.stack.child("gateway").pid not in {None, pid}, "it is started"
            )
            tick = opened.page.locator("#tick")
            last = await tick.get_attribute("value")

            async def renewed() -> bool:
                return await tick.get_attribute("value") != last

            await eventually(renewed, "figures are pushed again")
            assert await opened.page.evaluate("window.sameDocument")
    finally:
        await site.stack.model_server.control(latency_seconds=0)
        await eventually(site.stack.stack.child("gateway").ready.is_set, "the gateway is back", 30)
        await site.stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))


async def test_eight_tabs_of_one_browser_are_all_live(site: Site) -> None:
    await site.stack.model_server.control(latency_seconds=0.2)
    run_id = await site.stack.submit(keyed_order())
    try:
        async with tab(site.browser, site.url) as first:
            others = [await tab_in(first.page.context, site.url) for _ in range(7)]
            tabs = [first, *others]
            await asyncio.gather(*(each.open(f"/runs/{run_id}") for each in tabs))

            async def tick(index: int) -> float:
                return float(await tabs[index].page.locator("#tick").get_attribute("value") or 0)

            begun = [await tick(index) for index in range(8)]
            for index in range(8):

                async def renewed(index: int = index) -> bool:
                    return await tick(index) > begun[index]

                await eventually(renewed, f"tab {index} is renewed")
    finally:
        await site.stack.model_server.control(latency_seconds=0)
        await site.stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))


async def test_keyboard_alone_leads_from_the_list_to_a_run_and_back(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        keys = opened.page.keyboard
        await opened.open("/runs")
        await keys.press("j")
        await keys.press("Enter")
        await opened.page.locator("h1").get_by_text("on").wait_for()
        await keys.press("g")
        await keys.press("r")
        await opened.page.locator("table.runs").wait_for()
        await keys.press("/")
        await expect(opened.page.locator("#model")).to_be_focused()


async def test_rows_that_are_chosen_by_a_key_are_compared(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/runs?state=completed")
        keys = page.keyboard
        for run_id in site.runs:
            await page.locator(f"#run-{run_id} th a").focus()
            await keys.press("x")
        await expect(page.locator("table.runs input:checked")).to_have_count(2)
        for count in (1, 2):
            await keys.press("x")
            await expect(page.locator("table.runs input:checked")).to_have_count(count)
        # What is chosen stays while the list is renewed.
        await page.evaluate(
            "htmx.ajax('GET', '/runs?state=completed', { target: '#rows', swap: 'outerMorph' })"
        )
        await expect(page.locator("table.runs input:checked")).to_have_count(2)
        await page.get_by_role("button", name="Compare the chosen").click()
        await page.locator("table.forest").wait_for()
        assert page.url.count("run=") == 2
        assert opened.errors == []


async def test_filter_is_in_the_address_and_back_restores_it(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/runs")
        await page.locator("#model").fill("openai/other")
        # A part of a name is not a model: it is looked for once it is entered.
        await page.locator("#model").press("Enter")
        await page.wait_for_url("**/runs?model=openai%2Fother")
        await expect(page.locator("table.runs tbody tr").filter(has_text="fake")).to_have_count(0)
        await page.go_back()
        await expect(page.locator("table.runs tbody tr").filter(has_text="fake").first).to_be_visible()
