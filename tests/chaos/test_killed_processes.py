"""`kill -9` of each process in the middle of a run, one at a time and then at random."""

import asyncio
import os
import random
import signal
from functools import partial

import pytest

from proctor.v1 import run_pb2
from tests.chaos.faults.faulted_run import FaultedRun
from tests.chaos.faults.run_audit import assert_right
from tests.chaos.faults.stack_faults import kill
from tests.e2e.harness.entry_points import http
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import MODEL, StackHarness, keyed_order

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROCESSES = ("worker", "scheduler", "results", "gateway", "nats", "postgres")
LIMITS, SUITES = "/api/v1/queue/limits", "/api/v1/suites"
MAX_REQUESTS = 5
JUDGING_SECONDS = 240.0
SHARES = (0.15, 0.3, 0.45, 0.6, 0.75)


# `make test` kills everything at once.
@pytest.mark.thorough
@pytest.mark.parametrize("name", PROCESSES)
async def test_run_outlives_the_kill_of_a_process(stack: StackHarness, name: str) -> None:
    run = await FaultedRun.start(stack)
    await run.strike_at(0.3, partial(kill, stack, name))
    await assert_right(run)


# The seed is in the test's name, so that a failure can be repeated.
@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
async def test_run_outlives_kills_at_random(stack: StackHarness, seed: int) -> None:
    names = random.Random(seed).sample(PROCESSES, k=len(SHARES))
    run = await FaultedRun.start(stack)
    for share, name in zip(SHARES, names, strict=True):
        await run.strike_at(share, partial(kill, stack, name))
    await assert_right(run)


async def test_run_outlives_the_kill_of_everything_at_once(stack: StackHarness) -> None:
    """As when the machine loses its power, but for what was not yet flushed to the disk."""
    run = await FaultedRun.start(stack)

    async def kill_all() -> None:
        async with asyncio.TaskGroup() as group:
            for name in PROCESSES:
                group.create_task(kill(stack, name))

    await run.strike_at(0.3, kill_all)
    await assert_right(run)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["scheduler", "results"])
async def test_run_outlives_a_kill_while_it_is_planned(stack: StackHarness, name: str) -> None:
    run = await FaultedRun.start(stack)

    async def is_being_planned() -> bool:
        return (await stack.client.run(run.run_id)).progress.phase.startswith("planning")

    await eventually(is_being_planned, "the run is being planned")
    await kill(stack, name)
    await assert_right(run)


async def test_verdicts_outlive_kills_while_their_samples_are_made(stack: StackHarness) -> None:
    judged = await completed(stack, keyed_order(), JUDGING_SECONDS)
    answers = await all_outcomes(stack, judged)
    judge = run_pb2.Judge(run_id=judged, prompt="correctness")
    run_id = await stack.submit(run_pb2.RunOrder(model=MODEL, judge=judge))
    scheduler = stack.stack.child("scheduler")

    async def are_samples_made() -> bool:
        run = await stack.client.run(run_id)
        return run.progress.phase == "planning correctness" or run.progress.total > 0

    for _ in range(2):
        await eventually(scheduler.ready.is_set, "the scheduler is back", JUDGING_SECONDS)
        await eventually(are_samples_made, "samples are made", JUDGING_SECONDS)
        await kill(stack, "scheduler")
    await eventually(scheduler.ready.is_set, "the scheduler is back", JUDGING_SECONDS)
    run = await ended(stack, run_id, JUDGING_SECONDS)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    assert run.progress.total == len(answers)
    verdicts = await all_outcomes(stack, run_id)
    sampled = [(answer.outcome.sample, answer.outcome.rollout) for answer in answers]
    assert [verdict.row_id for verdict in verdicts] == [f"{sample}.{rollout}" for sample, rollout in sampled]
    assert {verdict.prediction for verdict in verdicts} == {"yes"}


async def test_stopping_a_worker_in_the_middle_asks_nothing_again_but_what_was_open(
    stack: StackHarness,
) -> None:
    run = await FaultedRun.start(stack)
    worker = stack.stack.child("worker")
    assert worker.pid is not None
    restarts, open_requests = worker.restarts, 64

    async def stop() -> None:
        os.kill(worker.pid or 0, signal.SIGTERM)

    await run.strike_at(0.3, stop)
    await eventually(lambda: worker.restarts > restarts, "the worker has ended", 30)
    await assert_right(run)
    assert (await stack.model_server.stats())["requests"] <= run.total + open_requests


async def test_rate_limit_holds_while_the_scheduler_is_killed(stack: StackHarness) -> None:
    """Of many requests no more pass than those of one minute, and of the one in which they began."""
    children = stack.stack.children.values()
    await eventually(lambda: all(child.ready.is_set() for child in children), "the stack is up", 60)
    headers = {"X-Proctor-User": "stubborn", "Content-Type": "application/yaml"}
    statuses: list[int] = []

    async def ask(times: int) -> None:
        for _ in range(times):
            answer = await http(stack, "POST", f"{SUITES}?dry_run=true", data="suite: any", headers=headers)
            statuses.append(answer.status)

    assert (await http(stack, "PATCH", LIMITS, json={"max_requests_per_minute": MAX_REQUESTS})).status == 200
    try:
        await ask(1)
        await kill(stack, "scheduler")
        await ask(4 * MAX_REQUESTS)
        await eventually(stack.stack.child("scheduler").ready.is_set, "the scheduler is back", 60)
        await ask(4 * MAX_REQUESTS)
    finally:
        await eventually(stack.stack.child("scheduler").ready.is_set, "the scheduler is back", 60)
        reset = await http(stack, "PATCH", LIMITS, json={"max_requests_per_minute": 1_000_000})
    assert reset.status == 200
    passed = [status for status in statuses if status != 429]
    assert MAX_REQUESTS <= len(passed) <= 2 * MAX_REQUESTS, statuses
