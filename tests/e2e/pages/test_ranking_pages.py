"""The leaderboard and the history in a browser, over the runs of a real stack."""

import asyncio

import pytest
import pytest_asyncio
from playwright.async_api import expect

from proctor.v1 import run_pb2
from proctor.v1.leaderboard_service_pb2 import ListHistoryRequest
from tests.e2e.harness.run_ends import completed
from tests.e2e.pages.conftest import MODELS, Site
from tests.fakes.thorough_cases import first_cases
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

# The runs of the site are limited to the first rows of each task.
LIMITED = "/leaderboard?suite=starter&include=limited"
LIMIT = 30
SECONDS = 60


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ranked(site: Site) -> Site:
    """Once the latest runs of both models are alike and on the leaderboard, whatever other tests ordered.

    Results adds them after they have ended.
    """
    orders = [run_pb2.RunOrder(project_id=1, suite="starter", model=model, limit=LIMIT) for model in MODELS]
    runs = [await completed(site.stack, order) for order in orders]
    async with tab(site.browser, site.url) as opened, asyncio.timeout(SECONDS):
        await opened.open(LIMITED)
        while not all([await opened.page.locator(f".ranking a[href='/runs/{run}']").count() for run in runs]):
            await opened.page.reload()
    return site


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (LIMITED, "leaderboard"),
        (f"{LIMITED}&against=time", "pareto"),
        ("/leaderboard?suite=starter&num_fewshot=3", "unranked"),
    ],
)
async def test_page_in_every_look(ranked: Site, looks: Looks, path: str, name: str) -> None:
    await ranked.check_in(looks, path, name)
    text = await ranked.reads_without_scripts(path)
    assert all(model.partition("/")[2] in text for model in MODELS)


async def test_limited_runs_are_ranked_and_marked_where_no_run_is_whole(ranked: Site) -> None:
    async with tab(ranked.browser, ranked.url) as opened:
        page = opened.page
        await opened.open("/leaderboard?suite=starter")
        await expect(page.locator("tbody.partial tr")).to_have_count(len(MODELS))
        await page.get_by_role("link", name="Compare the first").click()
        await expect(page.locator("p.verdict")).to_be_visible()
        assert opened.errors == []


async def test_back_undoes_a_filter_of_the_leaderboard(ranked: Site) -> None:
    async with tab(ranked.browser, ranked.url) as opened:
        page = opened.page
        await opened.open("/leaderboard?suite=starter&scoring_method=constrained")
        await expect(page.locator("table.unranked tbody tr")).to_have_count(len(MODELS))
        await page.locator("select[name=scoring_method]").select_option("")
        await expect(page.locator("tbody.band tr")).to_have_count(len(MODELS))
        assert "scoring_method" not in page.url
        await page.go_back()
        await expect(page.locator("table.unranked tbody tr")).to_have_count(len(MODELS))
        assert opened.errors == []


@first_cases(
    2,
    ("path", "field", "value", "said"),
    [
        ("/", "suite", "starter", "{completed} completed runs in the last 30 days, average"),
        (LIMITED, "best", "true", "2 of 2 ranked models by"),
        (f"{LIMITED}&against=time", "best", "true", "2 of 2 ranked models by"),
        ("/runs", "suite", "starter", "{runs} of {runs} runs"),
    ],
)
async def test_list_says_how_much_a_filter_has_found(
    ranked: Site, path: str, field: str, value: str, said: str
) -> None:
    # Tests of other pages order runs on the same site.
    request = ListHistoryRequest(benchmark="starter", days=30, page_size=1)
    runs = (await ranked.stack.client.leaderboard.ListHistory(request)).total
    assert runs >= len(MODELS)
    request.state = run_pb2.RUN_STATE_COMPLETED
    completed = (await ranked.stack.client.leaderboard.ListHistory(request)).total
    async with tab(ranked.browser, ranked.url) as opened:
        await opened.open(path)
        await opened.page.locator(f".filters select[name={field}]").select_option(value)
        await expect(opened.page.locator("#announced")).to_contain_text(
            said.format(runs=runs, completed=completed)
        )
        assert opened.errors == []


async def test_table_of_the_trend_stays_open_when_the_filter_changes(ranked: Site) -> None:
    async with tab(ranked.browser, ranked.url) as opened:
        page = opened.page
        await opened.open("/")
        await page.get_by_text("As a table").click()
        await page.locator("#suite").select_option("starter")
        await page.wait_for_url("**/?suite=starter*")
        await expect(page.get_by_role("region", name="Scores over time")).to_be_visible()
