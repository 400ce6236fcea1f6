"""Pages for who is signed out, may not change what is shown, or asks for what is not there or not ready."""

import json
import os
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from proctor.client.proctor_client import ProctorClient
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.e2e.pages.conftest import Site
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.thorough_cases import first_cases
from tests.harness.browser import EACH_LOOK, Look, Looks, Tab, chromium, tab
from tests.harness.stack_harness import StackOrder, keyed_order, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEYS = {"ann": "the-key-of-ann-0123456789", "bob": "the-key-of-bob-0123456789"}
NO_ID = "00000000-0000-4000-8000-000000000000"
NEXT_STEPS = ".problem-page .actions a"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded() -> AsyncIterator[Site]:
    """A stack with API keys: ann is an operator and has a run, bob is none."""
    keys = {"PROCTOR_GATEWAY_API_KEYS": json.dumps(KEYS), "PROCTOR_GATEWAY_OPERATORS": '["ann"]'}
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=4, environment=keys)
        async with stack_harness(state_dir.parent, order) as stack, chromium() as browser:
            async with ProctorClient(stack.stack.gateway_grpc, api_key=KEYS["ann"]) as ann:
                run = (await ann.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=keyed_order()))).run
                async for seen in ann.watch_run(run.run_id):
                    run = seen
            yield Site(stack, browser, (run.run_id,))


async def sign_in(opened: Tab, user: str) -> None:
    await opened.page.locator("input[name=key]").fill(KEYS[user])
    await opened.page.get_by_role("button", name="Sign in").click()


async def check_problem(opened: Tab, status: int) -> None:
    """The page itself has no fault; the browser reports its status, as it should."""
    assert [each for each in opened.errors if str(status) not in each] == []
    opened.errors.clear()
    await opened.check()


@first_cases(1, "look", EACH_LOOK)
async def test_who_is_signed_out_signs_in_and_is_where_the_address_led(guarded: Site, look: Look) -> None:
    async with tab(guarded.browser, guarded.url, look) as opened:
        page = opened.page
        await opened.open(f"/runs/{guarded.runs[0]}/results?status=right")
        await expect(page.locator("main")).to_contain_text("asks for an API key")
        await expect(page.locator("main")).not_to_contain_text("Bearer")
        await check_problem(opened, 401)
        await page.locator("input[name=key]").fill("no key that anybody has")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#fault-key")).to_contain_text("unknown")
        await check_problem(opened, 401)
        await sign_in(opened, "bob")
        await page.wait_for_url("**/results?status=right")
        await expect(page.locator(".notice")).to_contain_text("signed in as bob")
        await opened.check()


@pytest.mark.parametrize("look", EACH_LOOK)
async def test_a_user_is_offered_no_change_of_others_and_one_all_the_same_is_refused(
    guarded: Site, look: Look
) -> None:
    run = f"/runs/{guarded.runs[0]}"
    async with tab(guarded.browser, guarded.url, look) as opened:
        page = opened.page
        await opened.open(f"/sign-in?next={run}")
        await sign_in(opened, "bob")
        await expect(page.locator("main")).to_contain_text(
            "Only ann, maintainers and operators may change this run."
        )
        await expect(page.get_by_role("link", name="Delete…")).to_have_count(0)
        await opened.open("/queue")
        await expect(page.locator("input[name=max_running_runs]")).to_be_disabled()
        await opened.open(run)
        await _post(page, f"{run}/delete")
        await expect(page.locator("main h1")).to_have_text("Not allowed")
        await expect(page.locator("main")).to_contain_text("belongs to ann")
        await check_problem(opened, 403)
        await page.locator(NEXT_STEPS).get_by_text("Back").click()
        await page.wait_for_url(f"**{run}")


@pytest.mark.parametrize("look", EACH_LOOK)
@first_cases(
    1,
    ("path", "leads_to"),
    [
        (f"/runs/{NO_ID}", "/runs"),
        (f"/datasets/ds_{NO_ID.replace('-', '')}", "/datasets"),
        ("/suites/nothing", "/suites"),
        ("/nothing/here", "/runs"),
    ],
)
async def test_what_is_not_there_says_so_and_leads_to_what_is(
    guarded: Site, look: Look, path: str, leads_to: str
) -> None:
    async with tab(guarded.browser, guarded.url, look) as opened:
        await opened.open(f"/sign-in?next={path}")
        await sign_in(opened, "bob")
        await expect(opened.page.locator("main h1")).to_have_text("Not found")
        # The words of the REST API are its clients'.
        await expect(opened.page.locator("main")).not_to_contain_text("Benchmark job")
        await expect(opened.page.locator(NEXT_STEPS)).to_have_attribute("href", leads_to)
        await check_problem(opened, 404)


@pytest.mark.thorough
async def test_a_service_that_hangs_is_a_page_that_says_when_to_try_again(
    guarded: Site, looks: Looks
) -> None:
    results = guarded.stack.stack.child("results").pid
    assert results
    for look in looks:
        async with tab(guarded.browser, guarded.url, look) as opened:
            await opened.open("/sign-in?next=/settings")
            await sign_in(opened, "bob")
            await opened.page.wait_for_url("**/settings")
            os.kill(results, signal.SIGSTOP)
            try:
                await opened.open("/leaderboard?suite=starter")
                await expect(opened.page.locator("main h1")).to_have_text("Not available now")
                await expect(opened.page.locator("main")).to_contain_text("Try again in")
                await check_problem(opened, 503)
            finally:
                os.kill(results, signal.SIGCONT)
            await opened.page.locator(NEXT_STEPS).get_by_text("Try again").click()
            await expect(opened.page.locator("main h1")).to_have_text("Leaderboard")


async def _post(page: Page, path: str) -> None:
    """Sends a form that the page does not offer."""
    await page.evaluate(
        "path => { const form = document.createElement('form'); form.method = 'post'; form.action = path;"
        " document.body.append(form); form.submit(); }",
        path,
    )
    await page.wait_for_url(f"**{path}")
