"""A gateway between fakes, for tests of its pages."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running
