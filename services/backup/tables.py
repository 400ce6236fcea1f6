"""The tables of a schema: which there are, in the order of their references, and their rows by COPY."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import asyncpg
from zstandard import ZstdCompressor, ZstdDecompressor

from services.common.postgres import connect_once
from services.common.sql.queries import load_queries

QUERIES = load_queries(Path(__file__).parent / "queries.sql")
# Held in memory, and one request to a bucket.
PART_BYTES = 16 * 1024 * 1024
_LEVEL = 3
# A backup waits for nobody, and a server may end what idles or takes long.
_UNBOUNDED = (
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0"
)

StorePart = Callable[[bytes], Awaitable[None]]


async def connect(dsn: str, schema: str) -> asyncpg.Connection:
    """A connection that sees one schema, whose statements may take any time."""
    connection = await connect_once(dsn)
    await connection.execute(f"{_UNBOUNDED}; SET search_path = {quoted(schema)}")
    return connection


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


async def fetch(connection: asyncpg.Connection, query: str) -> list[asyncpg.Record]:
    return list(await connection.fetch(QUERIES[query].statement))


async def read_tables(connection: asyncpg.Connection) -> Mapping[str, list[str]]:
    """Table to columns; a table comes after those that it refers to."""
    columns = {row["table_name"]: list(row["columns"]) for row in await fetch(connection, "list_columns")}
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(columns, ()))
    for row in await fetch(connection, "list_references"):
        order.add(row["table_name"], row["refers_to"])
    return {table: columns[table] for table in order.static_order()}


async def read_rows(
    connection: asyncpg.Connection, table: str, columns: Iterable[str], store: StorePart
) -> int:
    """Calls `store` with each part of the compressed rows, in order. Returns the number of rows."""
    compressor, held = ZstdCompressor(level=_LEVEL).compressobj(), bytearray()

    async def add(rows: bytes) -> None:
        held.extend(compressor.compress(rows))
        if len(held) >= PART_BYTES:
            await store(bytes(held))
            held.clear()

    names = ", ".join(map(quoted, columns))
    done = await connection.copy_from_query(
        f"SELECT {names} FROM {quoted(table)}",  # noqa: S608  # names of the catalogue, quoted
        output=add,
        format="text",
    )
    held.extend(compressor.flush())
    await store(bytes(held))
    return int(done.split()[-1])


async def write_rows(
    connection: asyncpg.Connection, table: str, columns: Iterable[str], parts: AsyncIterator[bytes]
) -> int:
    """Adds the rows of the parts. Returns their number."""
    done = await connection.copy_to_table(
        table, source=_decompressed(parts), columns=list(columns), format="text"
    )
    return int(done.split()[-1])


async def _decompressed(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    decompressor = ZstdDecompressor().decompressobj()
    async for part in parts:
        for start in range(0, len(part), 1024 * 1024):
            yield decompressor.decompress(part[start : start + 1024 * 1024])


async def continue_numbers(connection: asyncpg.Connection) -> None:
    """Lets Postgres number on behind the rows that were added."""
    for row in await fetch(connection, "list_numbered_columns"):
        table, column = quoted(row["table_name"]), row["column_name"]
        await connection.execute(
            f"SELECT setval(pg_get_serial_sequence($1, $2), max({quoted(column)})) FROM {table}"  # noqa: S608  # names of the catalogue, quoted
            f" HAVING max({quoted(column)}) IS NOT NULL",
            table,
            column,
        )
