"""The answers of a run are scored again in a browser, against real results."""

import pytest
from playwright.async_api import expect

from tests.e2e.pages.conftest import Site
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_answers_are_scored_again_and_the_record_stays(site: Site, looks: Looks) -> None:
    run = site.runs[0]
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open(f"/runs/{run}")
        await page.get_by_role("link", name="Try another metric").click()
        await page.wait_for_url(f"**/runs/{run}/rescore")
        await page.locator("select[name=metric]").select_option("acc")
        await page.get_by_role("button", name="Score the answers again").click()
        await expect(page.locator("#outcome tbody tr")).to_have_count(1, timeout=30_000)
        await expect(page.locator("#outcome")).to_contain_text("Read differently")
        await page.wait_for_url("**/rescore?task=*&metric=acc")
        # What the answers cannot have is said at its field, and what was entered stays.
        await page.locator("select[name=metric]").select_option("mcc")
        await page.locator("#scoring summary").click()
        await page.locator("textarea[name=options]").fill("{")
        await page.get_by_role("button", name="Score the answers again").click()
        await expect(page.locator("#fault-options")).to_contain_text("not JSON")
        # The refusal of the form is its only error.
        assert all("422" in error for error in opened.errors)
    await site.check_in(looks, f"/runs/{run}/rescore?metric=acc", "rescore", until="#scoring")
    assert "Score the answers again" in await site.reads_without_scripts(f"/runs/{run}/rescore")
