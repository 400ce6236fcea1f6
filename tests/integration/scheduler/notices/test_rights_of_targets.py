"""Who is told what once rights have ended, and how often a target can be tried."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.names.notices import NoticeScope
from proctor.values.names.user import Role
from services.common.postgres import PostgresSession
from services.scheduler.audit.audit_record import Author
from services.scheduler.notices import postgres
from services.scheduler.notices.errors import TooManyTests
from services.scheduler.postgres import QUERIES
from services.scheduler.projects.postgres import PostgresProjects
from services.scheduler.projects.project import ProjectChanges
from tests.fakes.notices.site import ANN, BOB, OLGA, NoticeSite, notice_site
from tests.fakes.scheduler.database import scheduler_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

URL = "https://example.org"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def site(pool: asyncpg.Pool) -> NoticeSite:
    await pool.execute("TRUNCATE api_keys")
    return await notice_site(pool)


async def add_key(site: NoticeSite, key_id: str, role: str, version: int) -> None:
    await site.pool.execute(
        """
        INSERT INTO api_keys (key_id, username, role, note, code, created_by, created_at, expires_at, version)
        VALUES ($1, 'olga', $2, '', sha256('x'), 'olga', $3, 'infinity', $4)
        """,
        key_id,
        role,
        site.clock.now(),
        version,
    )


async def test_who_is_no_operator_any_more_is_told_of_own_runs_only(site: NoticeSite) -> None:
    await site.target(URL, OLGA, scope=NoticeScope.ALL)
    await site.ended_run("bob")
    # Her role came with no key.
    assert len(await site.ledger(OLGA)) == 1
    await add_key(site, "operator", "operator", 1)
    await site.ended_run("bob")
    assert len(await site.ledger(OLGA)) == 2
    await site.pool.execute("UPDATE api_keys SET revoked_at = $1", site.clock.now())
    await add_key(site, "runner", "runner", 2)
    await site.ended_run("bob")
    assert len(await site.ledger(OLGA)) == 2
    await site.ended_run("olga")
    assert len(await site.ledger(OLGA)) == 3


async def test_targets_in_a_project_that_is_shared_no_more_are_told_nothing(site: NoticeSite) -> None:
    projects = PostgresProjects(PostgresSession(site.pool, QUERIES))
    author = Author("olga", site.clock.now())
    project_id: int = await site.pool.fetchval(
        """
        INSERT INTO projects (name, note, created_by, created_at, request_id, version)
        VALUES ('shared', '', 'olga', $1, $2, 1) RETURNING project_id
        """,
        site.clock.now(),
        uuid4(),
    )
    # As the form of the page says it each time.
    await projects.update(project_id, ProjectChanges(is_shared=False), author)
    await projects.update(project_id, ProjectChanges(is_shared=True), author)
    await projects.set_member(project_id, "ann", Role.RUNNER, author)
    await add_key(site, "operator", "operator", 1)
    for caller in (ANN, BOB, OLGA):
        reader = replace(caller, projects=((project_id, Role.VIEWER),))
        await site.target(URL, reader, scope=NoticeScope.PROJECT, project_id=project_id)

    async def told() -> list[int]:
        await site.ended_run("ann", project_id=project_id)
        return [len(await site.ledger(caller)) for caller in (ANN, BOB, OLGA)]

    assert await told() == [1, 1, 1]
    await projects.update(project_id, ProjectChanges(is_shared=False), author)
    assert await told() == [2, 1, 2]
    await projects.set_member(project_id, "ann", None, author)
    assert await told() == [2, 1, 3]


async def test_user_tries_targets_so_many_times_in_an_hour(
    site: NoticeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAX_TESTS", 3)
    targets = [await site.target(URL) for _ in range(2)]
    for target in (*targets, *targets[:1]):
        await site.change.test(target.target_id, ANN)
    with pytest.raises(TooManyTests, match="tried targets of notices 3 times in an hour"):
        await site.change.test(targets[1].target_id, ANN)
    assert len(await site.ledger()) == 3
    other = await site.target(URL, BOB)
    await site.change.test(other.target_id, BOB)
    site.clock.seconds += timedelta(hours=1).total_seconds()
    await site.change.test(targets[1].target_id, ANN)
