"""Gates of schedules on a real Postgres: what each run is compared to, decided and told of once."""

import asyncio
import random
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.comparison import GateVerdict, UntilDecided
from services.common.errors import ErrorKind, InvalidParameter, RemoteError, RunNotFound
from services.common.postgres import PostgresSession
from services.scheduler.gates.gate_runs import GateRuns
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.schedules.postgres_gates import PostgresGatedFirings
from services.scheduler.schedules.schedule import Firing, GatedFiring, Schedule
from tests.chaos.lives.test_schedule_firings import kill_connections
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.memory.figured_gates import FiguredGates
from tests.fakes.scheduler.scheduler_harness import toy_order
from tests.fakes.schedules import ScheduleHarness, empty_schedules
from tests.fakes.suites.toy_suites import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

AWAY = RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "results does not answer", {})
GONE = RemoteError(ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", "Run 7 not found.", {})


class GateSite:
    def __init__(self, harness: ScheduleHarness) -> None:
        self.harness, self.gates = harness, FiguredGates()
        firings = PostgresGatedFirings(session=PostgresSession(harness.pool, QUERIES))
        self.gating: GateRuns[GatedFiring] = GateRuns(
            gated=firings, gates=self.gates, clock=harness.scheduler.clock
        )

    async def add(self, gate: RunGate | None) -> Schedule:
        return await self.harness.add(gate=gate)

    async def fire(self) -> str:
        """The id of a new run, which goes on."""
        self.harness.go_on(minutes=1)
        await self.harness.fire()
        return (await self.harness.stored_runs())[-1].run_id

    async def end(self, run_id: str, state: str = "completed", points: float = 50.0) -> None:
        self.gates.points[run_id] = points
        await self.harness.pool.execute(
            "UPDATE runs SET state = $2, is_closed = true, finished_at = now() WHERE run_id = $1",
            run_id,
            state,
        )

    async def gate(self, token: FencingToken | None = None) -> None:
        await self.gating.gate_all(token or await self.harness.begin_term())

    async def ended(self, schedule: Schedule, points: float, state: str = "completed") -> Firing:
        """A firing whose run has ended and was gated."""
        await self.end(await self.fire(), state, points)
        await self.gate()
        return (await self.harness.store.firings(schedule.schedule_id))[0]

    async def wants(self, *events: str, user: str = "ann", project: int = 0) -> None:
        await self.harness.pool.execute(
            """
            INSERT INTO notice_targets
                (target_id, username, channel, address, events, scope, project_id, created_at)
            VALUES ($1, $2, 'webhook', 'https://a.org', $3, $4, $5, now())
            """,
            uuid4(),
            user,
            [*events],
            "project" if project else "own",
            project,
        )

    async def told(self) -> list[tuple[str, str]]:
        rows = await self.harness.pool.fetch("SELECT event, text FROM notices ORDER BY notice_number")
        return [(row["event"], row["text"].partition(": ")[2]) for row in rows]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def site(pool: asyncpg.Pool) -> GateSite:
    await pool.execute("TRUNCATE notice_targets CASCADE")
    return GateSite(await empty_schedules(pool, max_pending=1000))


async def test_each_run_is_gated_against_the_one_before_that_completed(site: GateSite) -> None:
    schedule = await site.add(RunGate(margin_points=2))
    first = await site.ended(schedule, 50)
    assert (first.verdict, first.base_run_id) == (None, "")
    assert first.gate_text.startswith("No earlier run of the schedule has completed")
    second = await site.ended(schedule, 49)
    assert (second.verdict, second.base_run_id) == (GateVerdict.PASS, first.run_ids[0])
    failed = await site.ended(schedule, 10, "failed")
    assert (failed.verdict, failed.gate_text) == (
        GateVerdict.INCONCLUSIVE,
        "The run ended as failed, so that it is not compared.",
    )
    third = await site.ended(schedule, 40)
    assert (third.verdict, third.base_run_id) == (GateVerdict.FAIL, second.run_ids[0])
    # What is shown of the schedule has its latest decision.
    assert (await site.harness.store.get(schedule.schedule_id)).last_firing == third


async def test_run_is_gated_once_it_has_ended_whatever_is_ordered_meanwhile(site: GateSite) -> None:
    schedule = await site.add(RunGate())
    base = await site.ended(schedule, 50)
    slow, fast = await site.fire(), await site.fire()
    await site.end(fast, points=50)
    await site.gate()
    assert site.gates.asked == [(fast, base.run_ids[0])]
    await site.end(slow, points=10)
    await site.gate()
    # Against what had completed before its time, not after it.
    assert site.gates.asked[-1] == (slow, base.run_ids[0])


async def test_named_run_is_the_base_of_all(site: GateSite) -> None:
    base = (await site.ended(await site.add(None), 50)).run_ids[0]
    await site.harness.pool.execute("TRUNCATE schedules CASCADE")
    schedule = await site.add(RunGate(base_run_id=base))
    for points in (49.5, 49, 48):
        await site.ended(schedule, points)
    firings = await site.harness.store.firings(schedule.schedule_id)
    assert {each.base_run_id for each in firings} == {base}
    assert [each.verdict for each in firings] == [GateVerdict.FAIL, GateVerdict.PASS, GateVerdict.PASS]


async def test_drop_and_failed_gate_are_told_by_one_notice_to_who_wants_both(site: GateSite) -> None:
    await site.wants("gate_failed", "drop", "schedule_refused")
    await site.wants("drop", user="bob", project=7)
    await site.wants("gate_failed", user="carl")
    schedule = await site.harness.add(order=toy_order(project_id=7), gate=RunGate(margin_points=2))
    for points in (50, 60, 59, 30):
        await site.ended(schedule, points)
    await site.gate()
    # ann and bob hear of the small drop, and of the large one once each; it is not carl's run.
    assert sorted(await site.told()) == [
        ("drop", "Down by 1."),
        ("drop", "Down by 1."),
        ("drop", "Down by 29."),
        ("gate_failed", "Down by 29."),
    ]
    [facts] = {row["facts"] for row in await site.harness.pool.fetch("SELECT facts FROM notices LIMIT 1")}
    assert f'"schedule_id": "{schedule.schedule_id}"' in facts


async def test_nothing_is_decided_while_results_is_away(site: GateSite) -> None:
    schedule = await site.add(RunGate())
    await site.ended(schedule, 50)
    site.gates.error = AWAY
    run = await site.fire()
    await site.end(run, points=10)
    with pytest.raises(RemoteError):
        await site.gate()
    site.gates.error = None
    await site.gate()
    latest, _ = await site.harness.store.firings(schedule.schedule_id)
    assert latest.verdict is GateVerdict.FAIL


async def test_run_or_base_that_is_gone_leaves_the_gate_undecided(site: GateSite) -> None:
    schedule = await site.add(RunGate())
    await site.ended(schedule, 50)
    site.gates.error = GONE
    lost = await site.ended(schedule, 10)
    assert (lost.verdict, lost.gate_text) == (GateVerdict.INCONCLUSIVE, "Run 7 not found.")
    deleted = await site.fire()
    await site.harness.pool.execute("DELETE FROM runs WHERE run_id = $1", deleted)
    await site.gate()
    latest = (await site.harness.store.firings(schedule.schedule_id))[0]
    assert (latest.verdict, latest.gate_text) == (None, "The run was deleted before it was gated.")
    assert await site.told() == []


async def test_gates_that_mean_nothing_are_refused(site: GateSite) -> None:
    for gate in (RunGate(margin_points=101), RunGate(alpha=0), RunGate(alpha=0.5)):
        with pytest.raises(InvalidParameter):
            await site.add(gate)
    with pytest.raises(InvalidParameter, match="margin_points"):
        await site.add(RunGate(margin_points=float("nan")))
    with pytest.raises(RunNotFound):
        await site.add(RunGate(base_run_id=str(uuid4())))
    decided = toy_order(until_decided=UntilDecided(against_model=f"{MODEL}-2"))
    with pytest.raises(InvalidParameter):
        await site.harness.add(order=decided, gate=RunGate())
    base = (await site.ended(await site.add(None), 50)).run_ids[0]
    with pytest.raises(InvalidParameter, match="another project"):
        await site.harness.add(order=toy_order(project_id=77), gate=RunGate(base_run_id=base))
    await site.harness.pool.execute(
        "UPDATE runs SET ordered = jsonb_set(ordered, '{suite}', '\"other\"') WHERE run_id = $1", base
    )
    with pytest.raises(InvalidParameter, match="is a run over other"):
        await site.add(RunGate(base_run_id=base))


async def test_each_gate_is_told_once_whoever_leads_and_whatever_is_killed(site: GateSite) -> None:
    await site.wants("gate_failed")
    schedules = [await site.add(RunGate()) for _ in range(5)]
    drawn, changes, points = random.Random(5), 8, 100.0

    async def lead(token: FencingToken) -> None:
        try:
            await site.gate(token)
        except LeadershipLost:
            return

    async with asyncio.timeout(120):
        for change in range(changes):
            before = {run.run_id for run in await site.harness.stored_runs()}
            await site.fire()
            for run in await site.harness.stored_runs():
                if run.run_id not in before:
                    # Each one worse than the one before.
                    await site.end(run.run_id, points=points - 10 * change)
            old, new = await site.harness.begin_term(), await site.harness.begin_term()
            tasks = [asyncio.ensure_future(lead(each)) for each in (old, new, new)]
            await asyncio.sleep(drawn.uniform(0, 0.02))
            await kill_connections(site.harness.pool)
            await asyncio.gather(*tasks)
            await site.gate(new)
    told = await site.told()
    assert len(told) == len(schedules) * (changes - 1)
    keys = await site.harness.pool.fetch("SELECT DISTINCT event_key FROM notices")
    assert len(keys) == len(told)
    for schedule in schedules:
        verdicts = [each.verdict for each in await site.harness.store.firings(schedule.schedule_id)]
        assert verdicts == [GateVerdict.FAIL] * (changes - 1) + [None]
