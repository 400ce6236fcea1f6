"""The roles that the image of Postgres makes for Compose and the chart's trial: projects hold for them."""

import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.stack.compose_secrets import write_secrets
from proctor.stack.servers.postgres_home import find_postgres_home
from proctor.values.names.user import Caller
from services.common.clock import SystemClock
from services.common.errors import RowsNotGuarded
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.postgres import MIGRATIONS as RESULTS_MIGRATIONS
from services.scheduler.postgres import MIGRATIONS, QUERIES
from services.scheduler.projects.manage_projects import ManageProjects
from services.scheduler.projects.postgres import PostgresProjects
from tests.harness.servers import RunningServer, postgres_server

ROOT = Path(__file__).parents[3]
ROLES = ROOT / "deploy" / "helm" / "proctor" / "files" / "postgres-roles.sql"
SERVICES = ("scheduler", "results")
OPERATOR = Caller("operator")


@pytest_asyncio.fixture
async def postgres() -> AsyncIterator[RunningServer]:
    """As the image has it before its scripts: a superuser and an empty database of the same name."""
    async with postgres_server() as running:
        connection = await asyncpg.connect(running.address)
        for service in SERVICES:
            await connection.execute(f"DROP OWNED BY proctor_{service} CASCADE; DROP ROLE proctor_{service}")
        await connection.close()
        yield running


@pytest.fixture
def dsns(postgres: RunningServer, tmp_path: Path) -> Mapping[str, str]:
    """What Compose gives to services, after the script ran as the image runs it."""
    write_secrets(tmp_path, [])
    script = tmp_path / "roles.sql"
    script.write_text(ROLES.read_text().replace("/secrets/", f"{tmp_path}/postgres/"))
    server = urlsplit(postgres.address)
    psql = find_postgres_home(tmp_path).programs / "psql"
    subprocess.run(
        (
            *(psql, "-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc"),
            *("-h", str(server.hostname), "-p", str(server.port), "-U", "proctor", "-d", "proctor"),
            *("-f", script),
        ),
        env={"PATH": os.defpath, "PGPASSWORD": str(server.password)},
        check=True,
        timeout=60,
    )
    made = {service: (tmp_path / service / "env").read_text() for service in SERVICES}
    found = {
        service: next(line for line in text.splitlines() if "POSTGRES_DSN" in line).partition("=")[2]
        for service, text in made.items()
    }
    return {
        service: dsn.replace("@postgres:5432", f"@{server.hostname}:{server.port}")
        for service, dsn in found.items()
    }


async def test_a_service_owns_its_schema_and_sees_no_other(dsns: Mapping[str, str]) -> None:
    await migrate(dsns["scheduler"], "scheduler", MIGRATIONS)
    await migrate(dsns["results"], "results", RESULTS_MIGRATIONS)
    connection = await asyncpg.connect(dsns["results"])
    try:
        role = await connection.fetchrow(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles"
            " WHERE rolname = current_user"
        )
        assert role
        assert tuple(role) == ("proctor_results", False, False, False, False)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT * FROM scheduler.runs")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("CREATE TABLE public.any (id int)")
    finally:
        await connection.close()


async def test_projects_are_declared_with_the_role_and_not_with_the_image_s_user(
    dsns: Mapping[str, str], postgres: RunningServer
) -> None:
    await migrate(dsns["scheduler"], "scheduler", MIGRATIONS)

    async def declare(dsn: str, name: str) -> str:
        pool = await connect_pool(dsn, schema="scheduler", max_size=1)
        try:
            projects = PostgresProjects(PostgresSession(pool, QUERIES))
            manage = ManageProjects(projects=projects, clock=SystemClock())
            return (await manage.create(name, "", OPERATOR, str(uuid4()))).name
        finally:
            await pool.close()

    with pytest.raises(RowsNotGuarded) as refused:
        await declare(postgres.address, "vision")
    assert refused.value.facts == {"role": "proctor"}
    assert await declare(dsns["scheduler"], "vision") == "vision"
