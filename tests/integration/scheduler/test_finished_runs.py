"""The scheduler's use cases on the real results service: a run stopped at an awkward moment still closes."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.run import RunState
from services.common.grpc.client import open_channel
from services.scheduler.dispatch.close_finished_run import CloseFinishedRun
from services.scheduler.dispatch.count_unscored import CountUnscored
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.planning.ports import PlanToOpen
from services.scheduler.runs.lifecycle.change_state import ChangeState
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.callers import OPERATOR, SCHEDULER
from tests.fakes.results.results_harness import ResultsHarness, results_harness
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def results() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def channel(results: ResultsHarness) -> AsyncIterator[grpc.aio.Channel]:
    async with open_channel(f"127.0.0.1:{results.results.grpc.port}", signer=SCHEDULER) as opened:
        yield opened


class RecordOfFinishedRuns(GrpcRunRecord):
    """A user cancels each run right after its record was made, before its shards are stored."""

    def __init__(self, channel: grpc.aio.Channel, changing: ChangeState) -> None:
        super().__init__(channel)
        self._changing = changing

    async def open_run(self, run: Run, plan: PlanToOpen) -> Sequence[str]:
        sets = await super().open_run(run, plan)
        await self._changing.cancel(run.run_id, OPERATOR)
        return sets


def on_results(harness: SchedulerHarness, record: GrpcRunRecord) -> None:
    """Joins the scheduler to the results service instead of the record in memory."""
    unscored = CountUnscored(harness.rollout_use, record)
    harness.tools = replace(
        harness.tools,
        planner=harness.planner(record),
        finisher=FinishRun(harness.runs, harness.runs, record, harness.controls, harness.clock, unscored),
        closer=CloseFinishedRun(
            harness.runs, harness.runs, record, harness.stream, harness.controls, unscored
        ),
    )


async def test_a_run_cancelled_between_its_record_and_its_shards_closes_in_every_epoch(
    results: ResultsHarness, channel: grpc.aio.Channel
) -> None:
    harness = SchedulerHarness()
    on_results(harness, RecordOfFinishedRuns(channel, harness.changing))
    run, driver = await harness.start()
    assert await harness.advance(driver, 5)
    stopped = await harness.runs.get(run.run_id)
    assert (stopped.planned_epoch, stopped.is_closed) == (0, True)

    await harness.changing.retry(run.run_id, OPERATOR)
    await harness.changing.cancel(run.run_id, OPERATOR)

    assert await harness.advance(harness.driver(run.run_id), 5)
    closed = await harness.runs.get(run.run_id)
    assert (closed.state, closed.epoch, closed.is_closed) == (RunState.CANCELLED, 2, True)
    request = results_pb2.GetSummaryRequest(run_id=run.run_id)
    summary = (await results.public.GetSummary(request)).summary
    assert (summary.epoch, summary.is_partial, summary.answered) == (2, True, 0)


async def test_a_run_cancelled_before_anything_was_recorded_closes_without_a_summary(
    channel: grpc.aio.Channel,
) -> None:
    harness = SchedulerHarness()
    on_results(harness, GrpcRunRecord(channel))
    run, driver = await harness.start()
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(driver, 5)
    closed = await harness.runs.get(run.run_id)
    assert (closed.is_closed, closed.final_counts) == (True, None)


async def test_sets_of_equal_samples_are_one_also_for_a_leader_that_remembers_none(
    channel: grpc.aio.Channel,
) -> None:
    sets = []
    for _ in range(2):
        harness = SchedulerHarness()
        on_results(harness, GrpcRunRecord(channel))
        run, _ = await harness.start()
        await harness.tools.planner.plan(harness.fencing_token, run)
        sets.append([task.sample_set_id for task in await harness.runs.planned_tasks(run.run_id)])
    assert sets[0] == sets[1]
