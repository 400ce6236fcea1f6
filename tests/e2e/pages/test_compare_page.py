"""A comparison in a browser, over the runs of a real stack: selection, samples, keyboard."""

import pytest
from playwright.async_api import expect

from tests.e2e.pages.conftest import Site
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")


def comparison(site: Site) -> str:
    return "/compare?" + "&".join(f"run={run_id}" for run_id in site.runs)


async def test_comparison_in_every_look(site: Site, looks: Looks) -> None:
    await site.check_in(looks, "/compare", "compare-selection", until="table.candidates")
    await site.check_in(looks, f"{comparison(site)}&show=all", "compare", until="article.sample")
    text = await site.reads_without_scripts(comparison(site))
    assert "reference run" in text


async def test_runs_are_chosen_and_compared_and_either_side_opens(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/compare?suite=starter")
        for run_id in site.runs:
            await page.locator(f"input[value='{run_id}']").check()
        await page.get_by_role("button", name="Compare", exact=True).click()
        await expect(page.locator("table.forest .whole").first).to_be_visible()
        reference = await page.locator("table.sides tbody th").first.inner_text()
        await page.get_by_role("link", name="Make it the reference run").click()
        await expect(page.locator("table.sides tbody th").first).not_to_have_text(reference)
        await page.get_by_role("navigation", name="Which samples").get_by_role("link", name="all").click()
        await page.wait_for_url("**show=all*")
        await page.locator("article.sample .pair a").first.click()
        await page.locator("#detail pre").first.wait_for()
        await page.go_back()
        await expect(page.locator("article.sample").first).to_be_visible()
        assert opened.errors == []


async def test_answer_is_marked_golden_or_wrong_by_a_key(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open(f"{comparison(site)}&show=all")
        await page.locator("article.sample").first.focus()
        button = page.locator("article.sample").first.locator("[data-press='1']")
        await expect(button).to_have_attribute("aria-pressed", "false")
        await page.locator("article.sample").first.focus()
        await page.keyboard.press("1")
        await expect(button).to_have_attribute("aria-pressed", "true")
        # With Shift the same key marks it as wrong instead.
        wrong = page.locator("article.sample").first.locator("[data-press='shift 1']")
        await page.keyboard.press("Shift+Digit1")
        await expect(wrong).to_have_attribute("aria-pressed", "true")
        await expect(button).to_have_attribute("aria-pressed", "false")
        await page.locator("article.sample").first.focus()
        await page.keyboard.press("1")
        await expect(button).to_have_attribute("aria-pressed", "true")
        await opened.open(f"/runs/{site.runs[0]}/results?marked=golden")
        await expect(page.locator("table.answers tbody tr")).to_have_count(1)
        await page.keyboard.press("j")
        await expect(page.locator("table.answers .golden-mark")).to_have_count(1)
        # The first answer was open before: it is replaced by the chosen one.
        await expect(page.locator("#detail [data-unasked]")).to_have_count(0)
        await page.locator("#detail [aria-pressed='true']").click()
        await expect(page.locator("#detail [aria-pressed='false']")).to_have_count(2)
        # The row of the list follows, and what was done is said.
        await expect(page.locator("table.answers .golden-mark")).to_have_count(0)
        await expect(page.locator("#notices")).to_contain_text("no mark any more")
        assert opened.errors == []
