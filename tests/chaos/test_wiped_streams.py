"""All that JetStream holds is deleted in the middle of a run, which completes: Postgres is the truth."""

import pytest

from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_right
from tests.chaos.faults.stack_faults import pids_of, wipe
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_run_outlives_the_loss_of_all_streams_twice_with_no_process_restarted(
    stack: StackHarness,
) -> None:
    before = pids_of(stack)
    run = await FaultedRun.start(stack)
    for share in (0.25, 0.6):
        await run.strike_at(share, lambda: wipe(stack))
    await assert_right(run)
    assert pids_of(stack) == before
