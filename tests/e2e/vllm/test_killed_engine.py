"""vLLM's engine, a child of the worker, is killed in the middle of a run, and the worker starts another."""

import pytest

from proctor.v1 import run_pb2
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_counters_equal_rows, assert_each_recorded_once, read_rows
from tests.e2e.harness.engine_processes import engines_of
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness
from tests.harness.starter_model import MODEL, SAMPLES, SUITE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

ROLLOUTS = 3
FAR_ABOVE_CHANCE = 0.75


async def kill_engine(stack: StackHarness) -> None:
    engines = engines_of(stack)
    assert engines
    for engine in engines:
        engine.kill()
    await eventually(lambda: not any(engine.is_running() for engine in engines), "the engine is gone")


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
