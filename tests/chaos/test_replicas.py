"""As on a cluster: two of each service share the work, and one of them is killed in the middle of a run."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.chaos.run_audit import assert_right
from tests.chaos.stands import kill, struck_stack
from tests.chaos.struck_run import StruckRun
from tests.fakes.eventually import eventually
from tests.replicas import REPLICAS, replica
from tests.whole_stack import WholeStack

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing() -> AsyncIterator[WholeStack]:
    async with struck_stack() as stack, AsyncExitStack() as replicas:
        for name in REPLICAS:
            await replicas.enter_async_context(replica(stack, name))
        yield stack


async def test_workers_share_a_run(standing: WholeStack) -> None:
    async def both_are_known() -> bool:
        return len(await standing.client.list_workers()) == 2

    await eventually(both_are_known, "both workers are known")
    run = await StruckRun.start(standing)
    await assert_right(run)
    # More than one worker has open at a time.
    assert (await standing.model_server.stats())["largest_in_flight"] > 64


@pytest.mark.parametrize("name", REPLICAS)
async def test_the_other_replica_goes_on(standing: WholeStack, name: str) -> None:
    run = await StruckRun.start(standing)
    await run.strike_at(0.3, lambda: kill(standing, name))
    await assert_right(run)
