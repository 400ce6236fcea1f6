"""What tests of the gateway's contract share: a gateway, and the official client of the OpenAI protocol."""

from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from tests.fakes.gateway_stand import GatewayStand, gateway_stand
from tests.fakes.openai_client import openai_client


@pytest.fixture
async def stand() -> AsyncIterator[GatewayStand]:
    async with gateway_stand() as running:
        yield running


@pytest.fixture
async def client(stand: GatewayStand) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(stand.http) as opened:
        yield opened
