"""A run is shared by all workers of its pool, however few requests each of them has open at a time."""

import pytest

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.bench.scheduler.spreading import Setting, spread_of_run, stack_of_workers
from tests.e2e.harness.run_ends import all_outcomes
from tests.fakes.stack.state_dir import temporary_state_dir

WORKERS = 4
SHARDS = 12
SETTING = Setting(concurrency=8, latency_seconds=0.05, samples=64 * SHARDS)


@pytest.mark.thorough
async def test_every_worker_has_its_share_and_every_sample_is_answered_once() -> None:
    with temporary_state_dir() as state_dir:
        async with stack_of_workers(state_dir.parent, WORKERS, SETTING) as stack:
            spread = await spread_of_run(stack, WORKERS, SETTING)
            [run] = (await stack.client.runs.ListRuns(scheduler_pb2.ListRunsRequest())).runs
            assert run.state == run_pb2.RUN_STATE_COMPLETED
            numbers = [item.outcome.sample for item in await all_outcomes(stack, run.run_id)]
    assert sorted(numbers) == list(range(SETTING.samples))
    assert sum(spread.answers) == SETTING.samples
    assert len(spread.shard_seconds) == SHARDS
    # Where one had none, or one did the work of two, the others did not wait for a shard's time only.
    assert len(spread.answers) == WORKERS
    assert min(spread.answers) >= 64 * (SHARDS // WORKERS - 1)
