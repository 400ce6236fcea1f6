"""A coding agent as Proctor sees it: a client of `proctor mcp`, by the official package."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters

from tests.harness.stack_harness import StackHarness


class Refusal(Exception):  # not an error of the test
    """The text of a tool's error."""


class Agent:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[tuple[float, float | None, str | None]] = []

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments, progress_callback=self._note)
        if result.is_error:
            raise Refusal("".join(getattr(part, "text", "") for part in result.content))
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def _note(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))


@asynccontextmanager
async def agent(stack: StackHarness, **environment: str) -> AsyncIterator[Agent]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "proctor.cli", "mcp"],
        env={"PATH": os.environ["PATH"], "PROCTOR_GATEWAY": stack.stack.gateway_grpc, **environment},
    )
    async with Client(server) as client:
        yield Agent(client)
