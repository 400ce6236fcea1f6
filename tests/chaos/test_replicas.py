"""Two replicas of each service share the work, and one of them is killed in the middle of a run."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from proctor.v1 import queue_service_pb2 as queue_pb2
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_right
from tests.chaos.faults.stack_faults import faulted_stack, kill
from tests.fakes.eventually import eventually
from tests.fakes.thorough_cases import first_cases
from tests.harness.replicas import REPLICAS, replica
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    async with faulted_stack() as stack, AsyncExitStack() as replicas:
        for name in REPLICAS:
            await replicas.enter_async_context(replica(stack, name))
        yield stack


async def test_workers_share_a_run(stack: StackHarness) -> None:
    async def both_are_known() -> bool:
        return len((await stack.client.queue.GetQueue(queue_pb2.GetQueueRequest())).workers) == 2

    await eventually(both_are_known, "both workers are known")
    run = await FaultedRun.start(stack)
    await assert_right(run)
    # More than one worker has open at a time.
    assert (await stack.model_server.stats())["largest_in_flight"] > 64


@first_cases(1, "name", REPLICAS)
async def test_the_other_replica_goes_on(stack: StackHarness, name: str) -> None:
    run = await FaultedRun.start(stack)
    await run.strike_at(0.3, lambda: kill(stack, name))
    await assert_right(run)
