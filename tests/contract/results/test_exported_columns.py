"""The list of exported columns agrees with the view that has their values."""

import re
from collections.abc import AsyncIterator, Mapping

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.results.export.exported_columns import EXPORTED_COLUMNS, SQL_PARTS, ColumnType
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Columns of the view of exports that choose and bound the rows, and what only files of batches show.
UNEXPORTED = {"run_id", "sample", "epoch", "recorded_at", "is_answered", "is_chat", "bytes"}
POSTGRES_TYPES: Mapping[ColumnType, tuple[str, ...]] = {
    ColumnType.TEXT: ("text",),
    ColumnType.TEXTS: ("text[]",),
    ColumnType.COUNT: ("bigint", "integer"),
    ColumnType.NUMBER: ("double precision",),
    ColumnType.FLAG: ("boolean",),
    ColumnType.OBJECT: ("json",),
    ColumnType.LOGPROBS: ("jsonb",),
    ColumnType.SCORES: ("jsonb",),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection() -> AsyncIterator[asyncpg.Connection]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        connection = await asyncpg.connect(server.address, server_settings={"search_path": SCHEMA})
        yield connection
        await connection.close()


async def test_the_view_of_exports_has_each_exported_column_in_its_type(
    connection: asyncpg.Connection,
) -> None:
    found = await connection.fetch(
        "SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
        " WHERE attrelid = 'outcome_records'::regclass AND attnum > 0"
    )
    types = {row["name"]: row["type"] for row in found}
    wrong = {
        column.name: types.get(column.name)
        for column in EXPORTED_COLUMNS
        if types.get(column.name) not in POSTGRES_TYPES[column.type]
    }
    assert wrong == {}
    assert types.keys() - {column.name for column in EXPORTED_COLUMNS} == UNEXPORTED


async def test_exported_lines_and_columns_are_those_of_the_list(connection: asyncpg.Connection) -> None:
    names = [column.name for column in EXPORTED_COLUMNS]
    columns = await connection.prepare(QUERIES["export_columns"].statement)
    assert [one.name for one in columns.get_attributes()] == ["sample", "size_bytes", *names]
    nulls = [f"NULL::{POSTGRES_TYPES[column.type][0]} AS {column.name}" for column in EXPORTED_COLUMNS]
    line = await connection.fetchval(f"SELECT {SQL_PARTS['exported_line']} FROM (SELECT {', '.join(nulls)})")
    assert re.findall(r'"(\w+)":', line) == names
