"""An import is stored whole or given up, also where its last answer is lost."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.run import RunCounts, RunState
from services.common.postgres import PostgresSession
from services.scheduler.imports.postgres import PostgresImports
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import HOUR, empty_stores, new_run
from tests.fakes.scheduler.surroundings import START

pytestmark = pytest.mark.asyncio(loop_scope="module")

DIGEST = "d" * 64


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        await empty_stores(pool)
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def imports(pool: asyncpg.Pool) -> PostgresImports:
    return PostgresImports(PostgresSession(pool, QUERIES))


def closed_run() -> Run:
    return replace(
        new_run(imported_from="lm-eval"),
        pool="",
        state=RunState.COMPLETED,
        is_closed=True,
        started_at=START,
        finished_at=START + timedelta(seconds=1),
        final_counts=RunCounts(1),
        total=3,
    )


async def announced(pool: asyncpg.Pool, run: Run) -> object:
    return await pool.fetchval("SELECT deleted_at FROM deleted_runs WHERE run_id = $1", run.run_id)


async def test_adding_twice_is_adding_once(imports: PostgresImports, pool: asyncpg.Pool) -> None:
    """A commit whose answer is lost is made again."""
    run, request_id = closed_run(), str(uuid4())
    await imports.announce(run.run_id, START + HOUR)
    assert await imports.add(run, [], request_id, DIGEST)
    assert await imports.add(run, [], request_id, DIGEST)
    assert await announced(pool, run) is None


async def test_a_run_that_was_added_is_not_given_up(imports: PostgresImports, pool: asyncpg.Pool) -> None:
    """The caller goes while the last commit is under way: results would be asked to delete its answers."""
    run = closed_run()
    await imports.announce(run.run_id, START + HOUR)
    assert await imports.add(run, [], str(uuid4()), DIGEST)
    await imports.give_up(run.run_id, START)
    assert await announced(pool, run) is None


async def test_what_was_given_up_is_not_added(imports: PostgresImports, pool: asyncpg.Pool) -> None:
    run = closed_run()
    await imports.announce(run.run_id, START + HOUR)
    await imports.give_up(run.run_id, START)
    assert await announced(pool, run) == START
    assert not await imports.add(run, [], str(uuid4()), DIGEST)


async def test_a_log_tells_nothing_about_how_long_or_how_dear_own_runs_are(
    imports: PostgresImports, pool: asyncpg.Pool
) -> None:
    run, session = closed_run(), PostgresSession(pool, QUERIES)
    await imports.announce(run.run_id, START + HOUR)
    assert await imports.add(run, [], str(uuid4()), DIGEST)
    benchmark, model = run.order.benchmark, run.order.model
    assert not await session.fetch("list_past_runs", benchmarks=[benchmark], models=[model])
    assert not await session.fetch("list_planned_rows", benchmarks=[benchmark])
    # The same rows in a pool are found.
    await pool.execute("UPDATE runs SET pool = 'remote' WHERE run_id = $1", run.run_id)
    assert await session.fetch("list_past_runs", benchmarks=[benchmark], models=[model])
    assert await session.fetch("list_planned_rows", benchmarks=[benchmark])
