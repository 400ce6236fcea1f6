"""Limits: how many runs go at a time, who goes first, how many may wait, how long one may take."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import grpc
import pytest
import pytest_asyncio

from proctor.client import errors as client_errors
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, keyed_order, stack_harness

T = TypeVar("T")

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_RUNNING = 3
MAX_PENDING = 10
SUITE = "suite: eager\ntasks: []\n"
MAX_REQUESTS = 5
# Longer than the tests of the queue hold their runs.
TIME_LIMIT_SECONDS = 15.0
ROWS = 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    environment = {
        **SHORT_TIMEOUTS,
        "PROCTOR_SCHEDULER_RUN_TIME_LIMIT_SECONDS": str(TIME_LIMIT_SECONDS),
        "PROCTOR_WORKER_REQUEST_TIMEOUT_SECONDS": "60",
    }
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=ROWS, concurrency=32, environment=environment)
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


async def state_of(stack: StackHarness, run_id: str) -> run_pb2.RunState.ValueType:
    return (await stack.client.run(run_id)).state


async def until_running(stack: StackHarness, run_ids: Sequence[str]) -> None:
    async def all_run() -> bool:
        states = [await state_of(stack, run_id) for run_id in run_ids]
        return all(state == run_pb2.RUN_STATE_RUNNING for state in states)

    await eventually(all_run, f"{len(run_ids)} runs are running")


async def cancel_all(stack: StackHarness, run_ids: Sequence[str]) -> None:
    """The waiting ones first, so that none of them is admitted meanwhile."""
    for run_id in reversed(run_ids):
        await stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
    for run_id in run_ids:
        assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_CANCELLED


@pytest.mark.thorough
async def test_a_queue_that_is_full_refuses_the_next_run_of_this_user_only(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=60)
    running = [await stack.submit() for _ in range(MAX_RUNNING)]
    await until_running(stack, running)
    pending = [await stack.submit() for _ in range(MAX_PENDING)]

    with pytest.raises(client_errors.Refused) as raised:
        await stack.submit()
    assert isinstance(raised.value.__cause__, grpc.aio.AioRpcError)
    assert raised.value.__cause__.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (raised.value.reason, raised.value.facts["limit"]) == ("QUEUE_FULL", str(MAX_PENDING))
    body = {"project_id": 1, "suite": "keyed", "config": {"provider": "openai", "model": "fake"}}
    by_rest = await http(stack, "POST", f"{API}/run", json=body)
    assert (by_rest.status, by_rest.body["detail"]) == (429, "Queue is full. Please try again later.")
    assert int(by_rest.headers["Retry-After"]) == by_rest.body["retry_after"] > 0
    assert (await proctor(stack, "run --suite keyed --model openai/fake")).code == 2

    async with ProctorClient(stack.stack.gateway_grpc, user="another") as other:
        pending.append(
            (await other.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=keyed_order()))).run.run_id
        )
    last = await stack.client.run(pending[-1])
    assert last.wait.position == 1  # by fair share: those of the first user have had theirs
    assert last.wait.blocked_by == f"All {MAX_RUNNING} slots are busy"
    second = await stack.client.run(pending[1])
    owns = f"local has {MAX_RUNNING} running and 1 waiting before it"
    share = f"2 runs ahead of it: 1 of other users by fair share ({owns})"
    assert second.wait.blocked_by.endswith(share)
    await cancel_all(stack, running + pending)


async def test_a_high_priority_is_admitted_before_a_low_one_that_waits_longer(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=60)
    running = [await stack.submit() for _ in range(MAX_RUNNING)]
    await until_running(stack, running)
    low = await stack.submit(keyed_order(priority=run_pb2.PRIORITY_LOW))
    normal = await stack.submit(keyed_order(priority=run_pb2.PRIORITY_NORMAL))
    high = await stack.submit(keyed_order(priority=run_pb2.PRIORITY_HIGH))
    positions = [(await stack.client.run(run_id)).wait.position for run_id in (high, normal, low)]
    assert positions == [1, 2, 3]
    for freed, next_in in zip(running, (high, normal, low), strict=True):
        waiting = [run_id for run_id in (high, normal, low) if run_id != next_in]
        before = [await state_of(stack, run_id) for run_id in waiting]
        await stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=freed))
        await until_running(stack, [next_in])
        assert [await state_of(stack, run_id) for run_id in waiting] == before
    await cancel_all(stack, [high, normal, low])


async def test_a_waiting_run_says_why_and_starts_once_the_limits_let_it(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=60)
    lowered = await http(stack, "PATCH", "/api/v1/queue/limits", json={"max_running_runs": 1})
    assert (lowered.status, lowered.body["max_running_runs"]) == (200, 1)
    first = await stack.submit()
    await until_running(stack, [first])
    second = await stack.submit()
    why = "The only slot is busy"
    assert (await stack.client.run(second)).wait.blocked_by == why
    shown = (await http(stack, "GET", "/api/v1/queue")).body
    assert [job["job_id"] for job in shown["running"]] == [first]
    assert [(job["job_id"], job["wait"]["blocked_by"]) for job in shown["pending"]] == [(second, why)]
    assert [worker["concurrency"] for worker in shown["workers"]] == [32]
    assert why in " ".join((await proctor(stack, "queue")).out.split())

    raised = await proctor(stack, f"limits --max-running-runs {MAX_RUNNING} --json")
    assert raised.document["max_running_runs"] == MAX_RUNNING
    await until_running(stack, [second])
    await cancel_all(stack, [first, second])


async def ask_too_often(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer to the last: a new minute may begin among them, so that twice the limit may pass."""
    for _ in range(2 * MAX_REQUESTS):
        await ask()
    return await ask()


