"""Each query of the scheduler fits the migrated schema, and the hot ones find their rows by an index."""

import json
import re
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.common.postgres import load_queries
from services.scheduler.postgres import MIGRATIONS, SCHEMA
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = sorted(MIGRATIONS.parent.rglob("queries.sql"))
QUERIES = {name: statement for file in FILES for name, statement in load_queries(file).items()}
HEADERS = [
    line for file in FILES for line in file.read_text(encoding="utf-8").splitlines() if "-- name:" in line
]
RUN = "'00000000-0000-0000-0000-000000000001'"

# Query to the arguments it is asked with over the rows of `full_tables`.
HOT = {
    "read_run": RUN,
    "find_submitted_run": f"{RUN}, '00000000-0000-0000-0000-00000000ffff'",
    "count_pending_and_paused_runs": "'ann'",
    "list_queue_positions": "NULL, 3",
    "lock_slots": "",
    "delete_admissions": "'2026-06-01'",
    "set_priority": f"{RUN}, 2",
    "start_runs": f"'{{{RUN[1:-1]}}}', '2026-06-01', 60",
    "preempt_runs": f"'{{{RUN[1:-1]}}}', '2026-06-01'",
    "list_open_runs": f"'{{{RUN[1:-1]}}}'",
    "pause_run": f"{RUN}, '{{running}}', '2026-06-01'",
    "resume_run": f"{RUN}, '2026-06-01'",
    "count_request": "'ann', '2026-06-01', false",
    "list_running_runs": "",
    "list_pending_runs": f"'{{{RUN[1:-1]}}}'",
    "list_paused_runs": "100",
    "count_runs_by_user": "",
    "count_pending_and_running_runs": "",
    "list_pool_demands": "",
    "store_pool_demand": "'gpu', 1, '{}', '{}', 480, '2026-06-01'",
    "list_runs_to_drive": "",
    "list_past_runs": "'{glue,glue}', '{openai/x,openai/y}'",
    "list_planned_rows": "'{glue,ds_1}'",
    "list_past_usage": "'glue', 'openai/x', 'generate', '{}'",
    "list_runs": "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-06-01', " + RUN + ", 20",
    "list_planned_shards": f"{RUN}, 1, 100, 64",
    "list_dispatched_shards": f"{RUN}, 1",
    "read_next_shard": RUN,
    "move_shards": f"1, {RUN}, 1, '{{1,2,3}}', '{{4,5,6}}', '{{1,1,1}}'",
    "list_expired_runs": "'2026-06-01'",
    "lock_run_to_delete": RUN,
    "delete_run": RUN,
    "find_run_using_upload": "'ds_1'",
    "lock_dataset_to_delete": "'ds_1'",
    "read_dataset": "'ds_1'",
    "find_submitted_dataset": RUN,
    "list_datasets": "'2026-06-01', 'ds_1', 100",
    "lock_dataset_content": "'ds_1'",
    "add_dataset": f"'ds_0', 'x', 'ann', '2026-06-01', '1', 'jsonl', 7, {RUN}",
    "delete_dataset": "'ds_1'",
    "delete_unused_content": "'1', 'jsonl'",
    "add_file": f"'file-0', 'x', 'ann', 'batch', 1, '2026-06-01', NULL, 'p', '1', 'jsonl', '[]', 0, 7, {RUN}",
    "read_file": "'file-1'",
    "find_submitted_file": RUN,
    "list_files": "NULL, '2026-06-01', 'file-1', 100",
    "list_oldest_files": "'batch', '2026-01-01', 'file-1', 100",
    "lock_file_to_delete": "'file-1'",
    "lock_input_file": "'file-1'",
    "find_batch_using_file": "'file-1'",
    "lock_content": "'1', 'jsonl'",
    "delete_file": "'file-1'",
    "list_expired_files": "'2026-06-01', 100, 0",
    "add_batch": f"'batch_0', 'ann', 'file-1', '/', '24h', '{{}}', '2026-06-01', 1, NULL, '[]', NULL, {RUN}",
    "read_batch": "'batch_1'",
    "find_submitted_batch": RUN,
    "list_batches": "'2026-06-01', 'batch_1', 20",
    "list_batches_to_finalize": "'{batch_1}', 2",
    "finalize_batch": "'batch_1', '2026-06-01', NULL, NULL",
    "find_batch_of_run": RUN,
    "add_rollouts_order": (
        f"{RUN}, 'ann', 1, 'mine', 1, '{{}}', 1, '{{one}}', '{{x}}', '{{{RUN[1:-1]}}}', '2026-06-01'"
    ),
    "read_rollouts_order": RUN,
    "read_order_of_run": RUN,
    "list_rollouts_orders": f"NULL, NULL, NULL, NULL, NULL, '2026-06-01', {RUN}, 20",
    "list_runs_of_orders": f"'{{{RUN[1:-1]}}}'",
    "return_shards": f"{RUN}, 1, '{{1,2}}', '{{\"{{1}}\",\"{{2}}\"}}'",
}
ORDERS = """
INSERT INTO user_suites (suite, last_version) VALUES ('mine', 1);
INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at)
VALUES ('mine', 1, '1', '', 'mine.yaml', 'ann', '2026-01-01');
INSERT INTO rollouts_orders (order_id, username, project_id, suite, suite_version, agent, rollouts,
                             task_ids, models, run_ids, created_at)
SELECT lpad(to_hex(number), 32, '0')::uuid, 'ann', 1, 'mine', 1, '{}', 1, '{one}', '{x}',
       ARRAY[lpad(to_hex(number), 32, '0')::uuid],
       timestamptz '2026-01-01' + number * interval '1 minute'
  FROM generate_series(1, 20000) AS number;
"""
SMALL_TABLES = {"leadership", "limits", "pool_demands", "user_admissions"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connection() -> AsyncIterator[asyncpg.Connection]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        connection = await asyncpg.connect(server.address, server_settings={"search_path": SCHEMA})
        yield connection
        await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full_tables(connection: asyncpg.Connection) -> asyncpg.Connection:
    """20,000 runs, nearly all completed; one has 20,000 shards. And as many data sets, files, batches and
    orders of rollouts."""
    await connection.execute(ORDERS)
    await connection.execute(
        f"""
        INSERT INTO runs (run_id, username, project_id, benchmark, model, pool, priority, ordered,
                          scoring_method, state, epoch, is_closed, created_at, queued_at, finished_at,
                          environment)
        SELECT lpad(to_hex(run), 32, '0')::uuid, 'user' || run % 50, 1, 'suite' || run % 50,
               'model' || run % 50, 'remote', 1, '{{}}', 'generate',
               CASE WHEN run < 4 THEN 'running' WHEN run < 100 THEN 'pending' ELSE 'completed' END, 1,
               run >= 100, timestamptz '2026-01-01' + run * interval '10 minutes', '2026-01-01', '2026-01-02',
               '{{}}'
          FROM generate_series(1, 20000) AS run;
        INSERT INTO run_tasks (run_id, task_index, task, version, sample_set_id, first_sample, sample_count,
                               output_type, num_fewshot, is_stand_in, row_source, row_source_revision)
        SELECT run_id, 0, 'say', '1', '1', 0, 1, 'generate_until', 0, false, 'x', '1' FROM runs;
        INSERT INTO shards (run_id, shard, epoch, task_index, rollout, samples, size, state)
        SELECT {RUN}, shard, 1, 0, 0, '{{1,2}}', 2,
               CASE WHEN shard < 10000 THEN 'done' WHEN shard < 10100 THEN 'dispatched' ELSE 'planned' END
          FROM generate_series(0, 19999) AS shard;
        INSERT INTO dataset_contents (digest, format, prefix, size_bytes, row_count, target_count, models,
                                      endpoint, stored_bytes)
        SELECT content, 'jsonl', 'datasets/ds_' || content, 1, 1, 0, '{{}}', '', 1
          FROM generate_series(1, 5000) AS content;
        INSERT INTO datasets (dataset_id, name, username, uploaded_at, digest, format)
        SELECT 'ds_' || number, 'x', 'ann', timestamptz '2026-01-01' + number * interval '1 minute',
               1 + number % 5000, 'jsonl'
          FROM generate_series(1, 20000) AS number;
        INSERT INTO files (file_id, name, username, purpose, size_bytes, created_at, expires_at, prefix,
                           digest, format)
        SELECT 'file-' || number, 'x', 'ann',
               CASE WHEN number % 2 = 0 THEN 'batch' ELSE 'batch_output' END, 1,
               timestamptz '2026-01-01' + number * interval '1 minute',
               CASE WHEN number % 100 = 0 THEN timestamptz '2026-12-01' END, 'files/file-' || number,
               CASE WHEN number % 2 = 0 THEN 1 + number % 5000 END, CASE WHEN number % 2 = 0 THEN 'jsonl' END
          FROM generate_series(1, 20000) AS number;
        INSERT INTO batches (batch_id, username, input_file_id, endpoint, completion_window, metadata,
                             created_at, total, run_id, finalized_at)
        SELECT 'batch_' || number, 'ann', 'file-' || number, '/v1', '24h', '{{}}',
               timestamptz '2026-01-01' + number * interval '1 minute', 1,
               lpad(to_hex(number), 32, '0')::uuid,
               CASE WHEN number > 10 THEN timestamptz '2026-06-01' END
          FROM generate_series(1, 20000) AS number;
        ANALYZE;
        """
    )
    return connection


@pytest.mark.parametrize("name", QUERIES)
async def test_query_fits_the_schema(connection: asyncpg.Connection, name: str) -> None:
    statement = await connection.prepare(QUERIES[name])
    highest = max((int(number) for number in re.findall(r"\$(\d+)", QUERIES[name])), default=0)
    assert len(statement.get_parameters()) == highest


@pytest.mark.parametrize("name", QUERIES)
async def test_query_says_what_it_is_for_and_what_it_takes(name: str) -> None:
    [line] = [line for line in HEADERS if re.match(rf"-- name: {name}\b", line)]
    described = {int(number) for number in re.findall(r"\$(\d+)", line)}
    assert described == {int(number) for number in re.findall(r"\$(\d+)", QUERIES[name])}


@pytest.mark.parametrize("name", HOT)
async def test_hot_query_reads_no_table_as_a_whole(full_tables: asyncpg.Connection, name: str) -> None:
    await full_tables.execute("SET plan_cache_mode = force_generic_plan")
    await full_tables.execute(f"PREPARE hot_{name} AS {QUERIES[name]}")
    arguments = f" ({HOT[name]})" if HOT[name] else ""
    plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE hot_{name}{arguments}")
    scanned = set(re.findall(r'"Node Type": "Seq Scan".*?"Relation Name": "(\w+)"', plan, flags=re.DOTALL))
    assert scanned <= SMALL_TABLES, json.loads(plan)


@pytest.mark.parametrize(
    "filters",
    [
        "'running', NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        "NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL",
        "NULL, NULL, 'none', NULL, NULL, NULL, NULL, NULL",
        "NULL, NULL, NULL, 9, NULL, NULL, NULL, NULL",
        "NULL, NULL, NULL, NULL, 'dataset', NULL, NULL, NULL",
        "NULL, NULL, NULL, NULL, 'suite', NULL, NULL, NULL",
        "NULL, NULL, NULL, NULL, NULL, 'ds_9', NULL, NULL",
        f"NULL, NULL, NULL, NULL, NULL, NULL, {RUN}, {RUN}",
    ],
)
async def test_list_reads_only_rows_that_match(full_tables: asyncpg.Connection, filters: str) -> None:
    """Where few runs match, a page costs as much as these few, however many others there are."""
    async with full_tables.transaction():
        await full_tables.execute(QUERIES["plan_by_values"])
        await full_tables.execute(f"PREPARE some_runs AS {QUERIES['list_runs']}")
        arguments = f"{filters}, '9999-01-01', {RUN}, 20"
        plan = await full_tables.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE some_runs ({arguments})")
        await full_tables.execute("DEALLOCATE some_runs")
    assert set(re.findall(r'"Rows Removed by Filter": (\d+)', plan)) <= {"0"}, json.loads(plan)
    assert re.search("runs_newest_of_|runs_pkey", plan)


async def test_no_two_topics_have_queries_of_one_name() -> None:
    assert len(HEADERS) == len(QUERIES)
