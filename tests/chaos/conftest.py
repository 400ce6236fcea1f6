"""The stack of files that need no other. Each test leaves it up and idle, whatever it has struck."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.chaos.faults.stack_faults import faulted_stack
from tests.harness.stack_harness import StackHarness


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack() -> AsyncIterator[StackHarness]:
    async with faulted_stack() as stack:
        yield stack
