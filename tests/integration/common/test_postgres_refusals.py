"""A Postgres that answers and refuses is reported at once, in one sentence, without the password."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from services.common.errors import PostgresRefused
from services.common.migrations import migrate
from services.common.postgres import connect_pool
from tests.harness.servers import postgres_server


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    async with postgres_server() as server:
        yield server.address


@pytest.mark.parametrize(
    ("user", "database", "problem"),
    [("nobody:SECRET", "", '"nobody"'), ("", "nowhere", 'database "nowhere" does not exist')],
)
async def test_refused_connection_is_one_sentence(dsn: str, user: str, database: str, problem: str) -> None:
    parts = urlsplit(dsn)
    credentials, _, host = parts.netloc.rpartition("@")
    wrong = f"postgresql://{user or credentials}@{host}/{database or parts.path.strip('/')}"
    async with asyncio.timeout(10):
        with pytest.raises(PostgresRefused, match=problem) as of_migrate:
            await migrate(wrong, "any", Path())
        with pytest.raises(PostgresRefused, match=problem) as of_pool:
            await connect_pool(wrong, schema="any")
    assert of_migrate.value.message == of_pool.value.message
    assert of_pool.value.message.startswith(f"Postgres at {host} refuses the connection: ")
    assert "SECRET" not in of_pool.value.message
