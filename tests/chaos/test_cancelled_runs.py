"""A run is cancelled in the middle and then retried: only what was missing is asked again."""

import asyncio

import pytest

from proctor.client import errors as client_errors
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.bench.scheduler.cancelling import cancel_round
from tests.chaos.faults.faulted_run import FaultedRun, is_idle
from tests.chaos.faults.run_audit import (
    assert_all_answered_right,
    assert_counters_equal_rows,
    assert_each_recorded_once,
    assert_summary,
    read_rows,
)
from tests.fakes.eventually import eventually
from tests.harness.replicas import replica
from tests.harness.stack_harness import StackHarness, keyed_order

pytestmark = pytest.mark.asyncio(loop_scope="session")

# "Prompt" in promise 7.
PROMPT_SECONDS = 60.0
# What two workers of the stack's size ask at a time.
IN_FLIGHT = 128


async def cancel(run: FaultedRun) -> None:
    cancelled = (await run.stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run.run_id))).run
    assert cancelled.state == run_pb2.RUN_STATE_CANCELLED


async def test_every_request_in_flight_is_aborted_and_none_is_answered(stack: StackHarness) -> None:
    """How soon is measured by `make bench`: a request would be answered after a minute."""
    async with replica(stack, "worker"):
        [cancelled] = await cancel_round(stack, ("fake",), IN_FLIGHT)
    assert cancelled.requests_in_flight == IN_FLIGHT
    traffic = await stack.model_server.traffic("fake")
    # More where the second worker came so late that requests of the first had timed out before.
    assert traffic.aborted >= IN_FLIGHT
    assert (traffic.in_flight, traffic.answered) == (0, 0)


async def test_cancel_is_prompt_and_a_retry_asks_only_for_what_is_missing(stack: StackHarness) -> None:
    server = stack.model_server
    run = await FaultedRun.start(stack)
    await run.strike_at(0.4, lambda: cancel(run))
    await eventually(lambda: is_idle(stack), "requests in flight are aborted", PROMPT_SECONDS)
    ended = await run.ended(limit_seconds=2 * PROMPT_SECONDS)
    assert ended.state == run_pb2.RUN_STATE_CANCELLED
    kept = await run.recorded()
    partial = await stack.client.summary(run.run_id)
    assert partial.is_partial
    assert partial.answered == kept
    assert_counters_equal_rows(await read_rows(run))
    assert (await server.stats())["answered"] <= kept + run.samples_in_flight

    await server.control(reset_stats=True)
    await stack.client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run.run_id))
    retried = await run.ended()
    assert retried.state == run_pb2.RUN_STATE_COMPLETED, retried.error
    assert (await server.stats())["requests"] == run.total - kept
    rows = await read_rows(run)
    assert_each_recorded_once(rows, run.total)
    assert_all_answered_right(rows)
    assert_summary(await stack.client.summary(run.run_id), run.total)


@pytest.mark.thorough
async def test_retry_asks_again_for_what_the_machinery_failed(stack: StackHarness) -> None:
    server = stack.model_server
    run = await FaultedRun.start(stack)
    refusal = {"kind": "status", "status": 400, "message": "not now"}
    await run.strike_at(0.5, lambda: server.control(fault=refusal))
    failed = await run.ended()
    assert failed.state == run_pb2.RUN_STATE_FAILED
    answered = (await stack.client.summary(run.run_id)).answered

    await server.control(fault=None, reset_stats=True)
    await stack.client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run.run_id))
    retried = await run.ended()
    assert retried.state == run_pb2.RUN_STATE_COMPLETED, retried.error
    assert (await server.stats())["requests"] == run.total - answered
    assert_each_recorded_once(await read_rows(run), run.total)
    assert_summary(await stack.client.summary(run.run_id), run.total)


@pytest.mark.thorough
async def test_a_cancel_at_the_very_end_leaves_one_truth(stack: StackHarness) -> None:
    """Twelve cancels around the moment at which a run is closed: taken or refused, and all agree on it."""
    await stack.model_server.control(fault=None)

    async def end_and_cancel(delay: float) -> bool:
        run = FaultedRun(stack, await stack.submit(keyed_order(limit=16)), 16)
        await eventually(lambda: has_all(run), "everything is recorded", 30)
        await asyncio.sleep(delay)
        try:
            await cancel(run)
        except client_errors.Refused:
            return (await run.ended()).state == run_pb2.RUN_STATE_COMPLETED
        return (await run.ended()).state == run_pb2.RUN_STATE_CANCELLED

    assert all([await end_and_cancel(step * 0.01) for step in range(12)])
    async with stack.database() as database:
        differing = await database.fetch(
            """
            SELECT s.run_id, s.state, c.state
              FROM scheduler.runs s JOIN results.closed_runs c USING (run_id)
             WHERE c.state <> s.state
            """
        )
    assert differing == []


async def has_all(run: FaultedRun) -> bool:
    return await run.recorded() == run.total
