"""Each query of results fits the migrated schema, and the hot ones find their rows by an index."""

import json
import re
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from services.common.postgres import migrate
from services.results.postgres_session import MIGRATIONS, QUERIES, SCHEMA
from tests.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "'00000000-0000-0000-0000-000000000001'"
SET = "'00000000-0000-0000-0000-000000000002'"

POSITIONS = "'{" + ",".join(str(position) for position in range(500, 564)) + "}'"

# Query to the arguments it is asked with over the rows of `full_tables`.
HOT = {
    "read_targets": f"{SET}, {POSITIONS}",
    "weigh_samples": f"{SET}, {POSITIONS}",
    "read_samples": f"{SET}, {POSITIONS}",
    "list_missing": f"{RUN}, 1, 0, 5000, 6000",
    "list_outcomes": f"{RUN}, 5000, 0, 20000, 100",
    "list_outcomes_of_status": f"{RUN}, 5000, 0, 20000, 100, 3",
    "read_scores": f"{RUN}, 5000, 6000",
    "read_shard_counts": f"ARRAY[{RUN}]::uuid[], ARRAY[7]",
    "read_task_counts": f"ARRAY[{RUN}]::uuid[]",
    "read_all_shard_counts": RUN,
}
SMALL_TABLES = {"run_tasks", "sample_sets", "run_records", "run_environments"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection() -> AsyncIterator[asyncpg.Connection]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        connection = await asyncpg.connect(server.address, server_settings={"search_path": SCHEMA})
        yield connection
        await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full_tables(connection: asyncpg.Connection) -> asyncpg.Connection:
    """Five runs of 20,000 samples."""
    await connection.execute(
        f"""
        INSERT INTO outcomes
        SELECT ('00000000-0000-0000-0000-00000000000' || run)::uuid, sample, 0, 0, sample / 64, 1, 1,
            CASE WHEN sample % 100 = 0 THEN 3 ELSE 1 END, CASE WHEN sample % 100 = 0 THEN 2 ELSE 0 END,
            '', 'text', 'stop', '[]', '', '{{"acc": 1.0}}', 1, 1, 0, 0, 0.1, NULL, NULL
        FROM generate_series(1, 5) AS run, generate_series(0, 19999) AS sample;
        INSERT INTO samples
        SELECT ('00000000-0000-0000-0000-00000000000' || s)::uuid, position, position, sha256('x'), 'prompt',
            NULL, '{{}}', NULL, '{{}}', ''
        FROM generate_series(1, 3) AS s, generate_series(0, 9999) AS position;
        INSERT INTO shard_counts
        SELECT ('00000000-0000-0000-0000-00000000000' || run)::uuid, shard, 64
        FROM generate_series(1, 5) AS run, generate_series(0, 3000) AS shard;
        INSERT INTO task_counts
        SELECT gen_random_uuid(), 0, class, 1, 0
        FROM generate_series(1, 2000) AS run, generate_series(0, 2) AS class;
        INSERT INTO sample_sets (set_id, digest) VALUES ({SET}, 'd');
        INSERT INTO run_records VALUES ({RUN}, 1, false, 1, 1, false);
        INSERT INTO run_tasks VALUES ({RUN}, 0, 't', {SET}, 0, 20000, '{{}}', '{{}}');
        ANALYZE;
        """
    )
    return connection


@pytest.mark.parametrize("name", QUERIES)
async def test_query_fits_the_schema(connection: asyncpg.Connection, name: str) -> None:
    statement = await connection.prepare(QUERIES[name])
    highest = max((int(number) for number in re.findall(r"\$(\d+)", QUERIES[name])), default=0)
    assert len(statement.get_parameters()) == highest


@pytest.mark.parametrize("name", HOT)
async def test_hot_query_reads_no_table_as_a_whole(full_tables: asyncpg.Connection, name: str) -> None:
    await full_tables.execute("SET plan_cache_mode = force_generic_plan")
    await full_tables.execute(f"PREPARE hot_{name} AS {QUERIES[name]}")
    plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE hot_{name} ({HOT[name]})")
    scanned = set(re.findall(r'"Node Type": "Seq Scan".*?"Relation Name": "(\w+)"', plan, flags=re.DOTALL))
    assert scanned <= SMALL_TABLES, json.loads(plan)


async def test_conflicts_are_found_by_the_key_of_an_outcome(full_tables: asyncpg.Connection) -> None:
    arbiters = await full_tables.fetchval(
        "SELECT array_agg(a.attname ORDER BY k.place)"
        " FROM pg_index AS i"
        " CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)"
        " JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
        " WHERE i.indrelid = 'outcomes'::regclass AND i.indisunique"
    )
    assert arbiters == ["run_id", "sample", "rollout"]
