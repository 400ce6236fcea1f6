"""Data sets in a browser: dropped and refused files, the rows as a model is asked, a run, deletion."""

import json
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.e2e.pages.conftest import MODELS, Site
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

LINES = [
    json.dumps({"id": f"q-{n}", "prompt": f"What is {n} and {n}?", "target": str(2 * n)}) for n in range(25)
]
# Puts a file into the browser's hand and drops it on the form.
_DROP = """([text, name]) => {
  const moved = new DataTransfer();
  moved.items.add(new File([text], name));
  const drop = new DragEvent("drop", { dataTransfer: moved, bubbles: true });
  document.querySelector("upload-form").dispatchEvent(drop);
}"""


async def test_file_is_refused_at_once_then_dropped_run_and_deleted(site: Site, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([LINES[0], '{"id": 7}', "no json at all"]))
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/datasets")
        await page.locator("input[type=file]").set_input_files(broken)
        await page.get_by_role("button", name="Upload").click()
        faults = page.locator("table.faults tbody tr")
        await expect(faults).to_have_count(2)
        await expect(faults.last.locator("pre")).to_have_text("no json at all")
        await expect(page.locator("#announced")).to_contain_text("2 faults")
        # The browser reports the status of the refused upload; nothing else may be wrong.
        assert [each for each in opened.errors if "422" not in each] == []
        opened.errors.clear()
        await page.evaluate(_DROP, ["\n".join(LINES), "sums.jsonl"])
        await page.wait_for_url("**/datasets/ds_*")
        await expect(page.locator("#preview")).to_contain_text("What is 3 and 3?")
        await page.keyboard.press("n")
        await page.wait_for_url("**first=10*")
        await page.get_by_role("link", name="Run it").click()
        await page.locator("input[name=model]").fill(MODELS[0])
        await page.locator("input[name=model]").blur()
        await page.get_by_role("button", name="Start the run").click()
        await page.wait_for_url("**/runs/*-*")
        await expect(page.get_by_role("link", name="sums.jsonl")).to_be_visible()
        await page.get_by_role("link", name="sums.jsonl").click()
        await page.wait_for_url("**/datasets/ds_*")
        await expect(page.locator("table.runs tbody tr")).to_have_count(1)
        assert opened.errors == []


async def test_data_sets_in_every_look(site: Site, looks: Looks) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open("/datasets")
        await opened.page.evaluate(_DROP, ["\n".join(LINES[:12]), "kept.jsonl"])
        await opened.page.wait_for_url("**/datasets/ds_*")
        path = "/" + opened.page.url.removeprefix(site.url).lstrip("/")
    await site.check_in(looks, path, "dataset", until="#preview li")
    await site.check_in(looks, "/datasets", "datasets", until="table.datasets")
    await site.check_in(looks, "/datasets/runs", "dataset-runs")
    assert "What is 3 and 3?" in await site.reads_without_scripts(path)
    async with tab(site.browser, site.url) as opened:
        await opened.open(path)
        await opened.page.get_by_role("link", name="Delete").click()
        await opened.page.get_by_role("button", name="Delete the data set").click()
        await opened.page.wait_for_url("**/datasets")
        await expect(opened.page.locator(".notice")).to_contain_text("deleted")
