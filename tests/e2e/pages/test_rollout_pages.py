"""Rollouts in a browser: from the list over the grid, live, to a trajectory step by step."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import expect

from proctor.v1 import rollout_pb2
from tests.e2e.harness.run_ends import ended
from tests.e2e.pages.conftest import MODELS, Site
from tests.harness.browser import Looks, tab
from tests.harness.rollout_orders import MEND, SPOIL, archive, harbor_tasks, rollouts_order
from tests.harness.rollout_tasks import harbor_folder, tb_meta_folder

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Text that would do something if a page took it for markup; a trajectory repeats it.
_MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
_HOSTILE = f"DO printf '{_MARKUP} \\342\\200\\256' > odd.html; cat odd.html\n"


async def test_an_order_is_watched_and_its_rollouts_are_read_step_by_step(
    site: Site, looks: Looks, tmp_path: Path
) -> None:
    harbor_tasks(
        tmp_path, {"mend-a-function": MEND.replace("Mend it.\n", f"Mend it.\n{_HOSTILE}"), "spoil": SPOIL}
    )
    harbor_folder(tmp_path / "without-a-result", test="exit 1; true")
    order = rollouts_order("mended", archive(tmp_path), rollouts=2)
    del order.models[:]
    order.models.extend(MODELS)
    ordered = await site.stack.client.rollouts.SubmitRollouts(order)
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/rollouts")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/rollouts/{ordered.order_id}")
        # The page renews itself until both runs have ended; those with a failed verifier fail.
        await expect(page.locator("main")).to_contain_text("12 of 12 rollouts", timeout=100_000)
        await asyncio.gather(*(ended(site.stack, run.run_id) for run in ordered.runs))
        await opened.open(f"/rollouts/{ordered.order_id}")
        await expect(page.locator("#task-0 a.outcome.right")).to_have_count(4)
        # A bar says how far something is that goes on.
        await expect(page.locator("progress")).to_have_count(0)
        await expect(page.get_by_role("link", name="rollout 0: right").first).to_be_visible()
        await expect(page.locator("#task-1 a.outcome.wrong")).to_have_count(4)
        await expect(page.locator("#task-2 a.outcome.failed")).to_have_count(4)
        await page.locator("#task-0 a.outcome").first.click()
        await page.wait_for_url(f"**/runs/{ordered.runs[0].run_id}/rollouts/0/0")
        await expect(page.locator(".trajectory li.step-agent")).to_have_count(4)
        await expect(page.locator(".trajectory")).to_contain_text("<img src=x onerror=alert(1)>")
        await expect(page.locator(".diff ins").first).to_be_visible()
        assert await page.locator("main img").count() == 0
        await page.keyboard.press("n")
        await page.wait_for_url("**/rollouts/0/1")
        assert opened.errors == []
    run = ordered.runs[0].run_id
    for path, name in (
        ("/rollouts", "rollouts"),
        (f"/rollouts/{ordered.order_id}", "rollouts-order"),
        (f"/runs/{run}/rollouts", "rollouts-run"),
        (f"/runs/{run}/rollouts/0/0", "rollout"),
        (f"/runs/{run}/rollouts/2/0", "rollout-failed"),
    ):
        await site.check_in(looks, path, name)
    assert "mend-a-function" in await site.reads_without_scripts(f"/rollouts/{ordered.order_id}")
    assert "cat doubling.py" in await site.reads_without_scripts(f"/runs/{run}/rollouts/0/0")


async def test_rubrics_are_shown_one_by_one(site: Site, looks: Looks, tmp_path: Path) -> None:
    tb_meta_folder(tmp_path / "judged")
    agent = rollout_pb2.RolloutAgent(kind=rollout_pb2.AGENT_KIND_NONE)
    ordered = await site.stack.client.rollouts.SubmitRollouts(
        rollouts_order("rubrics", archive(tmp_path), agent=agent)
    )
    run = ordered.runs[0].run_id
    await ended(site.stack, run)
    await site.check_in(looks, f"/runs/{run}/rollouts/0/0", "rollout-rubrics", until="#rubrics")
    # This run is complete, so the model has suites and rollouts side by side.
    await site.check_in(looks, f"/models/{MODELS[0]}", "model", until="table.models")
    text = await site.reads_without_scripts(f"/runs/{run}/rollouts/0/0")
    assert all(word in text for word in ("passed", "failed", "Criterion"))
