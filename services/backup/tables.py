"""The tables of a schema: which there are, in the order of their references, and their rows by COPY."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from graphlib import TopologicalSorter
from pathlib import Path

import asyncpg
from zstandard import ZstdCompressor, ZstdDecompressor

from services.common.postgres import connect_once
from services.common.sql.queries import load_queries
from services.common.sql.row_scope import ALL_ROWS, READABLE, WRITABLE

QUERIES = load_queries(Path(__file__).parent / "queries.sql")
# Held in memory, and one request to a bucket.
PART_BYTES = 16 * 1024 * 1024
_LEVEL = 3
# Decompressed at a time: repeated text shrinks to a thousandth, so a few KiB may be many MiB.
_SLICE_BYTES = 8 * 1024
_COPIED_BYTES = 256 * 1024
_SESSION = {
    # A backup waits for nobody, and a server may end what idles or takes long.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    # As text is read alike by every server, whatever a database or a role has by default.
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    # Else the policies would leave out what is in declared projects (decision 0066).
    READABLE: ALL_ROWS.readable,
    WRITABLE: ALL_ROWS.writable,
}

StorePart = Callable[[bytes], Awaitable[None]]


async def connect(dsn: str, schema: str) -> asyncpg.Connection:
    """A connection that sees all rows of one schema, and whose statements may take any time."""
    connection = await connect_once(dsn)
    settings = {**_SESSION, "search_path": quoted(schema)}
    await connection.executemany("SELECT set_config($1, $2, false)", list(settings.items()))
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
    decompressor, held = ZstdDecompressor().decompressobj(), bytearray()
    async for part in parts:
        for start in range(0, len(part), _SLICE_BYTES):
            held.extend(decompressor.decompress(part[start : start + _SLICE_BYTES]))
            if len(held) >= _COPIED_BYTES:
                yield bytes(held)
                held.clear()
    yield bytes(held)


@asynccontextmanager
async def unguarded(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """Within a transaction: COPY adds no rows to a table whose policies hold for its owner too."""
    guarded = [quoted(row["table_name"]) for row in await fetch(connection, "list_guarded_tables")]
    for table in guarded:
        await connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    yield
    for table in guarded:
        await connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


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
