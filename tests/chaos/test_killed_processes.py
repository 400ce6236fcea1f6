"""`kill -9` of each process in the middle of a run, one at a time and then at random."""

import random
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from tests.chaos.run_audit import assert_right
from tests.chaos.stands import kill, struck_stack
from tests.chaos.struck_run import StruckRun
from tests.whole_stack import WholeStack

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROCESSES = ("worker", "scheduler", "results", "gateway", "nats", "postgres")
SHARES = (0.15, 0.3, 0.45, 0.6, 0.75)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing() -> AsyncIterator[WholeStack]:
    async with struck_stack() as stack:
        yield stack


@pytest.mark.parametrize("name", PROCESSES)
async def test_run_outlives_the_kill_of_a_process(standing: WholeStack, name: str) -> None:
    run = await StruckRun.start(standing)
    await run.strike_at(0.3, partial(kill, standing, name))
    await assert_right(run)


# The seed is in the test's name, so that a failure can be repeated.
@pytest.mark.parametrize("seed", [1, 21])
async def test_run_outlives_kills_at_random(standing: WholeStack, seed: int) -> None:
    names = random.Random(seed).choices(PROCESSES, k=len(SHARES))
    run = await StruckRun.start(standing)
    for share, name in zip(SHARES, names, strict=True):
        await run.strike_at(share, partial(kill, standing, name))
    await assert_right(run)
