"""Ordering, the playground, the overview, the queue and the settings in a browser, on the real stack."""

import re

import pytest
from playwright.async_api import expect

from proctor.v1 import run_pb2
from tests.e2e.pages.conftest import MODELS, Site
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "overview"),
        ("/runs/new?model=openai/fake&benchmark=suite:starter", "order"),
        ("/queue", "queue"),
        ("/settings", "settings"),
    ],
)
async def test_page_in_every_look(site: Site, looks: Looks, path: str, name: str) -> None:
    await site.check_in(looks, path, name)
    assert await site.reads_without_scripts(path)


async def test_order_by_keyboard_and_mouse_becomes_a_run_that_completes(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/runs/new")
        await page.locator("input[name=model]").fill("openai/other")
        await page.locator("select[name=benchmark]").select_option("suite:starter")
        await page.locator("input[value=sentiment]").check()
        await page.locator("input[name=limit]").fill("7")
        await page.locator("input[name=limit]").press("Tab")
        await expect(page.locator("#estimate")).to_contain_text(
            re.compile(r"Until its end.*its wait included")
        )
        await expect(page.locator("input[name=limit]")).to_have_value("7")
        assert "model=openai" in page.url
        await page.get_by_role("button", name="Start the run").click()
        await expect(page.locator(".notice")).to_contain_text("Run started.")
        await page.locator("table.figures").wait_for(timeout=60_000)
        await expect(page.locator("table.figures tbody tr")).to_have_count(1)
        assert opened.errors == []


async def test_fields_of_a_decision_come_with_its_tick(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/runs/new?model=openai/fake&benchmark=suite:starter")
        margin = page.locator("input[name=margin_points]")
        await expect(margin).to_be_hidden()
        await page.locator("input[name=until_decided]").check()
        await expect(margin).to_be_visible()
        await opened.check()


async def test_start_is_in_view_above_the_fold(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open("/runs/new?model=openai/fake&benchmark=suite:starter")
        start = opened.page.get_by_role("button", name="Start the run")
        await expect(start).to_be_in_viewport(ratio=1)
        # The bar covers no field that has the focus.
        await opened.page.locator("textarea[name=custom]").focus()
        await opened.page.wait_for_function(
            "document.activeElement.getBoundingClientRect().bottom"
            " <= document.querySelector('.order .actions').getBoundingClientRect().top"
        )
        assert opened.errors == []


async def test_an_order_of_all_tasks_of_another_size_has_an_estimate(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open(f"/runs/new?model={MODELS[0]}&benchmark=suite:starter&limit=11")
        # Its band is not shown where it is wider than four times, which hangs on how busy the machine is.
        await expect(opened.page.locator("#estimate")).to_contain_text(re.compile(r"Until its end\s*[0-9]"))
        assert opened.errors == []


async def test_what_is_refused_is_said_at_its_field_and_nothing_entered_is_lost(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/runs/new?model=openai/fake&benchmark=suite:starter")
        await page.locator("textarea[name=custom]").fill("{bad")
        for name, value in (("temperature", "9"), ("limit", "0"), ("max_cost", "-1")):
            await page.locator(f"input[name={name}]").fill(value)
        await page.locator("input[name=temperature]").press("Tab")
        # Before the order, beside the estimate: each by the name of its field.
        await expect(page.locator("#estimate a", has_text="Temperature")).to_be_visible()
        await expect(page.locator("#estimate .fault")).to_contain_text("Limit rows per task: At least 1.")
        await page.get_by_role("button", name="Start the run").click()
        await expect(page.locator("#fault-custom")).to_contain_text("not JSON")
        await expect(page.locator("#fault-temperature")).to_have_text("At most 2.")
        await expect(page.locator("#fault-limit")).to_have_text("At least 1.")
        await expect(page.locator("#fault-max_cost")).to_have_text("More than 0.")
        await expect(page.locator("input[name=temperature]")).to_have_value("9")
        # The first of them has the focus, and the address all that is entered.
        await expect(page.locator("input[name=limit]")).to_be_focused()
        await expect(page).to_have_title("Refused: New run · Proctor")
        assert "limit=0" in page.url
        assert "temperature=9" in page.url
        await page.reload()
        await expect(page.locator("#fault-temperature")).to_have_text("At most 2.")
        await expect(page.locator("textarea[name=custom]")).to_have_value("{bad")
        # The browser reports the status of the refused order; nothing else may be wrong.
        assert [each for each in opened.errors if "422" not in each] == []


async def test_limit_is_changed_beside_the_queue_and_a_wrong_one_is_refused_there(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/queue")
        await page.locator("input[name=max_running_runs]").fill("0")
        await page.get_by_role("button", name="Change the limits").click()
        await expect(page.locator("#fault-max_running_runs")).to_have_text("At least 1.")
        await expect(page.locator("input[name=max_running_runs]")).to_be_focused()
        await page.locator("input[name=max_running_runs]").fill("4")
        await page.get_by_role("button", name="Change the limits").click()
        await expect(page.locator(".notice")).to_contain_text("from now on")
        await expect(page.locator("#live")).to_contain_text("of 4 slots")
        await expect(page.locator("input[name=max_running_runs]")).to_have_value("4")
        # A second change at once: it begins at the first, and its undo leads back to it.
        await page.locator("input[name=max_running_runs]").fill("5")
        await page.get_by_role("button", name="Change the limits").click()
        await expect(page.locator("input[name=max_running_runs]")).to_have_value("5")
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator("input[name=max_running_runs]")).to_have_value("4")


async def test_newest_runs_of_the_overview_are_pushed_also_after_a_filter(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/")
        await page.locator("input[name=days]").fill("7")
        await page.locator("input[name=days]").press("Tab")
        await page.wait_for_url("**/?*days=7*")
        order = run_pb2.RunOrder(project_id=1, suite="starter", model="openai/fake", limit=1, rollouts=2)
        run_id = await site.stack.submit(order)
        row = page.locator(f"#run-{run_id}")
        await expect(row).to_contain_text("completed", timeout=60_000)
        await expect(page.locator("#stale")).to_be_hidden()
        assert opened.errors == []


async def test_theme_is_chosen_and_stays(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open("/settings")
        await opened.page.get_by_role("button", name="Dark", exact=True).click()
        await opened.page.locator('html[data-theme="dark"]').wait_for()
        await opened.open("/runs")
        await opened.page.locator('html[data-theme="dark"]').wait_for()


async def test_search_opens_a_run_by_its_id_and_lists_the_runs_of_a_model(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open(f"/search?q={site.runs[0]}")
        assert opened.page.url.endswith(f"/runs/{site.runs[0]}")
        await opened.open("/search?q=openai/other")
        await expect(opened.page.locator("table.runs tbody tr").first).to_contain_text("other")


async def test_two_models_answer_one_prompt_and_an_answer_is_kept(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/playground")
        await page.locator("textarea[name=system]").fill("Be brief.")
        await page.locator("textarea[name=prompt]").fill("What is\n<b>two</b> & two?")
        await page.locator("input[name=models]").fill("openai/fake, openai/other")
        await page.locator("input[name=max_tokens]").fill("16")
        await page.get_by_role("button", name="Ask").click()
        answers = page.locator(".abreast article")
        await expect(answers).to_have_count(2)
        # The page asks for the answers by itself.
        await expect(page.get_by_role("button", name="Keep as a row")).to_have_count(2, timeout=60_000)
        await expect(page.locator("#live")).not_to_have_attribute("hx-trigger", "every 1s")
        await page.reload()
        await opened.check()
        await expect(page.locator("textarea[name=prompt]")).to_have_value("What is\n<b>two</b> & two?")
        await expect(page.locator("textarea[name=system]")).to_have_value("Be brief.")
        await expect(page.locator("input[name=models]")).to_have_value("openai/fake, openai/other")
        await expect(page.locator("input[name=max_tokens]")).to_have_value("16")
        answer = await answers.first.locator("pre").inner_text()
        await page.get_by_role("button", name="Keep as a row").first.click()
        await expect(page.locator(".notice")).to_contain_text("The prompt is stored")
        await expect(page.locator("main")).to_contain_text(answer.strip())
        assert opened.errors == []


async def test_a_model_that_does_not_exist_is_named_at_its_field(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/playground")
        await page.locator("textarea[name=prompt]").fill("Two and two?")
        await page.locator("input[name=models]").fill("openai/fake nobody/has-this")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator("#fault-models")).to_contain_text("nobody")
        await expect(page.locator("textarea[name=prompt]")).to_have_value("Two and two?")
