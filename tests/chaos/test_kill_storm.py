"""A storm of `kill -9` over all six processes while runs follow each other, and then the counts.

`make test` kills processes in other files. `PROCTOR_STORM_KILLS=300 PROCTOR_STORM_SEED=7` is a longer storm.
"""

import asyncio

import pytest

from tests.chaos.faults.faulted_run import ROWS, FaultedRun, made_ready
from tests.chaos.faults.kill_storm import (
    KILLS,
    RUN_LIMIT_SECONDS,
    SEED,
    STORM_LIMIT_SECONDS,
    KillStorm,
    known_runs,
    until_ended,
)
from tests.chaos.faults.run_audit import assert_recorded_right
from tests.harness.stack_harness import StackHarness

RUNS_AT_ONCE = 3

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(STORM_LIMIT_SECONDS),
]


@pytest.mark.thorough
async def test_nothing_is_lost_or_doubled_in_a_storm_of_kills(stack: StackHarness) -> None:
    await made_ready(stack)
    earlier = set(await known_runs(stack))
    storm, accepted = KillStorm(stack), list[str]()

    async def follow_each_other() -> None:
        while not storm.is_over:
            accepted.append(await storm.submitted())
            await until_ended(stack, accepted[-1:])

    async with asyncio.TaskGroup() as group:
        group.create_task(storm.rage())
        for _ in range(RUNS_AT_ONCE):
            group.create_task(follow_each_other())
    counted = f"seed {SEED}: killed {dict(storm.killed)}, {len(accepted)} runs of {ROWS} accepted"
    print(counted)  # noqa: T201  # what a long storm is run for
    assert storm.killed.total() == KILLS, counted
    # A submission whose answer was lost may have left a run beside those accepted: it counts as well.
    runs = [run_id for run_id in await known_runs(stack) if run_id not in earlier]
    assert set(accepted) <= set(runs), "lost"
    await until_ended(stack, runs)
    for run_id in runs:
        await assert_recorded_right(FaultedRun(stack, run_id, ROWS), RUN_LIMIT_SECONDS)
