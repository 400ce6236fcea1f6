"""One leader at a time on a real Postgres, and nothing done twice when there are two for a moment."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.run import RunId
from proctor.values.scoring import ScoringMethod
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.leadership.postgres import PostgresLeaderElection
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.scheduler.runs.admission.postgres import PostgresSlots
from services.scheduler.runs.admission.run_slots import SlotChanges
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits
from tests.harness.servers import RunningServer, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[RunningServer]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def pool(server: RunningServer) -> AsyncIterator[asyncpg.Pool]:
    async with await connect_pool(server.address, schema=SCHEMA) as pool:
        await pool.execute("TRUNCATE runs CASCADE")
        yield pool


def candidate(server: RunningServer) -> PostgresLeaderElection:
    return PostgresLeaderElection(server.address, SCHEMA)


async def add_runs(pool: asyncpg.Pool, count: int) -> None:
    sessions = PostgresSession(pool, QUERIES)
    limits = PostgresLimits(sessions, queue_limits(max_pending_runs_per_user=count))
    for number in range(count):
        run_id = RunId(f"00000000-0000-0000-0000-{number:012}")
        run = Run(run_id, RunOrder("s", "m"), "u", "p", ScoringMethod.GENERATE, START)
        await PostgresRuns(sessions, limits).add(run, "")


async def test_second_candidate_waits_until_the_first_is_gone(server: RunningServer) -> None:
    fences: list[FencingToken] = []

    async def lead_once() -> None:
        async with candidate(server).term() as term:
            fences.append(term.fencing_token)

    async with candidate(server).term() as first:
        waiting = asyncio.ensure_future(lead_once())
        done, _ = await asyncio.wait((waiting,), timeout=1.5)
        assert not done
    await asyncio.wait_for(waiting, 10)
    assert fences == [first.fencing_token + 1]


async def test_leader_notices_that_its_connection_was_killed(
    server: RunningServer, pool: asyncpg.Pool
) -> None:
    async with candidate(server).term() as term:
        await pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%-leader'"
        )
        await asyncio.wait_for(term.lost(), 5)


async def test_two_leaders_at_once_admit_no_more_than_the_limit(
    server: RunningServer, pool: asyncpg.Pool
) -> None:
    """The old one does not know yet that it lost its lock, and goes on beside the new one."""
    await add_runs(pool, 10)
    slots = PostgresSlots(
        PostgresSession(pool, QUERIES),
        PostgresLimits(PostgresSession(pool, QUERIES), queue_limits(max_running_runs=3)),
    )
    async with candidate(server).term() as old:
        pass
    async with candidate(server).term() as new:
        calls = [
            slots.admit(token, START) for _ in range(10) for token in (old.fencing_token, new.fencing_token)
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, LeadershipLost) for answer in answers) == 10
    admitted = [run_id for answer in answers if isinstance(answer, SlotChanges) for run_id in answer.admitted]
    assert len(admitted) == len(set(admitted)) == 3
    assert await pool.fetchval("SELECT count(*) FROM runs WHERE state = 'running'") == 3


async def test_term_does_not_begin_in_the_middle_of_a_write_of_the_old_one(server: RunningServer) -> None:
    """A write that passed the check is committed before the next number is given out."""
    async with candidate(server).term() as old:
        connection = await asyncpg.connect(server.address, server_settings={"search_path": SCHEMA})
        transaction = connection.transaction()
        await transaction.start()
        await connection.fetchval(
            "SELECT fencing_token FROM leadership WHERE fencing_token = $1 FOR SHARE", old.fencing_token
        )

    async def begin() -> FencingToken:
        async with candidate(server).term() as term:
            return term.fencing_token

    beginning = asyncio.ensure_future(begin())
    done, _ = await asyncio.wait((beginning,), timeout=1)
    assert not done
    await transaction.commit()
    await connection.close()
    assert await asyncio.wait_for(beginning, 10) > old.fencing_token