async def test_requests_over_the_rate_are_refused_at_both_apis_with_the_time_to_wait(
    stack: StackHarness,
) -> None:
    async with (
        ProctorClient(stack.stack.gateway_grpc, user="operator") as operator,
        ProctorClient(stack.stack.gateway_grpc, user="eager") as eager,
    ):

        async def cancel_unknown_run() -> None:
            with suppress(client_errors.NotFound):
                await eager.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=str(uuid.uuid4())))

        before = await operator.queue.GetLimits(queue_pb2.GetLimitsRequest())
        await operator.queue.SetLimits(
            queue_pb2.SetLimitsRequest(limits=queue_pb2.QueueLimits(max_requests_per_minute=MAX_REQUESTS))
        )
        try:
            with pytest.raises(client_errors.Refused) as raised:
                await ask_too_often(cancel_unknown_run)
            headers = {"X-Proctor-User": "eager", "Content-Type": "application/yaml"}
            by_rest = await ask_too_often(
                lambda: http(stack, "POST", "/api/v1/suites?dry_run=true", data=SUITE, headers=headers)
            )
            # Reads have a limit of their own, and a local stack has none. A check stores nothing.
            await ask_too_often(lambda: eager.runs.ListSuites(scheduler_pb2.ListSuitesRequest()))
            await ask_too_often(
                lambda: eager.suites.CheckSuite(
                    suite_pb2.CheckSuiteRequest(document=suite_pb2.SuiteDocument(text=SUITE))
                )
            )
        finally:
            await operator.queue.SetLimits(queue_pb2.SetLimitsRequest(limits=before.limits))
        assert (await eager.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites
    assert isinstance(raised.value.__cause__, grpc.aio.AioRpcError)
    assert raised.value.__cause__.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (raised.value.reason, raised.value.facts["limit"]) == ("TOO_MANY_REQUESTS", str(MAX_REQUESTS))
    assert 1 <= int(raised.value.facts["retry_after_seconds"]) <= 61
    assert by_rest.status == 429
    assert int(by_rest.headers["Retry-After"]) == by_rest.body["retry_after"] > 0


async def test_a_run_that_reaches_its_deadline_fails_and_keeps_what_it_has(stack: StackHarness) -> None:
    # 32 at a time, two seconds each: 200 rows twice over take longer than the limit.
    await stack.model_server.control(latency_seconds=2)
    run_id = await stack.submit(keyed_order(rollouts=2))
    run = await ended(stack, run_id, limit_seconds=4 * TIME_LIMIT_SECONDS)
    assert (run.state, run.error.reason) == (run_pb2.RUN_STATE_FAILED, "DEADLINE_REACHED")
    summary = await stack.client.summary(run_id)
    kept = await all_outcomes(stack, run_id)
    assert 0 < len(kept) == summary.answered < summary.total == 2 * ROWS
    assert (summary.is_partial, summary.failed) == (True, 0)
    assert summary.tasks[0].metrics[0].mean == 1.0
    shown = (await http(stack, "GET", f"{API}/results/{run_id}")).body
    assert shown["error"].startswith("Job execution failed: Resource limits exceeded")

    await stack.model_server.control(latency_seconds=0, reset_stats=True)
    await stack.client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))
    assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_COMPLETED
    assert (await stack.model_server.stats())["requests"] == summary.total - summary.answered
