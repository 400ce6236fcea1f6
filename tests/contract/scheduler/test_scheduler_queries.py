"""Each query of the scheduler fits the migrated schema, and the hot ones find their rows by an index."""

import json
import re
from collections.abc import AsyncIterator, Mapping

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.scheduler.postgres import MIGRATIONS, QUERIES, SCHEMA
from tests.fakes.prepared_queries import executing, preparing
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "'00000000-0000-0000-0000-000000000001'"
GATE = {"run_id": RUN, "base_run_id": RUN, "margin_points": "1"}
FIRST, SECOND = "'2026-01-01'", "'2026-01-02'"

# Query to the literals it is asked with over the rows of `full_tables`.
HOT: Mapping[str, Mapping[str, str]] = {
    "read_run": {"run_id": RUN},
    "list_driven_runs": {"run_ids": f"'{{{RUN[1:-1]}}}'"},
    "list_runs_to_judge": {},
    "set_judges_ordered": {"run_id": RUN},
    "find_submitted_run": {"run_id": RUN, "request_id": "'00000000-0000-0000-0000-00000000ffff'"},
    "count_pending_and_paused_runs": {"username": "'ann'"},
    "list_queue_positions": {"run_ids": "NULL", "limit": "3"},
    "lock_slots": {},
    "delete_admissions": {"admitted_before": "'2026-06-01'"},
    "set_priority": {"run_id": RUN, "priority": "2"},
    "set_max_cost": {"run_id": RUN, "max_cost": "1"},
    "start_runs": {"run_ids": f"'{{{RUN[1:-1]}}}'", "admitted_at": "'2026-06-01'", "seconds": "60"},
    "preempt_runs": {"run_ids": f"'{{{RUN[1:-1]}}}'", "queued_at": "'2026-06-01'"},
    "list_open_runs": {"run_ids": f"'{{{RUN[1:-1]}}}'"},
    "pause_run": {"run_id": RUN, "states": "'{running}'", "queued_at": "'2026-06-01'"},
    "resume_run": {"run_id": RUN, "queued_at": "'2026-06-01'"},
    "count_request": {"username": "'ann'", "minute": "'2026-06-01'", "is_read": "false"},
    "list_running_runs": {},
    "list_pending_runs": {"run_ids": f"'{{{RUN[1:-1]}}}'"},
    "list_paused_runs": {"limit": "100"},
    "count_runs_by_user": {},
    "count_pending_and_running_runs": {},
    "list_pool_demands": {},
    "store_pool_demand": {
        "pool": "'gpu'",
        "workers": "1",
        "backlog_samples": "'{}'",
        "speeds": "'{}'",
        "load_seconds": "480",
        "computed_at": "'2026-06-01'",
    },
    "list_runs_to_drive": {},
    "list_past_runs": {"benchmarks": "'{glue,glue}'", "models": "'{openai/x,openai/y}'"},
    "list_planned_rows": {"benchmarks": "'{glue,ds_1}'"},
    "list_past_usage": {
        "benchmark": "'glue'",
        "model": "'openai/x'",
        "scoring_method": "'generate'",
        "token_settings": "'{}'",
    },
    "list_runs": {
        "state": "NULL",
        "benchmark": "NULL",
        "model": "NULL",
        "project_id": "NULL",
        "kind": "NULL",
        "dataset_id": "NULL",
        "first_id": "NULL",
        "last_id": "NULL",
        "name": "NULL",
        "tag": "NULL",
        "days": "NULL",
        "models": "NULL",
        "run_ids": "NULL",
        "before_created_at": "'2026-06-01'",
        "before_run_id": RUN,
        "limit": "20",
    },
    "list_planned_shards": {"run_id": RUN, "epoch": "1", "after_shard": "100", "limit": "64"},
    "list_dispatched_shards": {"run_id": RUN, "epoch": "1"},
    "read_next_shard": {"run_id": RUN},
    "move_shards": {
        "fencing_token": "1",
        "run_id": RUN,
        "epoch": "1",
        "done_shards": "'{1,2,3}'",
        "dispatched_shards": "'{4,5,6}'",
        "attempts": "'{1,1,1}'",
        "parallel_group": "'ann/1'",
        "parallel": "4",
    },
    "count_bounded_rollouts": {"parallel_group": "'ann/1'", "run_id": RUN},
    "list_expired_runs": {"now": "'2026-06-01'"},
    "lock_run_to_delete": {"run_id": RUN},
    "delete_run": {"run_id": RUN},
    "find_run_using_upload": {"upload_id": "'ds_1'"},
    "lock_dataset_to_delete": {"dataset_id": "'ds_1'"},
    "read_dataset": {"dataset_id": "'ds_1'"},
    "find_submitted_dataset": {"request_id": RUN},
    "list_datasets": {"before_uploaded_at": "'2026-06-01'", "before_dataset_id": "'ds_1'", "limit": "100"},
    "lock_dataset_content": {"dataset_id": "'ds_1'"},
    "add_dataset": {
        "dataset_id": "'ds_0'",
        "name": "'x'",
        "username": "'ann'",
        "uploaded_at": "'2026-06-01'",
        "digest": "'1'",
        "format": "'jsonl'",
        "project_id": "7",
        "request_id": RUN,
    },
    "delete_dataset": {"dataset_id": "'ds_1'"},
    "delete_unused_content": {"content_project_id": "0", "digest": "'1'", "format": "'jsonl'"},
    "add_file": {
        "file_id": "'file-0'",
        "name": "'x'",
        "username": "'ann'",
        "purpose": "'batch'",
        "size_bytes": "1",
        "created_at": "'2026-06-01'",
        "expires_at": "NULL",
        "prefix": "'p'",
        "digest": "'1'",
        "format": "'jsonl'",
        "faults": "'[]'",
        "fault_count": "0",
        "project_id": "7",
        "request_id": RUN,
    },
    "read_file": {"file_id": "'file-1'"},
    "find_submitted_file": {"request_id": RUN},
    "list_files": {
        "purpose": "NULL",
        "from_created_at": "'2026-06-01'",
        "from_file_id": "'file-1'",
        "limit": "100",
    },
    "list_oldest_files": {
        "purpose": "'batch'",
        "from_created_at": "'2026-01-01'",
        "from_file_id": "'file-1'",
        "limit": "100",
    },
    "lock_file_to_delete": {"file_id": "'file-1'"},
    "lock_input_file": {"file_id": "'file-1'"},
    "find_batch_using_file": {"file_id": "'file-1'"},
    "lock_content": {"content_project_id": "0", "digest": "'1'", "format": "'jsonl'"},
    "delete_file": {"file_id": "'file-1'"},
    "list_expired_files": {"now": "'2026-06-01'", "limit": "100", "offset": "0"},
    "add_batch": {
        "batch_id": "'batch_0'",
        "username": "'ann'",
        "input_file_id": "'file-1'",
        "endpoint": "'/'",
        "completion_window": "'24h'",
        "metadata": "'{}'",
        "created_at": "'2026-06-01'",
        "total": "1",
        "run_id": "NULL",
        "errors": "'[]'",
        "output_expires_after_seconds": "NULL",
        "request_id": RUN,
        "project_id": "0",
    },
    "read_batch": {"batch_id": "'batch_1'"},
    "find_submitted_batch": {"request_id": RUN},
    "list_batches": {"before_created_at": "'2026-06-01'", "before_batch_id": "'batch_1'", "limit": "20"},
    "list_batches_to_finalize": {"left_out": "'{batch_1}'", "limit": "2"},
    "finalize_batch": {
        "batch_id": "'batch_1'",
        "finalized_at": "'2026-06-01'",
        "output_file_id": "NULL",
        "error_file_id": "NULL",
    },
    "find_batch_of_run": {"run_id": RUN},
    "add_rollouts_order": {
        "order_id": RUN,
        "username": "'ann'",
        "project_id": "1",
        "suite": "'mine'",
        "suite_version": "1",
        "agent": "'{}'",
        "rollouts": "1",
        "task_ids": "'{one}'",
        "models": "'{x}'",
        "run_ids": f"'{{{RUN[1:-1]}}}'",
        "created_at": "'2026-06-01'",
    },
    "read_rollouts_order": {"order_id": RUN},
    "read_order_of_run": {"run_id": RUN},
    "list_rollouts_orders": {
        "suite": "NULL",
        "suite_version": "NULL",
        "model": "NULL",
        "project_id": "NULL",
        "state": "NULL",
        "before_created_at": "'2026-06-01'",
        "before_order_id": RUN,
        "limit": "20",
    },
    "list_runs_of_orders": {"run_ids": f"'{{{RUN[1:-1]}}}'"},
    "add_notices": {
        "event_key": "'run 1 1 ended completed'",
        "kinds": "'{run_failed,run_ended}'",
        "username": "'ann'",
        "project_id": "1",
        "text": "'It has ended.'",
        "facts": "'{}'",
        "created_at": "'2026-01-02'",
    },
    "list_notices": {
        "username": "'ann'",
        "target_id": "NULL",
        "before_notice_number": "NULL",
        "limit": "101",
    },
    "claim_notices": {"now": "'2026-01-02'", "claimed_until": "'2026-01-02'", "max_attempts": "20"},
    "settle_notice": {
        "notice_id": RUN,
        "attempts": "1",
        "problem": "''",
        "next_try_at": "NULL",
        "delivered_at": "'2026-01-02'",
    },
    "find_schedule": {"schedule_id": RUN},
    "list_schedules": {
        "before_schedule_number": "NULL",
        "username": "''",
        "project_id": "NULL",
        "limit": "101",
    },
    "list_firings": {"schedule_id": RUN, "limit": "100"},
    "list_due_schedules": {"now": SECOND, "tried_before": FIRST},
    "advance_schedule": {"schedule_id": RUN, "next_due_before": FIRST, "next_due_at": SECOND},
    "find_firing": {"schedule_id": RUN, "due_at": SECOND},
    "list_gated_firings": {},
    "list_gated_runs": {},
    "find_gated_run": {"run_id": RUN},
    "keep_told_gate": GATE | {"alpha": "1", "verdict": "'fail'", "gate_text": "'x'", "max_gates": "9"},
    "has_gate": GATE,
    "settle_run_gate": {**GATE, "verdict": "'pass'", "gate_text": "''"},
    "settle_gate": {
        "schedule_id": RUN,
        "due_at": "'2026-01-02'",
        "verdict": "'pass'",
        "base_run_id": "NULL",
        "gate_text": "''",
    },
    "delete_old_firings": {"schedule_id": RUN, "kept": "1000"},
    "return_shards": {"run_id": RUN, "epoch": "1", "shards": "'{1,2}'", "samples": '\'{"{1}","{2}"}\''},
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
NOTICES = """
INSERT INTO projects (name, note, created_by, created_at, version)
VALUES ('one', '', 'olga', '2026-01-01', 1);
INSERT INTO project_members (project_id, username, role, changed_by, changed_at, version)
SELECT project_id, 'user' || number, 'runner', 'olga', '2026-01-01', number
  FROM projects, generate_series(1, 20000) AS number;
INSERT INTO notice_targets (target_id, username, channel, address, events, scope, project_id, created_at)
SELECT lpad(to_hex(number), 32, '0')::uuid, 'ann', 'slack', 'https://example.org', '{run_ended}', 'own', 0,
       '2026-01-01'
  FROM generate_series(1, 20) AS number;
INSERT INTO notices (notice_id, target_id, event_key, event, text, facts, created_at, next_try_at)
SELECT lpad(to_hex(number), 32, '0')::uuid, lpad(to_hex(1 + number % 20), 32, '0')::uuid, number, 'run_ended',
       'It has ended.', '{}', '2026-01-01', CASE WHEN number % 100 = 0 THEN timestamptz '2026-01-01' END
  FROM generate_series(1, 20000) AS number;
"""
SCHEDULES = """
INSERT INTO schedules (schedule_id, username, project_id, cron, time_zone, ordered, name, tags, note,
                       created_at, next_due_at)
SELECT lpad(to_hex(number), 32, '0')::uuid, 'user' || number % 500, 1, '0 3 * * *', 'UTC', '{}', 'nightly',
       '{}', '', '2026-01-01', timestamptz '2026-01-01' + number * interval '1 minute'
  FROM generate_series(1, 20000) AS number;
INSERT INTO schedule_firings (schedule_id, due_at, fired_at, run_ids)
SELECT schedule_id, timestamptz '2026-01-01' + day * interval '1 day', '2026-01-01', '{}'
  FROM schedules, generate_series(1, 3) AS day;
"""
GATES = f"""INSERT INTO run_gates (run_id, base_run_id, margin_points, alpha, gate_text)
    SELECT run_id, run_id, 0, 0.05, 'Not worse.' FROM runs WHERE run_id <> {RUN};"""
SMALL_TABLES = {"notice_targets", "leadership", "limits", "pool_demands", "user_admissions"}


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
    await connection.execute(ORDERS + SCHEDULES + NOTICES)
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
        SELECT run_id, 0, 'say', '1', '1', 0, 1, 'generate_until', 0, false, 'x', '1' FROM runs; {GATES}
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
    query = QUERIES[name]
    statement = await connection.prepare(query.statement)
    assert len(statement.get_parameters()) == len(query.parameters)


@pytest.mark.parametrize("name", HOT)
async def test_hot_query_reads_no_table_as_a_whole(full_tables: asyncpg.Connection, name: str) -> None:
    await full_tables.execute("SET plan_cache_mode = force_generic_plan")
    query = QUERIES[name]
    await full_tables.execute(preparing(f"hot_{name}", query))
    plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) {executing(f'hot_{name}', query, HOT[name])}")
    scanned = set(re.findall(r'"Node Type": "Seq Scan".*?"Relation Name": "(\w+)"', plan, flags=re.DOTALL))
    assert scanned <= SMALL_TABLES, json.loads(plan)


@pytest.mark.parametrize(
    "filters",
    [
        {"state": "'running'"},
        {"benchmark": "'none'"},
        {"model": "'none'"},
        {"project_id": "9"},
        {"kind": "'dataset'"},
        {"kind": "'suite'"},
        {"dataset_id": "'ds_9'"},
        {"first_id": RUN, "last_id": RUN},
    ],
)
async def test_list_reads_only_rows_that_match(
    full_tables: asyncpg.Connection, filters: Mapping[str, str]
) -> None:
    """Where few runs match, a page costs as much as these few, however many others there are."""
    async with full_tables.transaction():
        await full_tables.execute(QUERIES["plan_by_values"].statement)
        await full_tables.execute(preparing("some_runs", QUERIES["list_runs"]))
        values = {**HOT["list_runs"], **filters, "before_created_at": "'9999-01-01'"}
        executed = executing("some_runs", QUERIES["list_runs"], values)
        plan = await full_tables.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {executed}")
        await full_tables.execute("DEALLOCATE some_runs")
    assert set(re.findall(r'"Rows Removed by Filter": (\d+)', plan)) <= {"0"}, json.loads(plan)
    assert re.search("runs_newest_of_|runs_pkey", plan)
