"""Every page between the usual widths, and what a page shows that is not there or has nothing to show."""

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.pages.conftest import Site
from tests.fakes.thorough_cases import every_third
from tests.harness.browser import Look, Tab, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = (320, 600, 768, 900, 1024, 1920, 2560)
FEW_WIDTHS = (320, 768)
# At these axe looks too, which takes a second of CPU: at each third page only where widths are few.
CHECKED = (768, 1920)
NO_ID = "00000000-0000-4000-8000-000000000000"
PAGES = {
    "overview": "/",
    "runs": "/runs",
    "no-runs": "/runs?state=paused",
    "order": "/runs/new",
    "run": "/runs/{run}",
    "answers": "/runs/{run}/results",
    "no-answers": "/runs/{run}/results?text=nothing+has+this",
    "rescore": "/runs/{run}/rescore",
    "compare-selection": "/compare",
    "compare": "/compare?run={run}&run={other}",
    "all-columns": "/runs?columns=benchmark.state.score.differs.limit.failed.unparsed.cost.project.note.id",
    "chosen-runs": "/runs/chosen?run={run}&run={other}",
    "delete-runs": "/runs/chosen?run={run}&ask=delete",
    "leaderboard": "/leaderboard?suite=starter&include=limited",
    "suites": "/suites",
    "no-suites": "/suites?q=nothing",
    "suite": "/suites/starter",
    "new-suite": "/suites/new",
    "datasets": "/datasets",
    "import": "/imports",
    "playground": "/playground",
    "dataset-runs": "/datasets/runs",
    "batches": "/batches",
    "files": "/batches/files",
    "rollouts": "/rollouts",
    "model": "/models/openai/fake",
    "queue": "/queue",
    "schedules": "/schedules",
    "settings": "/settings",
    "notices": "/settings/notices",
    "audit": "/audit",
    "sign-in": "/sign-in",
}
NOT_THERE = {
    "unknown-page": "/nothing/here",
    "unknown-run": f"/runs/{NO_ID}",
    "unknown-answers": f"/runs/{NO_ID}/results",
    "unknown-compare": f"/compare?run={NO_ID}&run={NO_ID[:-1]}1",
    "unknown-suite": "/suites/nothing",
    "unknown-leaderboard": "/leaderboard?suite=nothing",
    "unknown-dataset": f"/datasets/ds_{NO_ID.replace('-', '')}",
    "unknown-batch": f"/batches/batch_{NO_ID.replace('-', '')}",
    "unknown-schedule": f"/schedules/{NO_ID}",
    "unknown-rollouts": f"/rollouts/{NO_ID}",
}
CHECKED_AT_FEW = tuple(PAGES)[::3]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def opened(site: Site) -> AsyncIterator[Tab]:
    """One tab, which goes from page to page: a tab of its own for each is a tenth of a second of CPU."""
    async with tab(site.browser, site.url) as one:
        yield one


@pytest.mark.parametrize(
    "widths", [FEW_WIDTHS, pytest.param(WIDTHS, marks=pytest.mark.thorough)], ids=["few", "every"]
)
@pytest.mark.parametrize("name", [*PAGES, *every_third(NOT_THERE)])
async def test_page_fits_every_width(site: Site, opened: Tab, name: str, widths: Sequence[int]) -> None:
    first, second = site.runs
    path = (PAGES | NOT_THERE)[name].format(run=first, other=second)
    folder = os.environ.get("PROCTOR_PICTURES")
    opened.errors.clear()
    await opened.look(Look(theme="dark" if name in NOT_THERE else "light"))
    await opened.open(path)
    await opened.page.locator("main h1").first.wait_for()
    if name in NOT_THERE:
        # The browser itself reports the status of the page.
        assert all("404" in said for said in opened.errors)
        opened.errors.clear()
        assert await opened.page.locator("main a.button, main a:not([class])").count() > 0
    for width in widths:
        await opened.page.set_viewport_size({"width": width, "height": 900})
        assert await opened.overflow() <= 0, f"at {width} pixels"
        if width in CHECKED and (widths is WIDTHS or name in CHECKED_AT_FEW):
            await opened.check()
        if folder and width in (*CHECKED, widths[0]):
            await opened.take_picture(Path(folder) / f"every-{name}-{width}")


@pytest.mark.parametrize("width", [390, 768])
async def test_name_of_the_present_page_is_in_sight(site: Site, width: int) -> None:
    async with tab(site.browser, site.url, Look(width)) as opened:
        await opened.open("/settings")
        present = await opened.page.locator(".rail nav [aria-current]").bounding_box()
        assert present
        assert 0 <= present["x"] <= present["x"] + present["width"] <= width
