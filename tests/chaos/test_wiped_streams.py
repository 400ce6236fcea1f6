"""All that JetStream holds is deleted in the middle of a run, which completes: Postgres is the truth."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.run_audit import assert_right
from tests.chaos.stands import pids_of, struck_stack, wipe
from tests.chaos.struck_run import StruckRun
from tests.whole_stack import WholeStack

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing() -> AsyncIterator[WholeStack]:
    async with struck_stack() as stack:
        yield stack


async def test_run_outlives_the_loss_of_all_streams_twice_with_no_process_restarted(
    standing: WholeStack,
) -> None:
    before = pids_of(standing)
    run = await StruckRun.start(standing)
    for share in (0.25, 0.6):
        await run.strike_at(share, lambda: wipe(standing))
    await assert_right(run)
    assert pids_of(standing) == before
