"""Fixtures of tests of the gateway's contract: a gateway, and the official client of the OpenAI protocol."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.openai_client import openai_client


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running


@pytest.fixture
async def client(harness: GatewayHarness) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(harness.http) as opened:
        yield opened
