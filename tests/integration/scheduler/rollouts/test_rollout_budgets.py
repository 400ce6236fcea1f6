"""Used budgets of rollouts: recorded where the worker was sent them, and carried to the next execution."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client

from proctor.v1.outcome_pb2 import TokenUsage
from proctor.v1.work_messages_pb2 import (
    BudgetUse,
    ReportBudgetUseRequest,
    ReportBudgetUseResponse,
)
from proctor.values import messaging
from proctor.values.run import RunId
from proctor.values.usage import TokenUsage as TokenUsageValue
from proctor.wire.proofs import DispatchedShard
from services.common.nats.connection import connect_nats
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.planning.shard import MissingSample, Shard
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.rollouts.budgets.budget_report import MAX_EXECUTIONS
from services.scheduler.rollouts.budgets.postgres import PostgresRolloutUse
from tests.fakes.scheduler.batch_harness import BatchHarness, batch_harness, created
from tests.fakes.scheduler.stores import new_run
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "the scheduler's own"
FIRST, SECOND = uuid4().hex, uuid4().hex


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BatchHarness]:
    async with batch_harness(tmp_path_factory.mktemp("scheduler"), dispatch_proof_key=KEY) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection(harness: BatchHarness) -> AsyncIterator[Client]:
    connection = await connect_nats(harness.nats, "worker")
    yield connection
    await connection.close()


@pytest_asyncio.fixture(loop_scope="module")
async def use(harness: BatchHarness) -> AsyncIterator[PostgresRolloutUse]:
    pool = await connect_pool(harness.postgres, schema=SCHEMA)
    yield PostgresRolloutUse(PostgresSession(pool, QUERIES))
    await pool.close()


@pytest_asyncio.fixture(loop_scope="module")
async def run_id(harness: BatchHarness) -> str:
    """A run that is there; what it runs over is of no matter here."""
    return (await created(harness)).run_id


def used(steps: int, tokens: int = 0, seconds: float = 0.0) -> BudgetUse:
    return BudgetUse(agent_steps=steps, usage=TokenUsage(prompt_tokens=tokens), seconds=seconds)


def request(
    run_id: str, execution: str = FIRST, *, epoch: int = 1, key: str = KEY, **changes: object
) -> ReportBudgetUseRequest:
    proof = DispatchedShard(run_id, epoch, 7, 2, 1, (range(3, 5),)).proof(key)
    fields: dict[str, Any] = {"sample": 4, "used": used(1), **changes}
    return ReportBudgetUseRequest(run_id=run_id, epoch=epoch, proof=proof, execution=execution, **fields)


async def report(connection: Client, sent: ReportBudgetUseRequest) -> ReportBudgetUseResponse:
    subject = messaging.budget_subject("remote")
    reply = await connection.request(subject, sent.SerializeToString(), timeout=20)
    return ReportBudgetUseResponse.FromString(reply.data)


@first_cases(
    3,
    "changes",
    [
        {"key": "another"},
        {"sample": 5},
        {"epoch": 2},
        {"execution": "../x"},
        {"used": used(-1)},
        {"used": used(1, -1)},
        {"used": used(1, seconds=float("nan"))},
        {"run_id": "no run"},
        {"run_id": str(uuid4())},
    ],
)
async def test_what_a_worker_was_not_sent_is_refused(
    harness: BatchHarness, connection: Client, run_id: str, changes: dict[str, object]
) -> None:
    answer = await report(connection, request(**{"run_id": run_id, **changes}))  # type: ignore[arg-type]  # fields of a message
    assert answer.is_refused
    assert answer.problem
    assert await harness.count("SELECT count(*) FROM rollout_budgets WHERE run_id = $1", run_id) == 0


async def test_an_execution_learns_what_those_before_it_used(connection: Client, run_id: str) -> None:
    assert (await report(connection, request(run_id))).earlier.agent_steps == 0
    # Absolute: a report that is sent again, or comes late, changes nothing.
    for steps, tokens in ((2, 100), (3, 250), (3, 250), (2, 100)):
        answer = await report(connection, request(run_id, used=used(steps, tokens, steps / 2)))
        assert (answer.problem, answer.earlier_executions) == ("", 0)
    second = await report(connection, request(run_id, SECOND))
    assert (second.earlier, second.earlier_executions) == (used(3, 250, 1.5), 1)
    # One that goes on, because its worker lost the connection only, does not count the later one.
    first = await report(connection, request(run_id, used=used(4, 300, 2.0)))
    assert first.earlier_executions == 0
    again = await report(connection, request(run_id, SECOND, used=used(2, 10)))
    assert again.earlier == used(4, 300, 2.0)
    other = await report(connection, request(run_id, uuid4().hex, sample=3))
    assert other.earlier_executions == 0


async def test_an_execution_that_its_worker_left_uses_no_budget(connection: Client, run_id: str) -> None:
    """By a worker that drains, or a run that loses its slot: its tokens are counted all the same."""
    await report(connection, request(run_id, used=used(3, 250, 1.5)))
    await report(connection, request(run_id, used=used(3, 300, 2.0), is_left=True))
    second = await report(connection, request(run_id, SECOND))
    assert (second.earlier.agent_steps, second.earlier_executions) == (0, 0)
    assert second.left == TokenUsage(prompt_tokens=300)
    # A report that was on its way makes it no lost one.
    await report(connection, request(run_id, used=used(3, 250, 1.5)))
    third = await report(connection, request(run_id, uuid4().hex))
    assert (third.earlier.agent_steps, third.earlier_executions) == (1, 1)
    assert third.left == TokenUsage(prompt_tokens=300)


async def test_a_retried_run_has_new_budgets(harness: BatchHarness, connection: Client, run_id: str) -> None:
    await report(connection, request(run_id, used=used(9)))
    await harness.change_run(run_id, epoch=2)
    assert (await report(connection, request(run_id, used=used(10)))).is_refused
    answer = await report(connection, request(run_id, SECOND, epoch=2))
    assert (answer.problem, answer.earlier_executions) == ("", 0)


@pytest.mark.parametrize("state", ["completed", "cancelled"])
async def test_a_finished_run_has_no_budget(
    harness: BatchHarness, connection: Client, run_id: str, state: str
) -> None:
    await harness.change_run(run_id, state=state)
    answer = await report(connection, request(run_id))
    assert answer.is_refused
    assert "its run is finished" in answer.problem


async def test_tokens_without_an_outcome_are_summed_up(
    harness: BatchHarness, connection: Client, run_id: str, use: PostgresRolloutUse
) -> None:
    run = replace(new_run(), run_id=RunId(run_id), epoch=1)
    assert not await use.has_any(run)
    await report(connection, request(run_id, used=used(3, 100)))
    await report(connection, request(run_id, SECOND, used=used(2, 10)))
    await report(connection, request(run_id, uuid4().hex, sample=3, used=used(1, 7)))
    assert await use.has_any(run)
    assert await use.unscored(run) == TokenUsageValue()
    in_flight = [Shard(7, 0, 1, [4], 1)]
    assert await use.unscored(run, in_flight) == TokenUsageValue(prompt_tokens=110)
    assert await use.unscored(run, [Shard(7, 0, 2, [4], 1)]) == TokenUsageValue()
    # Its worker ends both rollouts, and one of them still has an outcome.
    assert not await use.settle(run, [MissingSample(3, 1), MissingSample(4, 1)])
    for execution, tokens in ((FIRST, 100), (SECOND, 15)):
        sent = request(run_id, execution, used=used(3, tokens), is_left=True)
        assert not (await report(connection, sent)).problem
    assert await use.settle(run, [MissingSample(4, 1)])
    assert await use.unscored(run) == TokenUsageValue(prompt_tokens=115)
    # It stays that of the run in its next epoch.
    assert await use.unscored(replace(run, epoch=2)) == TokenUsageValue(prompt_tokens=115)
    assert not await use.has_any(replace(run, epoch=2))
    await harness.change_run(run_id, state="cancelled", is_closed=True)
    assert (await report(connection, request(run_id, used=used(4, 200), is_left=True))).is_refused


async def test_a_rollout_does_not_begin_without_end(connection: Client, run_id: str) -> None:
    for _ in range(MAX_EXECUTIONS):
        assert not (await report(connection, request(run_id, uuid4().hex))).problem
    assert (await report(connection, request(run_id, uuid4().hex))).is_refused
