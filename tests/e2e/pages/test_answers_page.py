"""The answers of a run in a browser: looks, filters, the chosen answer by keyboard, and without scripts."""

import io
import json

import pytest
from playwright.async_api import expect

from proctor.client.datasets import Upload
from proctor.v1 import run_pb2
from tests.e2e.harness.run_ends import completed
from tests.e2e.pages.conftest import MODELS, Site
from tests.fakes.thorough_cases import first_cases
from tests.harness.browser import Look, Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_answers_in_every_look(site: Site, looks: Looks) -> None:
    path = f"/runs/{site.runs[0]}/results"
    await site.check_in(looks, path, "answers", until="table.answers a")
    await site.check_in(looks, f"{path}?row=3.0&golden=&min_score=0", "answer", until="#detail pre")
    await site.check_in(looks, f"{path}?text=nowhere", "answers-empty", until="#found .empty")


async def test_answers_have_most_of_the_list(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open(f"/runs/{site.runs[0]}/results?task=sentiment")
        table = await opened.page.locator("table.answers").bounding_box()
        answer = await opened.page.locator("table.answers th.answer").bounding_box()
        assert table
        assert answer
        assert answer["width"] >= 0.4 * table["width"]


async def test_answers_are_read_and_filtered_without_scripts(site: Site) -> None:
    path = f"/runs/{site.runs[0]}/results"
    assert "sentiment" in await site.reads_without_scripts(path)
    text = await site.reads_without_scripts(f"{path}?row=3.0#detail")
    assert "Prompt" in text
    assert "Target" in text
    assert "No answer matches" in await site.reads_without_scripts(f"{path}?status=&task=&text=nowhere")
    # Its status is 400, which the console of a browser reports: a look with scripts would count that.
    assert "First page" in await site.reads_without_scripts(f"{path}?after=nonsense")


async def test_keys_choose_answers_and_the_address_follows(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open(f"/runs/{site.runs[0]}")
        await page.get_by_role("link", name="Results", exact=True).click()
        await page.locator("table.answers").wait_for()
        # The table is there before the scripts that read keys.
        await page.wait_for_load_state()
        await page.keyboard.press("j")
        await page.wait_for_url("**/results?row=0.0")
        await page.keyboard.press("j")
        await page.wait_for_url("**/results?row=1.0")
        await expect(page.locator("#detail pre").first).to_be_visible()
        await expect(page.locator("tr[aria-selected]")).to_have_count(1)
        chosen = await page.locator("#detail").inner_text()
        await page.reload()
        await expect(page.locator("#detail")).to_have_text(chosen, use_inner_text=True)
        await page.go_back()
        await expect(page.locator("h1")).not_to_contain_text("Results")
        assert opened.errors == []


@first_cases(1, "width", [390, 1440])
async def test_the_chosen_answer_is_closed_and_its_row_has_the_focus_again(site: Site, width: int) -> None:
    async with tab(site.browser, site.url, Look(width)) as opened:
        page = opened.page
        row = page.locator("tr[id='row-3.0'] th a")
        await opened.open(f"/runs/{site.runs[0]}/results?status=scored&row=3.0")
        await page.locator("#detail").evaluate("detail => detail.scrollTo(0, 9999)")
        close = page.get_by_role("link", name="Close the answer")
        await expect(close).to_be_in_viewport()
        await close.click()
        await page.wait_for_url("**/results?status=scored")
        await expect(page.locator("#detail")).to_contain_text("Choose a row")
        await expect(page.locator("tr[aria-selected]")).to_have_count(0)
        await expect(row).to_be_focused()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/results?status=scored&row=3.0")
        await page.keyboard.press("Escape")
        await page.wait_for_url("**/results?status=scored")
        await expect(row).to_be_focused()
        await opened.check()


async def test_the_chosen_answer_is_closed_without_scripts(site: Site) -> None:
    async with tab(site.browser, site.url, Look(390, has_scripts=False)) as opened:
        await opened.open(f"/runs/{site.runs[0]}/results?row=3.0")
        await opened.page.get_by_role("link", name="Close the answer").click()
        await opened.page.wait_for_url("**/results?row=none#row-3.0")
        await expect(opened.page.locator("#detail")).to_contain_text("Choose a row")


async def test_filter_is_in_the_address_and_back_restores_the_list(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open(f"/runs/{site.runs[0]}/results")
        rows = page.locator("table.answers tbody tr")
        before = await rows.count()
        assert before > 1
        await page.locator("#text").fill("nowhere")
        await page.wait_for_url("**/results?text=nowhere")
        await expect(page.locator("#found")).to_contain_text("No answer matches")
        await page.go_back()
        await expect(rows).to_have_count(before)
        await page.get_by_role("radio", name="failed", exact=True).check()
        await page.wait_for_url("**/results?status=failed")
        assert opened.errors == []


async def test_a_column_sorts_the_list_and_a_second_click_turns_it(site: Site, looks: Looks) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open(f"/runs/{site.runs[0]}/results?task=sentiment")
        outcomes = page.locator("table.answers td .outcome")
        await page.get_by_role("link", name="Outcome").click()
        await page.wait_for_url("**/results?task=sentiment&sort=score")
        await expect(outcomes.first).to_have_text("wrong")
        await expect(page.locator("th[aria-sort='ascending']")).to_contain_text("Outcome")
        await page.get_by_role("link", name="Outcome").click()
        await page.wait_for_url("**sort=-score")
        await expect(outcomes.first).to_have_text("right")
        await page.locator("select[name=sort]").select_option("-time")
        await page.wait_for_url("**sort=-time")
        await expect(page.locator("th[aria-sort='descending']")).to_contain_text("Time")
        assert opened.errors == []
    path = f"/runs/{site.runs[0]}/results?sort=-time"
    await site.check_in(looks, path, "answers-sorted", until="table.answers a")


@first_cases(1, "width", [1440, 390])
async def test_a_chosen_row_with_a_long_id_still_shows_its_end(site: Site, width: int) -> None:
    client = site.stack.client
    rows = "".join(
        json.dumps({"id": f"{'an-id-without-an-end-' * 12}{at}", "prompt": f"{at}. KEY=a"}) + "\n"
        for at in range(6)
    )
    uploaded = await client.upload_dataset(Upload(io.BytesIO(rows.encode()), f"long-{width}.jsonl"))
    order = run_pb2.RunOrder(project_id=1, dataset_id=uploaded.dataset.dataset_id, model=MODELS[0])
    run_id = await completed(site.stack, order)
    async with tab(site.browser, site.url, Look(width)) as opened:
        page, chosen = opened.page, opened.page.locator("tr[aria-selected] th")
        await opened.open(f"/runs/{run_id}/results?row=none")
        await page.locator("table.answers tbody th a").nth(3).click()
        await expect(page.locator("#detail")).to_contain_text("an-id-without-an-end-")
        await page.keyboard.press("j")
        await page.keyboard.press("k")
        await expect(chosen).to_have_count(1)
        # What is cut is cut in the middle: nothing scrolls the cell, and the number at the end stands in it.
        shown = await chosen.evaluate(
            """cell => {
                const range = document.createRange();
                const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
                let last = null;
                while (texts.nextNode()) if (texts.currentNode.data.trim()) last = texts.currentNode;
                const end = last.data.trimEnd().length;
                range.setStart(last, end - 1);
                range.setEnd(last, end);
                const place = range.getBoundingClientRect(), box = cell.getBoundingClientRect();
                const scrolled = [cell, ...cell.querySelectorAll("*")].map(each => each.scrollLeft);
                return [last.data.trim().slice(-1), Math.max(...scrolled),
                        place.width > 0 && place.left >= box.left && place.right <= box.right + 1];
            }"""
        )
        assert shown == ["3", 0, True]
        assert opened.errors == []
