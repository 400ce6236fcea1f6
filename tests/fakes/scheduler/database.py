"""The scheduler's tables in a Postgres of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from services.common.migrations import migrate
from services.common.postgres import connect_pool
from services.scheduler.postgres import MIGRATIONS, SCHEMA
from tests.harness.servers import postgres_server


@asynccontextmanager
async def scheduler_database(max_size: int = 8) -> AsyncIterator[asyncpg.Pool]:
    """With at most so many connections."""
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA, max_size=max_size) as pool:
            yield pool
