"""The stack of files that need no other; their tests know their own runs by id, and leave no fault behind."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import MODEL, SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack() -> AsyncIterator[StackHarness]:
    order = StackOrder(
        models=("fake", "other"),
        aliases={"gpt-4o": MODEL},
        environment={**SHORT_TIMEOUTS, "PROCTOR_SCHEDULER_NOTICE_NETWORKS": "127.0.0.0/8"},
    )
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack
