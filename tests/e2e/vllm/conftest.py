"""One stack with the real vLLM for all files here: an engine takes longer to start than most tests to run.

It serves the starter model by two names, so that a switch of models needs no second set of weights.
"""

import os
from collections.abc import AsyncIterator

import psutil
import pytest_asyncio

from proctor.stack.defaults import starter_model_dir
from proctor.values.providers.pool import PoolModel
from tests.e2e.harness.engine_processes import engines_of, is_left
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import OTHER, SUITE, starter_pool

ENVIRONMENT = {
    **SHORT_TIMEOUTS,
    "PROCTOR_WORKER_HEARTBEAT_SECONDS": "0.1",
    # A short run is done within it, so that no model is loaded more often than needed.
    "PROCTOR_WORKER_MIN_MODEL_RESIDENCY_SECONDS": "5",
    "PROCTOR_WORKER_SWITCH_WHEN_IDLE_SECONDS": "0.5",
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack() -> AsyncIterator[StackHarness]:
    pool = starter_pool(PoolModel(OTHER, str(starter_model_dir(os.environ))))
    order = StackOrder(pools=(pool,), suites=(SUITE,), environment=ENVIRONMENT)
    left: list[psutil.Process] = []
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack
            left = engines_of(stack)
    assert left
    assert not any(map(is_left, left))
