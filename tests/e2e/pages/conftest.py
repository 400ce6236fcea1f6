"""Fixtures of tests of pages: one stack with runs of two models, and one browser, for all of them.

A picture of every page that is checked is kept below PROCTOR_PICTURES, where that is set.
"""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from proctor.v1 import run_pb2
from tests.e2e.harness.run_ends import completed
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.browser import EVERY_LOOK, QUICK_LOOKS, Looks, chromium, tab
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import SUITE as STARTER

MODELS = ("openai/fake", "openai/other")


@dataclass(frozen=True)
class Site:
    """A stack with two completed runs over the starter suite, and the address of its pages."""

    stack: StackHarness
    browser: Browser
    runs: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"http://{self.stack.stack.gateway_http}"

    async def check_in(self, looks: Looks, path: str, name: str, *, until: str = "main h1") -> None:
        """No console error, no overflow, nothing that axe finds."""
        folder = os.environ.get("PROCTOR_PICTURES")
        async with tab(self.browser, self.url) as opened:
            for look in looks:
                await opened.look(look)
                await opened.open(path)
                await opened.page.locator(until).first.wait_for()
                await opened.check()
                if folder:
                    await opened.take_picture(Path(folder) / f"{name}-{look.width}-{look.theme}")

    async def reads_without_scripts(self, path: str) -> str:
        """The text of the page in a browser that runs no script."""
        look = EVERY_LOOK[0]
        plain = type(look)(look.width, look.theme, has_scripts=False)
        async with tab(self.browser, self.url, plain) as opened:
            await opened.open(path)
            return await opened.page.locator("main").inner_text()


@pytest.fixture(
    params=[QUICK_LOOKS, pytest.param(EVERY_LOOK, marks=pytest.mark.thorough)], ids=["one look", "every look"]
)
def looks(request: pytest.FixtureRequest) -> Looks:
    """Light and dark, wide and narrow."""
    chosen: Looks = request.param
    return chosen


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site() -> AsyncIterator[Site]:
    order = StackOrder(rows=2000, concurrency=8, suites=(STARTER,), models=("fake", "other"), environment={})
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack, chromium() as browser:
            orders = [
                run_pb2.RunOrder(project_id=1, suite="starter", model=model, limit=30) for model in MODELS
            ]
            runs = [await completed(stack, each) for each in orders]
            yield Site(stack, browser, tuple(runs))
