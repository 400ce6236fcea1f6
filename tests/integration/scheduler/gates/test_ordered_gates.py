"""Gates that runs are ordered with, on a real Postgres: decided and told of once both runs have completed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.comparison import UntilDecided
from proctor.values.names.run_labels import RunLabels
from proctor.values.run import RunId
from services.common.errors import InvalidParameter, RunNotFound
from services.common.postgres import PostgresSession
from services.scheduler.gates.gate_runs import GateRuns
from services.scheduler.gates.gated_run import GatedRun
from services.scheduler.gates.postgres import PostgresGatedRuns
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.submit_run import Submission
from services.scheduler.runs.orders.run_gate import RunGate
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


async def test_repeated_order_keeps_the_gate_of_the_first_one(site: GateSite) -> None:
    bases = [await site.order() for _ in range(2)]
    request = str(uuid4())
    ordered = [await site.order(RunGate(base_run_id=base), request) for base in bases]
    assert ordered[0] == ordered[1]
    gates = await site.pool.fetch("SELECT run_id, base_run_id FROM run_gates")
    assert [(str(row["run_id"]), str(row["base_run_id"])) for row in gates] == [(ordered[0], bases[0])]


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
