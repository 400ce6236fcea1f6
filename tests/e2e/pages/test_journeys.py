"""Ways through several pages: order to leaderboard, by keys alone, in two browsers, without scripts."""

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.harness.run_ends import completed
from tests.e2e.pages.conftest import MODELS, Site
from tests.harness.browser import Look, chromium, tab
from tests.harness.stack_harness import keyed_order

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAIN = Look(has_scripts=False)
# As many rows as the runs of the site have: they are ranked together, and compared.
LIMIT = "30"
MAX_TABS = 120
# An answer that would act if a page took it for markup, and turns or hides what follows it.
HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    '<b hx-get="/sign-out" hx-trigger="load">\u202egnp.exe\u200b</b>'
)


async def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Presses Tab, or Shift+Tab, until the element has the focus."""
    for _ in range(MAX_TABS):
        await page.keyboard.press(key)
        if await page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
    raise AssertionError(f"{key} does not reach {selector}")


async def test_a_run_is_watched_from_its_order_to_the_leaderboard(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/runs/new?model=openai/other&benchmark=suite:starter")
        await page.locator("input[name=limit]").fill(LIMIT)
        await page.get_by_role("button", name="Start the run").click()
        await page.wait_for_url("**/runs/*-*")
        run_id = page.url.rpartition("/")[2]
        await page.locator("table.figures").wait_for(timeout=60_000)
        await page.get_by_role("link", name="starter", exact=True).click()
        await expect(page.locator(f"#run-{run_id}")).to_be_visible()
        await page.get_by_role("navigation").get_by_role("link", name="Leaderboard").click()
        await page.locator("#include").select_option("limited")
        await expect(page.locator(f".ranking a[href='/runs/{run_id}']")).to_be_visible()
        await page.locator(f".ranking a[href='/runs/{run_id}']").click()
        await expect(page.locator("table.figures")).to_be_visible()
        assert opened.errors == []


async def test_a_run_is_ordered_watched_and_compared_by_keys_alone(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page, keys = opened.page, opened.page.keyboard
        await opened.open("/")
        await keys.press("g")
        await keys.press("r")
        await page.wait_for_url("**/runs")
        await tab_to(page, "a[href='/runs/new']")
        await keys.press("Enter")
        await page.wait_for_url("**/runs/new")
        await tab_to(page, "input[name=model]")
        await keys.type(MODELS[0])
        await tab_to(page, "select[name=benchmark]")
        await keys.type("starter")
        await tab_to(page, "input[name=limit]")
        await keys.type(LIMIT)
        await tab_to(page, "input[name=num_fewshot]")
        await page.wait_for_url(f"**limit={LIMIT}*")
        await expect(page.locator("select[name=benchmark]")).to_have_value("suite:starter")
        await tab_to(page, "#order button[type=submit]")
        await keys.press("Enter")
        await page.wait_for_url("**/runs/*-*")
        await page.locator("table.figures").wait_for(timeout=60_000)
        await tab_to(page, "a[href^='/compare?run=']")
        await keys.press("Enter")
        await page.locator("table.candidates input:checked").wait_for()
        await tab_to(page, "table.candidates input:not(:checked)")
        await keys.press("Space")
        await tab_to(page, "#selection button.main", "Shift+Tab")
        await keys.press("Enter")
        await page.locator("table.forest").wait_for()
        assert opened.errors == []


async def test_two_browsers_watch_one_run_and_see_what_either_does(site: Site) -> None:
    await site.stack.model_server.control(latency_seconds=0.2)
    run_id = await site.stack.submit(keyed_order())
    try:
        async with (
            chromium() as other,
            tab(site.browser, site.url) as first,
            tab(other, site.url) as second,
        ):
            for each in (first, second):
                await each.open(f"/runs/{run_id}")
                await each.page.evaluate("window.sameDocument = true")
            await first.page.get_by_role("button", name="Pause").click()
            await expect(second.page.locator("#live .state")).to_have_text("paused")
            await second.page.get_by_role("button", name="Resume").click()
            await expect(first.page.locator("#live .state").first).not_to_have_text("paused")
            await second.page.get_by_role("link", name="Stop…").click()
            await second.page.get_by_role("dialog").get_by_role("button", name="Stop the run").click()
            await expect(first.page.locator("#live .state")).to_have_text("cancelled")
            assert first.errors + second.errors == []
    finally:
        await site.stack.model_server.control(latency_seconds=0)


async def test_hostile_answers_do_nothing_in_a_browser(site: Site) -> None:
    await site.stack.model_server.control(answer_text=HOSTILE)
    try:
        run_id = await completed(site.stack, keyed_order(limit=3))
    finally:
        await site.stack.model_server.control(answer_text="")
    other = await completed(site.stack, keyed_order(limit=3))
    async with tab(site.browser, site.url) as opened:
        for path in (
            f"/runs/{run_id}/results?row=0.0",
            f"/compare?run={run_id}&run={other}&show=all",
            f"/runs/{run_id}",
        ):
            await opened.open(path)
            shown = await opened.page.locator("main").inner_text()
            assert ("<img src=x" in shown) == (path != f"/runs/{run_id}")
            assert await opened.page.locator("main img, main b[hx-get], main script").count() == 0
            assert await opened.page.title() != "hacked"
            assert not {"\u202e", "\u200b"} & set(shown)
        assert opened.errors == []


async def test_a_run_is_ordered_and_an_answer_is_marked_without_scripts(site: Site) -> None:
    async with tab(site.browser, site.url, PLAIN) as opened:
        page = opened.page
        await opened.open("/runs/new")
        await page.locator("input[name=model]").fill(MODELS[1])
        await page.locator("select[name=benchmark]").select_option("suite:starter")
        await page.locator("input[name=limit]").fill("2")
        await page.get_by_role("button", name="Start the run").click()
        await expect(page.locator(".notice")).to_contain_text("Run started.")
        await opened.open(f"/runs/{site.runs[1]}/results")
        await page.locator("table.answers tbody th a").first.click()
        golden = page.locator("#detail .marks-form button").first
        for pressed, said in (("true", "is marked as golden"), ("false", "has no mark any more")):
            # The page with the answer comes back.
            await golden.click()
            await expect(page.locator(".notice")).to_contain_text(said)
            await expect(golden).to_have_attribute("aria-pressed", pressed)


async def test_a_file_is_uploaded_without_scripts_and_its_faults_are_named(
    site: Site, tmp_path: Path
) -> None:
    broken, sound = tmp_path / "broken.jsonl", tmp_path / "plain.jsonl"
    broken.write_text("no json at all")
    sound.write_text(json.dumps({"prompt": "What is 1 and 1?"}))
    async with tab(site.browser, site.url, PLAIN) as opened:
        page = opened.page
        await opened.open("/datasets")
        await page.locator("input[type=file]").set_input_files(broken)
        await page.get_by_role("button", name="Upload").click()
        await expect(page.locator("table.faults tbody tr")).to_have_count(1)
        await page.locator("input[type=file]").set_input_files(sound)
        await page.get_by_role("button", name="Upload").click()
        await page.wait_for_url("**/datasets/ds_*")
        await expect(page.locator("#preview")).to_contain_text("What is 1 and 1?")
        await page.get_by_role("link", name="Delete", exact=True).click()
        await page.get_by_role("button", name="Delete the data set").click()
        await expect(page.locator(".notice")).to_contain_text("is deleted")
