"""Two models on one worker with the real vLLM: their runs take turns, nothing is lost, no engine stays."""

from dataclasses import dataclass, field

import psutil
import pytest

from proctor.v1 import run_pb2
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_counters_equal_rows, assert_each_recorded_once, read_rows
from tests.e2e.harness.engine_processes import engines_of, is_left
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness
from tests.harness.starter_model import MODEL, OTHER, SAMPLES, SUITE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.thorough]

# Longer than the least residency of a model, on a fast machine too.
ROLLOUTS = 20
LIMIT_SECONDS = 240.0


@dataclass
class Watched:
    """A stack, the engine processes that were ever seen below it, and the phases that a run had."""

    stack: StackHarness
    engines: set[psutil.Process] = field(default_factory=set)
    most_at_once: int = 0
    phases: list[str] = field(default_factory=list)

    def look_at_engines(self) -> None:
        engines = set(engines_of(self.stack))
        self.engines |= engines
        self.most_at_once = max(self.most_at_once, len(engines))

    async def is_over(self, run: FaultedRun) -> bool:
        self.look_at_engines()
        shown = await self.stack.client.run(run.run_id)
        self.phases.append(shown.progress.phase)
        return shown.state == run_pb2.RUN_STATE_COMPLETED


async def test_runs_of_two_models_alternate_and_record_everything_once(stack: StackHarness) -> None:
    watched = Watched(stack)
    long_order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=MODEL, rollouts=ROLLOUTS)
    long_run = await FaultedRun.start(stack, long_order, SAMPLES * ROLLOUTS)
    await long_run.strike_at(0.15, nothing)
    short_order = run_pb2.RunOrder(project_id=1, suite=SUITE.name, model=OTHER)
    short_run = await FaultedRun.start(stack, short_order, SAMPLES)

    async def short_is_over() -> bool:
        return await watched.is_over(short_run)

    await eventually(short_is_over, "the short run is over", LIMIT_SECONDS)
    still_going = await stack.client.run(long_run.run_id)
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
    await eventually(lambda: sum(map(is_left, watched.engines)) == 1, "engines of earlier models are gone")


async def nothing() -> None:
    """Only waits until so much is done."""
