"""Runs on leaderboards, over stores in memory and in Postgres."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.leaderboard.postgres import PostgresBaselines, PostgresLeaderboard, PostgresWaitingRuns
from services.results.leaderboard.process_leases import ProcessLeases
from services.results.leases.postgres import PostgresLeases
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from tests.fakes.results.leaderboard_world import World
from tests.fakes.results.memory_leaderboard import MemoryBaselines, MemoryLeaderboard, MemoryWaitingRuns
from tests.fakes.results.memory_leases import MemoryLeases
from tests.fakes.results.memory_results import MemoryRows, memory_stores
from tests.fakes.results.recorded_run import new_id
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            yield PostgresSession(pool, QUERIES)


@pytest.fixture(params=["memory", "postgres"])
def world(request: pytest.FixtureRequest, session: PostgresSession) -> World:
    if request.param == "memory":
        rows = MemoryRows()
        leases = MemoryLeases()
        leased_runs = ProcessLeases(MemoryWaitingRuns(rows, leases), leases)
        return World(
            memory_stores(rows), MemoryLeaderboard(rows), MemoryBaselines(rows), leased_runs, new_id()
        )
    stores = postgres_stores(session)
    baselines = PostgresBaselines(session)
    leased_runs = ProcessLeases(PostgresWaitingRuns(session), PostgresLeases(session, holder=new_id()))
    return World(stores, PostgresLeaderboard(session), baselines, leased_runs, new_id())
