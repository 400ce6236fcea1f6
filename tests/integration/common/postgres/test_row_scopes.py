"""Sessions of Postgres see the rows of their caller's projects, whoever used their connection before."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.names.project import FIRST_DECLARED
from proctor.values.names.user import Caller, Role
from services.common.errors import ProjectNotFound, RowsNotGuarded
from services.common.grpc.caller import caller_metadata, serve_caller
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_once, connect_pool
from services.common.requests.read_session import ReadLimits, ReadSession
from services.common.sql.row_scope import ALL_ROWS, seeing_all, serve_scope
from services.results import postgres as results
from services.results.outcomes.postgres import PostgresReuse
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.runs.run_plan import RunPlan
from services.scheduler import postgres as scheduler
from services.scheduler.audit.audit_record import Author
from services.scheduler.projects.postgres import PostgresProjects, check_guarded
from tests.fakes.results.recorded_run import answered, choice_sample, new_id, plan_of, scored
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import ordinary_role, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE, OTHER = FIRST_DECLARED + 1, FIRST_DECLARED + 2
ANN = Caller("ann", projects=((MINE, Role.RUNNER),))
VIC = Caller("vic", projects=((MINE, Role.VIEWER),))
BOB = Caller("bob")
OLGA = Caller("olga", Role.OPERATOR)
AUTHOR = Author("olga", datetime(2026, 11, 29, tzinfo=UTC))
ENGINE = {"engine": "fake", "engine_version": "1"}
SIZE = 4


def serve(caller: Caller | None) -> None:
    """None: the service's own work."""
    if caller is None:
        serve_scope(ALL_ROWS)
    else:
        serve_caller(dict(caller_metadata(caller)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def superuser() -> AsyncIterator[str]:
    async with postgres_server() as server:
        yield server.address


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dsn(superuser: str) -> str:
    """That of a role as services have it: it owns its tables and is no superuser."""
    made = await ordinary_role(superuser)
    await migrate(made, scheduler.SCHEMA, scheduler.MIGRATIONS)
    await migrate(made, results.SCHEMA, results.MIGRATIONS)
    return made


@asynccontextmanager
async def session_on(dsn: str, schema: str, connections: int = 1) -> AsyncIterator[PostgresSession]:
    queries = scheduler.QUERIES if schema == scheduler.SCHEMA else results.QUERIES
    async with await connect_pool(dsn, schema=schema, max_size=connections) as pool:
        yield PostgresSession(pool, queries)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def projects(dsn: str) -> AsyncIterator[PostgresProjects]:
    """Two projects, on one connection."""
    async with session_on(dsn, scheduler.SCHEMA) as session:
        found = PostgresProjects(session)
        for name in ("mine", "other"):
            await found.add(name, "", AUTHOR, uuid4())
        yield found


async def seen(projects: PostgresProjects, caller: Caller | None) -> Sequence[str]:
    serve(caller)
    return [each.name for each in (await projects.page(10, "")).projects]


async def test_one_connection_serves_callers_in_turn_and_none_sees_what_another_did(
    projects: PostgresProjects,
) -> None:
    for caller, expected in (
        (None, ["mine", "other"]),
        (ANN, ["mine"]),
        (BOB, []),
        (OLGA, ["mine", "other"]),
    ):
        for _ in range(2):
            assert await seen(projects, caller) == expected
    serve(ANN)
    with pytest.raises(ProjectNotFound):
        await projects.get(OTHER)


async def test_a_call_that_is_cut_off_leaves_no_scope_behind(projects: PostgresProjects) -> None:
    for caller in (ANN, BOB, OLGA) * 5:
        serve(caller)
        for delay in (0.0, 0.0005):
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    while True:
                        await projects.page(10, "")
        assert await seen(projects, BOB) == []
        assert await seen(projects, ANN) == ["mine"]


async def test_a_session_that_nobody_set_sees_nothing_of_declared_projects(
    dsn: str, projects: PostgresProjects
) -> None:
    assert await seen(projects, None) == ["mine", "other"]
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("SELECT count(*) FROM scheduler.projects") == 0
    await connection.close()


async def test_migrations_see_all_and_no_service_starts_for_whom_policies_do_not_hold(
    superuser: str, dsn: str, projects: PostgresProjects
) -> None:
    assert await seen(projects, None) == ["mine", "other"]
    connection = await connect_once(dsn)
    assert await connection.fetchval("SELECT count(*) FROM scheduler.projects") == 2
    await connection.close()
    async with session_on(dsn, scheduler.SCHEMA) as session:
        await check_guarded(session)
    async with session_on(superuser, scheduler.SCHEMA) as session:
        with pytest.raises(RowsNotGuarded):
            await check_guarded(session)


async def test_transactions_read_all_and_lists_do_not(dsn: str, projects: PostgresProjects) -> None:
    assert await seen(projects, BOB) == []
    async with (
        session_on(dsn, scheduler.SCHEMA) as session,
        await connect_pool(dsn, schema=scheduler.SCHEMA, max_size=1) as pool,
    ):
        limits = ReadLimits(at_once=1, wait_seconds=5, statement_seconds=5)
        reads = ReadSession(pool=pool, queries=scheduler.QUERIES, limits=limits, retry_seconds=5)
        assert await session.run(lambda one: one.fetchval("count_projects")) == 2
        assert await session.fetchval("count_projects") == 0
        assert await reads.run(lambda one: one.fetchval("count_projects")) == 0
        with seeing_all():
            assert await session.fetchval("count_projects") == 2


@pytest.mark.parametrize(
    ("caller", "project_id", "is_stored"),
    [
        (ANN, MINE, True),
        (VIC, MINE, False),
        (BOB, MINE, False),
        (ANN, OTHER, False),
        (OLGA, OTHER, True),
        (BOB, 7, True),
        # A number that was not declared.
        (OLGA, OTHER + 1, False),
        (None, OTHER + 1, False),
    ],
)
async def test_only_who_has_the_role_stores_rows(
    dsn: str,
    projects: PostgresProjects,  # noqa: ARG001  # declared
    caller: Caller | None,
    project_id: int,
    is_stored: bool,  # noqa: FBT001  # a case
) -> None:
    async with session_on(dsn, scheduler.SCHEMA) as session:
        serve(caller)
        batch_id = f"batch_{uuid4().hex}"

        async def add() -> None:
            await session.run(
                lambda one: one.execute(
                    "add_batch",
                    batch_id=batch_id,
                    username="ann",
                    input_file_id="file-1",
                    endpoint="/v1/completions",
                    completion_window="24h",
                    metadata="{}",
                    created_at=AUTHOR.at,
                    total=0,
                    run_id=None,
                    errors="[]",
                    output_expires_after_seconds=None,
                    request_id=None,
                    project_id=project_id,
                )
            )

        if is_stored:
            await add()
        else:
            with pytest.raises(ProjectNotFound):
                await add()
        serve(None)
        assert bool(await session.fetchrow("read_batch", batch_id=batch_id)) is is_stored


async def test_projects_are_declared_and_recorded_only_where_policies_hold(superuser: str, dsn: str) -> None:
    assert dsn
    async with session_on(superuser, scheduler.SCHEMA) as session:
        serve(OLGA)
        with pytest.raises(RowsNotGuarded):
            await PostgresProjects(session).add("unguarded", "", AUTHOR, uuid4())
    async with session_on(superuser, results.SCHEMA) as session:
        serve(None)
        with pytest.raises(RowsNotGuarded):
            await postgres_stores(session).records.open(in_project(plan_of([1]), MINE), 1)


def in_project(plan: RunPlan, project_id: int) -> RunPlan:
    return replace(plan, facts=replace(plan.facts, project_id=project_id))


@pytest.mark.parametrize(
    ("of", "to", "is_reused"), [(7, MINE, True), (MINE, MINE, True), (MINE, OTHER, False), (MINE, 7, False)]
)
async def test_answers_of_a_declared_project_are_reused_in_it_alone(
    dsn: str,
    of: int,
    to: int,
    is_reused: bool,  # noqa: FBT001  # a case
) -> None:
    serve(None)
    salt = new_id()
    samples = [choice_sample(at, salt) for at in range(SIZE)]
    async with session_on(dsn, results.SCHEMA, 2) as session:
        stores = postgres_stores(session)
        plans = []
        for project_id in (of, to):
            sample_set_id = new_id()
            await stores.sample_sets.stage(sample_set_id, samples)
            kept = await stores.sample_sets.commit(sample_set_id, SIZE)
            plan = in_project(plan_of([SIZE], [kept.sample_set_id]), project_id)
            tasks = tuple(replace(task, request_digest=salt.encode()) for task in plan.tasks)
            plans.append((await stores.records.open(replace(plan, tasks=tasks), 1)).plan)
        first, second = plans
        await stores.outcomes.record([scored(first.run_id, answered(at)) for at in range(SIZE)])
        await stores.records.add_environment(first.run_id, ENGINE)
        reuse = ReuseAnswers(stores.records, stores.outcomes, PostgresReuse(session))
        assert await reuse.reuse(second.run_id, 1, ENGINE) == (SIZE if is_reused else 0)
