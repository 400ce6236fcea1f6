"""The official client of the OpenAI protocol, pointed at a gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openai import AsyncOpenAI


@asynccontextmanager
async def openai_client(
    http: str, api_key: str = "anything", max_retries: int = 0
) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{http}/v1", api_key=api_key, max_retries=max_retries) as client:
        yield client
