"""Gates that runs are ordered with, on a real Postgres: decided and told of once both runs have completed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

import asyncpg
import grpc
import pytest
import pytest_asyncio

from proctor.v1 import comparison_pb2
from proctor.v1 import gate_service_pb2 as gate_pb2
from proctor.v1 import gate_service_pb2_grpc as gate_grpc
from proctor.values.comparison import UntilDecided
from proctor.values.judging.named_judge import NamedJudge
from proctor.values.names.run_labels import RunLabels
from proctor.values.run import RunId
from services.common.clock import SystemClock
from services.common.errors import InvalidParameter, RunNotFound
from services.common.grpc.server import serve_grpc
from services.common.postgres import PostgresSession
from services.scheduler.gates.gate_runs import GateRuns
from services.scheduler.gates.gated_run import GatedRun
from services.scheduler.gates.grpc_api import SERVICE_NAME, GrpcGateApi
from services.scheduler.gates.postgres import MAX_GATES, PostgresGatedRuns
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.submit_run import Submission
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.workers.model_names import UnknownProvider
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.memory.figured_gates import FiguredGates
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler_rules import queue_limits
from tests.fakes.suites.toy_suites import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="module")


class GateSite:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool, self.session = pool, PostgresSession(pool, QUERIES)
        harness, limits = SchedulerHarness(), queue_limits(max_pending_runs_per_user=1000)
        self.runs = PostgresRuns(self.session, PostgresLimits(self.session, limits))
        self.submit = replace(harness.submitting, runs=self.runs)
        self.gates = FiguredGates()
        stored = PostgresGatedRuns(session=self.session)
        self.gating: GateRuns[GatedRun] = GateRuns(gated=stored, gates=self.gates, clock=harness.clock)

    async def order(self, gate: RunGate | None = None, request_id: str = "", **changes: object) -> str:
        order, labels = toy_order(**changes), RunLabels("frontier")
        run_id = RunId(str(uuid4()))
        submission = Submission(run_id, order, "ann", request_id, labels=labels, gate=gate)
        return (await self.submit.submit(submission)).run_id

    async def end(self, run_id: str, points: float, state: str = "completed") -> None:
        self.gates.points[run_id] = points
        ended = "UPDATE runs SET state = $2, is_closed = true, finished_at = now() WHERE run_id = $1"
        await self.pool.execute(ended, run_id, state)

    async def gate(self, token: FencingToken | None = None) -> None:
        await self.gating.gate_all(token or await self.begin_term())

    @asynccontextmanager
    async def told_gates(self) -> AsyncIterator["gate_grpc.GateServiceAsyncStub"]:
        stored = PostgresGatedRuns(session=self.session)
        api = GrpcGateApi(told=stored, clock=SystemClock())
        server = await serve_grpc("127.0.0.1:0", [api.register], [SERVICE_NAME])
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
                yield gate_grpc.GateServiceStub(channel)
        finally:
            await server.stop(0)

    @staticmethod
    def failing(run: str, base: str, margin_points: float) -> gate_pb2.TellGateRequest:
        gate = comparison_pb2.Gate(
            runs=[comparison_pb2.ComparedRun(run_id=run), comparison_pb2.ComparedRun(run_id=base)],
            verdict=comparison_pb2.GATE_VERDICT_FAIL,
            margin_points=margin_points,
            alpha=0.05,
        )
        worse = comparison_pb2.Difference(task="sst2", metric="acc", first_mean=0.8, second_mean=0.9)
        gate.tasks.add(difference=worse, verdict=comparison_pb2.GATE_VERDICT_FAIL)
        return gate_pb2.TellGateRequest(gate=gate)

    async def begin_term(self) -> FencingToken:
        return FencingToken(await self.session.fetchval("begin_term"))

    async def wants(self, *events: str) -> None:
        await self.pool.execute(
            """
            INSERT INTO notice_targets
                (target_id, username, channel, address, events, scope, project_id, created_at)
            VALUES ($1, 'ann', 'webhook', 'https://a.org', $2, 'own', 0, now())
            """,
            uuid4(),
            [*events],
        )

    async def told(self) -> list[tuple[str, str]]:
        rows = await self.pool.fetch("SELECT event, text FROM notices ORDER BY notice_number")
        return [(row["event"], row["text"]) for row in rows]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def site(pool: asyncpg.Pool) -> GateSite:
    await pool.execute("TRUNCATE notice_targets CASCADE; TRUNCATE runs CASCADE")
    return GateSite(pool)


async def test_drop_is_told_once_both_runs_have_completed(site: GateSite) -> None:
    await site.wants("gate_failed", "drop")
    base = await site.order()
    run = await site.order(RunGate(base_run_id=base, margin_points=0))
    await site.gate()
    await site.end(run, 40)
    await site.gate()
    assert site.gates.asked == []
    await site.end(base, 50)
    await site.gate()
    await site.gate()
    assert site.gates.asked == [(run, base)]
    assert await site.told() == [("gate_failed", f"Run frontier ({MODEL}): Down by 10.")]
    [facts] = [row["facts"] for row in await site.pool.fetch("SELECT facts FROM notices")]
    assert f'"run_id": "{run}"' in facts
    assert f'"base_run_id": "{base}"' in facts


async def test_run_that_failed_is_gated_once_a_retry_has_completed_it(site: GateSite) -> None:
    await site.wants("drop")
    base = await site.order()
    run = await site.order(RunGate(base_run_id=base, margin_points=2))
    await site.end(base, 50)
    await site.end(run, 10, "failed")
    await site.gate()
    assert await site.told() == []
    await site.end(run, 49)
    await site.gate()
    # Within the margin, and a drop all the same.
    assert await site.told() == [("drop", f"Run frontier ({MODEL}): Down by 1.")]


async def test_repeated_order_adds_a_gate_with_another_margin(site: GateSite) -> None:
    await site.wants("gate_failed")
    base, request = await site.order(), str(uuid4())
    gates = [RunGate(base_run_id=base, margin_points=points) for points in (20, 5, 5)]
    [run] = {await site.order(gate, request) for gate in gates}
    await site.end(base, 50)
    await site.end(run, 40)
    await site.gate()
    assert site.gates.asked == [(run, base)] * 2
    assert await site.told() == [("gate_failed", f"Run frontier ({MODEL}): Down by 10.")]
    # Of a run that has ended, too.
    assert await site.order(RunGate(base_run_id=base, margin_points=2), request) == run
    await site.gate()
    assert len(await site.told()) == 2


async def test_repeated_order_finds_the_first_run_though_its_base_and_its_judge_are_gone(
    site: GateSite,
) -> None:
    request, judges = str(uuid4()), (NamedJudge("openai/judge"),)
    gate = RunGate(base_run_id=await site.order(), margin_points=1)
    run = await site.order(gate, request, judges=judges)
    await site.pool.execute("DELETE FROM runs WHERE run_id = $1", gate.base_run_id)
    site.submit = replace(site.submit, pools=())
    assert await site.order(gate, request, judges=judges) == run
    for limit, named in ((1, judges), (None, ())):
        with pytest.raises(UnknownProvider):
            await site.order(gate, request, limit=limit, judges=named)


async def test_gate_that_fails_for_a_caller_is_told_once_for_each_base_and_margin(site: GateSite) -> None:
    await site.wants("gate_failed", "drop")
    base, other = [await site.order() for _ in range(2)]
    run = await site.order(RunGate(base_run_id=base, margin_points=5))
    for each, points in ((base, 50), (other, 60), (run, 40)):
        await site.end(each, points)
    asked = ((base, 5.0), (base, 5.0), (base, 2.0), (other, 5.0), (base, 5.0), (base, 20.0))
    async with site.told_gates() as service:
        await asyncio.gather(*(service.TellGate(site.failing(run, *each)) for each in asked))
        # The one that the order named.
        await site.gate()
        await site.gate()
        passed = site.failing(run, other, 50)
        passed.gate.verdict = comparison_pb2.GATE_VERDICT_PASS
        await service.TellGate(passed)
        await service.TellGate(site.failing(str(uuid4()), other, 5))
    assert [event for event, _ in await site.told()] == ["gate_failed"] * 4
    sentence = "Worse than its base by more than 2 points: sst2 0.9 → 0.8 (acc)."
    assert f"Run frontier ({MODEL}): {sentence}" in [text for _, text in await site.told()]


async def test_only_so_many_gates_of_a_run_are_told(site: GateSite) -> None:
    await site.wants("gate_failed")
    base, run = [await site.order() for _ in range(2)]
    margins = [1 + number / 1000 for number in range(MAX_GATES + 5)]
    async with site.told_gates() as service:
        for margin in (*margins, margins[0]):
            await service.TellGate(site.failing(run, base, margin))
    assert len(await site.told()) == MAX_GATES


async def test_gate_goes_with_its_base(site: GateSite) -> None:
    base = await site.order()
    run = await site.order(RunGate(base_run_id=base))
    await site.end(run, 40)
    await site.pool.execute("DELETE FROM runs WHERE run_id = $1", base)
    await site.gate()
    assert await site.pool.fetch("SELECT FROM run_gates") == []
    assert (await site.runs.get(RunId(run))).is_closed


async def test_order_with_a_gate_that_means_nothing_is_refused(site: GateSite) -> None:
    base = await site.order()
    for wrong in (RunGate(base_run_id=base, margin_points=101), RunGate(base_run_id=base, alpha=0.5)):
        with pytest.raises(InvalidParameter):
            await site.order(wrong)
    with pytest.raises(RunNotFound):
        await site.order(RunGate(base_run_id=str(uuid4())))
    with pytest.raises(InvalidParameter, match="another project"):
        await site.order(RunGate(base_run_id=base), project_id=7)
    decided = UntilDecided(against_model=f"{MODEL}-2")
    with pytest.raises(InvalidParameter, match="decided between"):
        await site.order(RunGate(base_run_id=base), until_decided=decided)
    # Nothing of them is stored.
    assert await site.pool.fetchval("SELECT count(*) FROM runs") == 1


async def test_each_drop_is_told_once_whoever_leads(site: GateSite) -> None:
    await site.wants("drop")
    base = await site.order()
    await site.end(base, 50)
    runs = [await site.order(RunGate(base_run_id=base)) for _ in range(20)]
    for run in runs:
        await site.end(run, 10)
    old, new = await site.begin_term(), await site.begin_term()
    # The old leader is fenced; two looks of the new one find one decision.
    await asyncio.gather(*(site.gate(token) for token in (old, new, new)), return_exceptions=True)
    await site.gate(new)
    assert len(await site.told()) == len(runs)
