"""vLLM's engine, a child of the worker, is killed in the middle of a run, and the worker starts another."""

from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_counters_equal_rows, assert_each_recorded_once, read_rows
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import MODEL, SAMPLES, SUITE, starter_pool

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROLLOUTS = 4
FAR_ABOVE_CHANCE = 0.75


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    order = StackOrder(pools=(starter_pool(),), suites=(SUITE,))
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


async def kill_engine(stack: StackHarness) -> None:
    children = psutil.Process(stack.stack.child("worker").pid).children()
    engines = [child for child in children if "EngineCore" in child.name()]
    assert engines, [child.name() for child in children]
    for child in engines:
        child.kill()
    await eventually(lambda: not any(child.is_running() for child in engines), "the engine is gone")


async def test_run_outlives_the_kill_of_the_engine(stack: StackHarness) -> None:
    worker = stack.stack.child("worker").pid
    order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=MODEL, rollouts=ROLLOUTS)
    run = await FaultedRun.start(stack, order, SAMPLES * ROLLOUTS)
    await run.strike_at(0.3, lambda: kill_engine(stack))
    ended = await run.ended(limit_seconds=420)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED, ended.error
    assert stack.stack.child("worker").pid == worker
    rows = await read_rows(run)
    assert_each_recorded_once(rows, SAMPLES, ROLLOUTS)
    assert_counters_equal_rows(rows)
    summary = await stack.client.summary(run.run_id)
    assert (summary.failed, summary.is_partial) == (0, False)
    for task in summary.tasks:
        assert task.metrics[0].mean > FAR_ABOVE_CHANCE, task
