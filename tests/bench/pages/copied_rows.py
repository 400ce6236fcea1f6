"""Rows of a service put into its tables by SQL: copies of those of a run, with some columns changed."""

from collections.abc import Mapping

import asyncpg

from tests.harness.stack_harness import StackHarness

FILL_SECONDS = 900.0


async def connected(stack: StackHarness, schema: str) -> asyncpg.Connection:
    return await asyncpg.connect(stack.stack.postgres_dsn, server_settings={"search_path": schema})


async def stored_columns(connection: asyncpg.Connection, schema: str, table: str) -> list[str]:
    """Without those that Postgres generates, which take no value."""
    rows = await connection.fetch(
        """
        SELECT column_name FROM information_schema.columns
        WHERE table_schema = $1 AND table_name = $2 AND is_generated = 'NEVER'
        """,
        schema,
        table,
    )
    return [row["column_name"] for row in rows]


async def copy_of(
    connection: asyncpg.Connection,
    schema: str,
    table: str,
    changes: Mapping[str, str],
    source: tuple[str, str],
) -> str:
    """The statement that copies the rows of a run, `t`. `changes`: SQL by column.

    `source`: the run, and what is joined, a copy for each of its rows.
    """
    run_id, joined = source
    columns = await stored_columns(connection, schema, table)
    values = ", ".join(changes.get(column, f't."{column}"') for column in columns)
    named = ", ".join(f'"{column}"' for column in columns)
    copied = f"SELECT {values} FROM {table} AS t, {joined} WHERE t.run_id = '{run_id}'"
    return f"INSERT INTO {table} ({named}) {copied}"
