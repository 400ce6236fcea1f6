"""A thousand firings over fifty changes of the leader, with old leaders that go on and killed connections."""

import asyncio
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from services.common.postgres import PostgresSession
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.postgres import QUERIES
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.schedules import ScheduleHarness, empty_schedules
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEDULES = 20
LIMIT_SECONDS = 300.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


async def kill_connections(pool: asyncpg.Pool) -> int:
    """Those of all leaders, in whatever statement they are. Returns how many."""
    kill = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'proctor-scheduler' AND pid <> pg_backend_pid()
        """
    # The connection of this one may be one that was killed before.
    return int(await PostgresSession(pool, QUERIES).repeat(lambda: pool.fetchval(kill)))


async def lead(harness: ScheduleHarness, token: FencingToken) -> None:
    """Steps of a leader, until another one leads or nothing is due."""
    try:
        while await harness.led.due(harness.scheduler.clock.now()):
            await harness.due.submit_all(token)
    except LeadershipLost:
        return


@first_cases(1, "changes", [10, 50])
async def test_each_time_fires_once_whoever_leads_and_whatever_is_killed(
    pool: asyncpg.Pool, changes: int
) -> None:
    harness = await empty_schedules(pool, max_pending=SCHEDULES * changes)
    drawn = random.Random(42)
    ids = {(await harness.add(user=f"user {number % 4}")).schedule_id for number in range(SCHEDULES)}
    killed = lost = 0
    async with asyncio.timeout(LIMIT_SECONDS):
        for _ in range(changes):
            harness.go_on(minutes=1)
            old = await harness.begin_term()
            # The old one hangs in its step while another one is elected.
            leading = asyncio.ensure_future(lead(harness, old))
            await asyncio.sleep(drawn.uniform(0, 0.05))
            lost += not leading.done()
            new = await harness.begin_term()
            newer = asyncio.ensure_future(lead(harness, new))
            await asyncio.sleep(drawn.uniform(0, 0.02))
            killed += await kill_connections(pool)
            await asyncio.gather(leading, newer)
            await lead(harness, new)
    firings = await pool.fetch("SELECT schedule_id, due_at, run_ids, problem FROM schedule_firings")
    runs = {row["run_id"] for row in await pool.fetch("SELECT run_id FROM runs")}
    assert len(firings) == SCHEDULES * changes
    assert {str(row["schedule_id"]) for row in firings} == {*ids}
    assert len({(row["schedule_id"], row["due_at"]) for row in firings}) == SCHEDULES * changes
    assert {row["problem"] for row in firings} == {""}
    # As many runs as firings, and each of one firing.
    of_firings = [run_id for row in firings for run_id in row["run_ids"]]
    assert len(of_firings) == SCHEDULES * changes
    assert {*of_firings} == runs
    # It tried what it promises to: leaders were replaced within their step, and connections killed.
    assert lost > changes / 4
    assert killed > changes
