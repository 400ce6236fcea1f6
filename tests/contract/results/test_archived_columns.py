"""Files of archives have each column of the table, and queries of archives read that table."""

import re
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.results.archives.parquet_outcomes import LONG, SCHEMA
from services.results.archives.postgres_reads import SELECTS, TABLE
from services.results.postgres import MIGRATIONS, QUERIES
from services.results.postgres import SCHEMA as SCHEMA_NAME
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection() -> AsyncIterator[asyncpg.Connection]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA_NAME, MIGRATIONS)
        opened = await asyncpg.connect(server.address, server_settings={"search_path": SCHEMA_NAME})
        yield opened
        await opened.close()


async def test_a_file_has_the_columns_of_the_table_in_their_order(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch(
        "SELECT attname, attnotnull FROM pg_attribute "
        "WHERE attrelid = 'outcomes'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    table = [(row["attname"], row["attnotnull"]) for row in rows]
    assert table == [("run_id", True), *((field.name, not field.nullable) for field in SCHEMA)]
    assert set(LONG) <= set(SCHEMA.names)


async def test_queries_of_archives_read_the_table_of_the_run_that_they_name() -> None:
    for name in SELECTS:
        assert TABLE.search(QUERIES[name].statement), name
        # With a recursive query the name within its own definition would not be that of the table.
        assert not re.search(r"\bRECURSIVE\b", QUERIES[name].statement), name
