"""Two models on one worker with the real vLLM: their runs take turns, nothing is lost, no engine stays."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import psutil
import pytest
import pytest_asyncio

from proctor.stack.options import starter_model_dir
from proctor.v1 import run_pb2
from proctor.values.providers.pool import PoolModel
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_counters_equal_rows, assert_each_recorded_once, read_rows
from tests.fakes.eventually import eventually
from tests.fakes.stack.observed_processes import name_of
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import MODEL, SAMPLES, SUITE, starter_pool

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER = "vllm/other"
ROLLOUTS = 14
LIMIT_SECONDS = 240.0
EAGER = {"PROCTOR_WORKER_MIN_MODEL_RESIDENCY_SECONDS": "1", "PROCTOR_WORKER_SWITCH_WHEN_IDLE_SECONDS": "0.5"}


@dataclass
class Watched:
    """A stack, the engine processes that were ever seen below it, and the phases that a run had."""

    stack: StackHarness
    engines: set[psutil.Process] = field(default_factory=set)
    most_at_once: int = 0
    phases: list[str] = field(default_factory=list)

    def look_at_engines(self) -> None:
        children = psutil.Process(self.stack.stack.child("worker").pid).children(recursive=True)
        engines = {child for child in children if "EngineCore" in name_of(child)}
        self.engines |= engines
        self.most_at_once = max(self.most_at_once, len(engines))

    async def is_over(self, run: FaultedRun) -> bool:
        self.look_at_engines()
        shown = await self.stack.client.run(run.run_id)
        self.phases.append(shown.progress.phase)
        return shown.state == run_pb2.RUN_STATE_COMPLETED


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched() -> AsyncIterator[Watched]:
    pool = starter_pool(PoolModel(OTHER, str(starter_model_dir(os.environ))))
    order = StackOrder(pools=(pool,), suites=(SUITE,), environment={**SHORT_TIMEOUTS, **EAGER})
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            watched = Watched(stack)
            yield watched
    assert watched.engines
    assert not any(engine.is_running() for engine in watched.engines)


async def test_runs_of_two_models_alternate_and_record_everything_once(watched: Watched) -> None:
    long_order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=MODEL, rollouts=ROLLOUTS)
    long_run = await FaultedRun.start(watched.stack, long_order, SAMPLES * ROLLOUTS)
    await long_run.strike_at(0.15, nothing)
    short_order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=OTHER)
    short_run = await FaultedRun.start(watched.stack, short_order, SAMPLES)

    async def short_is_over() -> bool:
        return await watched.is_over(short_run)

    await eventually(short_is_over, "the short run is over", LIMIT_SECONDS)
    still_going = await watched.stack.client.run(long_run.run_id)
    assert still_going.state == run_pb2.RUN_STATE_RUNNING
    assert f"loading {OTHER}" in watched.phases
    assert (await long_run.ended(limit_seconds=LIMIT_SECONDS)).state == run_pb2.RUN_STATE_COMPLETED
    watched.look_at_engines()
    for run, rollouts in ((long_run, ROLLOUTS), (short_run, 1)):
        rows = await read_rows(run)
        assert_each_recorded_once(rows, SAMPLES, rollouts)
        assert_counters_equal_rows(rows)
    assert watched.most_at_once == 1
    assert len(watched.engines) >= 3


async def nothing() -> None:
    """Only waits until so much is done."""
