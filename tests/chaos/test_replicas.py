"""As on a cluster: two of each service share the work, and one of them is killed in the middle of a run."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
import pytest_asyncio

from proctor.stack.addresses import choose_addresses
from proctor.stack.supervised_child import SupervisedChild, Surroundings
from tests.chaos.run_audit import assert_right
from tests.chaos.stands import kill, struck_stack
from tests.chaos.struck_run import StruckRun
from tests.fakes.eventually import eventually
from tests.whole_stack import WholeStack

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Which setting tells where a replica listens.
REPLICAS = {
    "worker": "PROCTOR_WORKER_HEALTH_ADDRESS",
    "results": "PROCTOR_RESULTS_ADDRESS",
    "scheduler": "PROCTOR_SCHEDULER_ADDRESS",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing() -> AsyncIterator[WholeStack]:
    async with struck_stack() as stack, AsyncExitStack() as replicas:
        for name, setting in REPLICAS.items():
            await replicas.enter_async_context(replica(stack, name, setting))
        yield stack


@asynccontextmanager
async def replica(standing: WholeStack, name: str, setting: str) -> AsyncIterator[SupervisedChild]:
    """A second one beside that of the stack: the same program and environment at an address of its own."""
    first = standing.stack.child(name).spec
    environment = {**first.program.environment, setting: choose_addresses(1)[0]}
    spec = replace(first, name=f"second {name}", program=replace(first.program, environment=environment))
    log_path = standing.stack.options.state_dir / "logs" / f"second-{name}.log"
    child = SupervisedChild(spec, Surroundings(log_path, report=lambda _: None, on_change=lambda: None))
    try:
        await child.first_ready
        yield child
    finally:
        await child.stop()


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
