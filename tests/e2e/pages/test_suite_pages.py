"""Suites in a browser: a rendered sample with shots, and a suite that is checked while it is typed."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.e2e.pages.conftest import Site
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

CITIES = "city,country\nLyon,France\nTurin,Italy\n"


async def test_suites_in_every_look(site: Site, looks: Looks) -> None:
    await site.check_in(looks, "/suites", "suites", until="table.suites")
    await site.check_in(looks, "/suites/starter?num_fewshot=2", "suite", until="#sample pre")
    await site.check_in(looks, "/suites/new", "suite-new", until="#checked .empty")
    assert "Sentiment" in await site.reads_without_scripts("/suites/starter")


async def test_suite_is_written_checked_added_and_shown(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text(CITIES)
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/suites/new")
        await expect(page.locator("#checked")).to_contain_text("cities.csv")
        await page.locator("#files").set_input_files(tmp_path / "cities.csv")
        await expect(page.locator("#checked")).to_contain_text("cities is valid")
        text = await page.locator("textarea").input_value()
        await page.locator("textarea").fill(text.replace("metric: acc", "metric: nonsense"))
        await expect(page.locator("#checked .fault")).to_be_visible()
        await page.locator("textarea").fill(text)
        await expect(page.locator("#checked")).to_contain_text("cities is valid")
        await page.get_by_role("button", name="Add the suite").click()
        await page.wait_for_url("**/suites/cities")
        await expect(page.locator("#sample pre").first).to_contain_text("In which country is Lyon?")
        await page.locator("input[name=row]").fill("1")
        await page.locator("input[name=row]").blur()
        await expect(page.locator("#sample pre").first).to_contain_text("In which country is Turin?")
        await page.wait_for_url("**row=1**")
        await page.get_by_role("link", name="Delete").click()
        await page.get_by_role("button", name="Delete the version").click()
        await page.wait_for_url("**/suites")
        assert opened.errors == []


async def test_a_prompt_is_seen_before_a_suite_is_added_and_a_new_version_begins_with_the_last(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "towns.csv").write_text(CITIES)
    async with tab(site.browser, site.url) as opened:
        page, prompt = opened.page, opened.page.locator("#preview pre").first
        await opened.open("/suites/new")
        text = (await page.locator("textarea").input_value()).replace("cities", "towns")
        await page.locator("textarea").fill(text)
        await page.locator("#files").set_input_files(tmp_path / "towns.csv")
        # It is shown once its data are there; the button is for a document that needs no file.
        await expect(prompt).to_contain_text("In which country is Lyon?")
        await page.locator("#preview input[name=row]").fill("1")
        await page.get_by_role("button", name="Show the prompt").click()
        await expect(prompt).to_contain_text("In which country is Turin?")
        await page.locator("#preview input[name=row]").fill("0")
        # It follows the text.
        await page.locator("textarea").fill(text.replace("In which country is {{", "Whose is {{"))
        await expect(prompt).to_contain_text("Whose is Lyon?")
        await opened.check()
        await page.get_by_role("button", name="Add the suite").click()
        await page.wait_for_url("**/suites/towns")
        await page.get_by_role("link", name="Write a new version").click()
        await expect(page.locator("#checked")).to_contain_text("towns is valid")
        await opened.check()
        await page.locator("input[name=kept]").uncheck()
        await expect(page.locator("#checked .fault")).to_be_visible()
        await page.locator("input[name=kept]").check()
        await page.locator("textarea").fill(text)
        await expect(page.locator("#checked")).to_contain_text("towns is valid")
        await page.get_by_role("button", name="Add the version").click()
        await page.wait_for_url("**/suites/towns")
        await expect(page.locator("main .sub").first).to_contain_text("version 2")
        await expect(page.locator("#sample pre").first).to_contain_text("In which country is Lyon?")
        assert opened.errors == []
