"""A run leaves its place in the middle, by a pause or for an urgent one, and the leader is killed on top."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grpc
import pytest
import pytest_asyncio

from proctor.client import errors as client_errors
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from tests.chaos.faults.faulted_run import FaultedRun, is_idle
from tests.chaos.faults.run_audit import assert_each_recorded_once, assert_right, read_rows
from tests.chaos.faults.stack_faults import kill
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness, keyed_order

if TYPE_CHECKING:
    from proctor.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub

pytestmark = pytest.mark.asyncio(loop_scope="session")

URGENT_ROWS = 64


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scheduler(
    stack: StackHarness,
) -> "AsyncIterator[SchedulerServiceAsyncStub]":
    async with grpc.aio.insecure_channel(stack.stack.gateway_grpc) as channel:
        yield scheduler_grpc.SchedulerServiceStub(channel)


async def test_pause_and_a_killed_leader_lose_nothing_and_ask_nothing_twice(
    stack: StackHarness, scheduler: "SchedulerServiceAsyncStub"
) -> None:
    run = await FaultedRun.start(stack)

    async def pause() -> None:
        request = scheduler_pb2.PauseRunRequest(run_id=run.run_id)
        for _ in range(2):
            paused = (await scheduler.PauseRun(request, timeout=10)).run
            assert (paused.state, paused.HasField("deadline")) == (run_pb2.RUN_STATE_PAUSED, False)

    await run.strike_at(0.3, pause)
    await eventually(lambda: is_idle(stack), "what was begun is finished", 10)
    await kill(stack, "scheduler")
    await kill(stack, "worker")
    assert await run.recorded() < run.total
    await eventually(lambda: has_state(stack, run.run_id, run_pb2.RUN_STATE_PAUSED), "it answers", 30)
    resumed = (await scheduler.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run.run_id), timeout=10)).run
    assert resumed.state in (run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_RUNNING)
    assert resumed.epoch == 1
    await assert_right(run)
    assert (await stack.model_server.stats())["requests"] == run.total


@pytest.mark.thorough
async def test_urgent_run_overtakes_and_the_other_goes_on_where_it_was(stack: StackHarness) -> None:
    async with stack.database() as database:
        await database.execute("UPDATE scheduler.limits SET max_running_runs = 1")
    run = await FaultedRun.start(stack, keyed_order(priority=run_pb2.PRIORITY_LOW))
    urgent_id = ""

    async def overtake() -> None:
        nonlocal urgent_id
        urgent = keyed_order(priority=run_pb2.PRIORITY_HIGH, limit=URGENT_ROWS)
        urgent_id = await stack.submit(urgent)
        await eventually(lambda: has_state(stack, run.run_id, run_pb2.RUN_STATE_PENDING), "it is preempted")
        await kill(stack, "scheduler")

    recorded = await run.strike_at(0.3, overtake)
    urgent = FaultedRun(stack, urgent_id, URGENT_ROWS)
    assert (await urgent.ended()).state == run_pb2.RUN_STATE_COMPLETED
    assert recorded <= await run.recorded() < run.total
    assert_each_recorded_once(await read_rows(urgent), URGENT_ROWS)
    ended = await run.ended()
    assert (ended.state, ended.epoch) == (run_pb2.RUN_STATE_COMPLETED, 1)
    assert_each_recorded_once(await read_rows(run), run.total)
    requests = (await stack.model_server.stats())["requests"]
    assert requests <= run.total + URGENT_ROWS + run.samples_in_flight


async def has_state(stack: StackHarness, run_id: str, state: run_pb2.RunState.ValueType) -> bool:
    """False also where the scheduler is not back yet."""
    try:
        return (await stack.client.run(run_id)).state == state
    except client_errors.Unreachable:
        return False
