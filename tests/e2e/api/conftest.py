"""A site with projects, which the tests of this folder share."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.e2e.harness.project_site import Site, filled_site


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site() -> AsyncIterator[Site]:
    async with filled_site() as site:
        yield site
