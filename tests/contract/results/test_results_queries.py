"""Each query of results fits the migrated schema, and the hot ones find their rows by an index."""

import json
import re
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "'00000000-0000-0000-0000-000000000001'"
SET = "'00000000-0000-0000-0000-000000000002'"

POSITIONS = "'{" + ",".join(str(position) for position in range(500, 564)) + "}'"

EXPORTED = f"{RUN}, 1, 5000, 0, 6000, 1000000"

# Metrics, bounds of scores and lengths, marks and the class of failures.
CHOSEN = "'{a}', 0, 1, 0, 9, true, NULL, true"
# Query to the arguments it is asked with over the rows of `full_tables`.
HOT = {
    "list_targets": f"{SET}, {POSITIONS}",
    "weigh_samples": f"{SET}, {POSITIONS}",
    "list_samples": f"{SET}, {POSITIONS}",
    "list_sample_messages": f"{SET}, {POSITIONS}",
    "list_missing": f"{RUN}, 1, 0, 5000, 6000",
    "list_outcomes": f"{RUN}, 5000, 0, 20000, 100",
    "list_outcomes_of_status": f"{RUN}, 5000, 0, 20000, 100, 'failed'",
    "list_golden_keys": f"{RUN}, 5000, 0, 20000, 512",
    "list_wrong_keys": f"{RUN}, 5000, 0, 20000, 512",
    "list_marks": f"{RUN}, {POSITIONS}, {POSITIONS}",
    "list_outcome_keys": f"{RUN}, 5000, 0, 20000, 512",
    "match_outcomes": f"{RUN}, {POSITIONS}, {POSITIONS}, 1, NULL, 'i', 'p', {CHOSEN}",
    "weigh_outcomes": f"{RUN}, {POSITIONS}, {POSITIONS}",
    "list_whole_outcomes": f"{RUN}, {POSITIONS}, {POSITIONS}",
    "list_brief_outcomes": f"{RUN}, {POSITIONS}, {POSITIONS}",
    "digest_answers": f"{RUN}, {POSITIONS}",
    "list_same_rows": f"{SET}, {RUN}, 500, 564",
    "list_by_digest": f"{SET}, ARRAY['a', 'b']::bytea[], 9",
    "list_scores": f"{RUN}, 5000, 6000, '{{acc}}'",
    "count_times": f"{RUN}, 5000, 6000, 0.001",
    "export_lines": EXPORTED,
    "export_columns": EXPORTED,
    "export_batch_answers": EXPORTED,
    "export_batch_errors": f"{EXPORTED}, {SET}, 0",
    "list_shard_counts": f"ARRAY[{RUN}]::uuid[], ARRAY[7]",
    "list_task_counts": f"ARRAY[{RUN}]::uuid[]",
    "list_all_shard_counts": RUN,
    "list_leaderboard_metrics": "'glue', ''",
    "list_entries": "'glue', '7', 'acc', true",
    "list_history": "'glue', '', now() - interval '1 day', 'infinity', gen_random_uuid(), 100, ''",
    "count_history": "'', 'p/7', now() - interval '1 day'",
    "list_comparisons": f"ARRAY[{RUN}, {SET}]::uuid[], 'acc'",
    "find_previous_run": f"{RUN}, 'glue', 'p/7', 'conditions'",
    "lease_run": "'comparison', 60",
    "delete_run_record": RUN,
    "delete_task_counts": RUN,
    "delete_shard_counts": RUN,
    "delete_outcomes": f"{RUN}, 5000, 0, 5000",
    "delete_set_samples": f"{SET}, 5000, 5000",
}
# Runs of ten models, one a minute.
CLOSED_RUNS = """
        CREATE TEMPORARY TABLE closed AS
        SELECT gen_random_uuid() AS run_id, number % 20 AS project_id, 'p/' || number % 10 AS model,
            now() - number * interval '1 minute' AS closed_at
        FROM generate_series(1, 10000) AS number;
        INSERT INTO run_records (run_id, epoch, rollouts, scoring_method, is_truncated_left)
        SELECT run_id, 1, 1, 'loglikelihood', false FROM closed;
        INSERT INTO closed_runs (run_id, epoch, benchmark, model, project_id, state, closed_at, result)
        SELECT run_id, 1, 'glue', model, project_id, 'completed', closed_at, '{}' FROM closed;
        INSERT INTO history_entries (benchmark, model, closed_at, run_id)
        SELECT benchmark, model_or_all, closed_at, run_id
        FROM closed, unnest(ARRAY['glue', '']) AS benchmark, unnest(ARRAY[model, '']) AS model_or_all;
        INSERT INTO leaderboard_entries
            (benchmark, project_id, metric, model, conditions, closed_at, run_id, mean, is_limited)
        SELECT 'glue', project, metric, model, 'conditions', closed_at, run_id, random(), false
        FROM closed, unnest(ARRAY[project_id::text, '']) AS project, unnest(ARRAY['acc', 'score']) AS metric;
        INSERT INTO run_comparisons
            (first_run_id, second_run_id, task, metric, first_epoch, second_epoch, verdict, pairs, test)
        SELECT run_id, lead(run_id) OVER (), '', 'acc', 1, 1, 'not_shown', 100, ''
        FROM closed
        LIMIT 9999;
"""
FRESH_RUN = "'00000000-0000-0000-0000-00000000f001'"
FRESH_SET = "'00000000-0000-0000-0000-00000000f002'"
FRESH_ROWS = 10_000
JUST_RECORDED = f"""
        INSERT INTO outcomes
        SELECT {FRESH_RUN}, sample, 0, 0, sample / 64, 1, 1, 'scored', NULL, '', 'text', 'stop', '[]', '',
            '{{"acc": 1.0}}', 1, 1, 0, 0, 0.1, NULL, NULL
        FROM generate_series(0, {FRESH_ROWS - 1}) AS sample;
        INSERT INTO samples
        SELECT {FRESH_SET}, position, position, sha256('x'), 'prompt', NULL, '{{}}', NULL, '{{}}', ''
        FROM generate_series(0, {FRESH_ROWS - 1}) AS position;
        INSERT INTO run_records (run_id, epoch, rollouts, scoring_method, is_truncated_left)
        VALUES ({FRESH_RUN}, 1, 1, 'loglikelihood', false);
        INSERT INTO sample_sets (sample_set_id, digest) VALUES ({FRESH_SET}, 'fresh');
        INSERT INTO run_tasks VALUES ({FRESH_RUN}, 0, 't', {FRESH_SET}, 0, {FRESH_ROWS}, '{{}}', '{{}}');
        INSERT INTO golden_answers
        SELECT {FRESH_RUN}, sample, 0, 'ann' FROM generate_series(0, 999) AS sample;
        INSERT INTO wrong_answers
        SELECT {FRESH_RUN}, sample, 0, 'ann' FROM generate_series(0, 999) AS sample;
"""
SMALL_TABLES = {"run_tasks", "sample_sets", "run_records", "run_environments", "closed_run_leases"}


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
            CASE WHEN sample % 100 = 0 THEN 'failed' ELSE 'scored' END::outcome_status,
            CASE WHEN sample % 100 = 0 THEN 'timeout'::failure_class END,
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
        FROM generate_series(1, 2000) AS run,
            unnest(ARRAY[NULL, 'timeout', 'engine']::failure_class[]) AS class;
        INSERT INTO sample_sets (sample_set_id, digest) VALUES ({SET}, 'd');
        INSERT INTO run_records VALUES ({RUN}, 1, false, 1, 'loglikelihood', false);
        INSERT INTO run_tasks VALUES ({RUN}, 0, 't', {SET}, 0, 20000, '{{}}', '{{}}');
        INSERT INTO golden_answers SELECT {RUN}, sample, 0, 'ann' FROM generate_series(0, 19999) AS sample;
        INSERT INTO wrong_answers SELECT {RUN}, sample, 0, 'ann' FROM generate_series(0, 19999) AS sample;
        {CLOSED_RUNS}
        ANALYZE;
        """
    )
    return connection


@pytest.mark.parametrize("name", QUERIES)
async def test_query_fits_the_schema(connection: asyncpg.Connection, name: str) -> None:
    statement = await connection.prepare(QUERIES[name])
    highest = max((int(number) for number in re.findall(r"\$(\d+)", QUERIES[name])), default=0)
    assert len(statement.get_parameters()) == highest


async def test_an_outcome_that_replaces_another_brings_every_column_in_order(
    connection: asyncpg.Connection,
) -> None:
    columns = await connection.fetch(
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = $1 AND table_name = 'outcomes' ORDER BY ordinal_position",
        SCHEMA,
    )
    listed = re.search(r"DO UPDATE SET[^(]*\(([^()]*)\) = \(", QUERIES["record_outcomes"])
    assert listed is not None
    assert listed[1].replace(",", " ").split() == [row["column_name"] for row in columns]


@pytest.mark.parametrize("name", HOT)
async def test_hot_query_reads_no_table_as_a_whole(full_tables: asyncpg.Connection, name: str) -> None:
    await full_tables.execute("SET plan_cache_mode = force_generic_plan")
    await full_tables.execute(f"PREPARE hot_{name} AS {QUERIES[name]}")
    plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE hot_{name} ({HOT[name]})")
    scanned = set(re.findall(r'"Node Type": "Seq Scan".*?"Relation Name": "(\w+)"', plan, flags=re.DOTALL))
    assert scanned <= SMALL_TABLES, json.loads(plan)


@pytest.mark.parametrize("name", HOT)
async def test_hot_query_is_as_fast_over_a_run_that_the_statistics_do_not_know(
    full_tables: asyncpg.Connection, name: str
) -> None:
    """It was recorded just now: a loop that compares each sample with each outcome takes minutes."""
    transaction = full_tables.transaction()
    await transaction.start()
    try:
        await full_tables.execute(JUST_RECORDED)
        await full_tables.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        await full_tables.execute(f"PREPARE fresh_{name} AS {QUERIES[name]}")
        arguments = HOT[name].replace(RUN, FRESH_RUN).replace(SET, FRESH_SET)
        plan = await full_tables.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE fresh_{name} ({arguments})"
        )
    finally:
        await transaction.rollback()
    compared = [int(rows) for rows in re.findall(r'"Rows Removed by Join Filter": (\d+)', plan)]
    assert sum(compared) <= FRESH_ROWS, json.loads(plan)


@pytest.mark.parametrize("name", ["export_lines", "export_columns", "export_batch_answers"])
async def test_a_chunk_of_an_export_is_not_taken_for_half_of_a_run(
    full_tables: asyncpg.Connection, name: str
) -> None:
    """For so many rows parallel workers are started at each chunk, and cost more than the reading."""
    async with full_tables.transaction():
        await full_tables.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        await full_tables.execute(f"PREPARE chunk_{name} AS {QUERIES[name]}")
        arguments = f"{RUN}, 1, 5000, 0, 5010, 1000000"
        plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE chunk_{name} ({arguments})")
    assert json.loads(plan)[0]["Plan"]["Plan Rows"] < 100, json.loads(plan)


@pytest.mark.parametrize(
    "name", ["list_samples", "list_sample_messages", "list_targets", "weigh_samples", "unstage_samples"]
)
async def test_samples_are_found_by_the_key_whatever_the_statistics_say(
    full_tables: asyncpg.Connection, name: str
) -> None:
    """Right after planning there are none; an index of digests that begins with the set is read whole."""
    many = "'{" + ",".join(map(str, range(500, 1500))) + "}'"
    async with full_tables.transaction():
        await full_tables.execute(f"SELECT pg_clear_relation_stats('{SCHEMA}', 'samples')")
        await full_tables.execute("DELETE FROM pg_statistic WHERE starelid = 'samples'::regclass")
        await full_tables.execute(f"PREPARE unknown_{name} AS {QUERIES[name]}")
        for mode in ("force_generic_plan", "force_custom_plan"):
            await full_tables.execute(f"SET LOCAL plan_cache_mode = {mode}")
            plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE unknown_{name} ({SET}, {many})")
            assert set(re.findall(r'"Index Name": "(samples\w*)"', plan)) == {"samples_pkey"}, mode


@pytest.mark.parametrize("name", ["read_pairs", "list_flips"])
async def test_runs_are_paired_by_hashing_whatever_the_statistics_say(
    connection: asyncpg.Connection, name: str
) -> None:
    """Right after a run there are none, and a loop within a loop over 100,000 samples would take hours."""
    async with connection.transaction():
        await connection.execute(QUERIES["join_by_hash"])
        await connection.execute(f"PREPARE pairs_{name} AS {QUERIES[name]}")
        arguments = {
            "read_pairs": f"{RUN}, {SET}, '{{0}}', '{{0}}', '{{0}}', '{{0}}', ARRAY[{SET}]::uuid[],"
            f" ARRAY[{RUN}]::uuid[], '{{1}}', '{{acc}}'",
            "list_flips": f"{RUN}, {SET}, 0, 0, 20000, 20000, {SET}, {RUN}, 'acc', 0, 100",
        }[name]
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE pairs_{name} ({arguments})")
    joins = set(re.findall(r'"Node Type": "((?:Hash|Merge) Join|Nested Loop)"', plan))
    assert joins == {"Hash Join"}


async def test_reuse_reads_samples_and_outcomes_of_two_tasks_only(
    full_tables: asyncpg.Connection,
) -> None:
    """Where joins are by hash, a table of which not all is wanted must be narrowed before."""
    async with full_tables.transaction():
        await full_tables.execute(QUERIES["join_by_hash"])
        await full_tables.execute(f"PREPARE reusing AS {QUERIES['reuse_answers']}")
        plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE reusing ({RUN}, 1, 0, {SET}, 0)")
    scanned = set(re.findall(r'"Node Type": "Seq Scan".*?"Relation Name": "(\w+)"', plan, flags=re.DOTALL))
    assert scanned <= SMALL_TABLES, json.loads(plan)


async def test_conflicts_are_found_by_the_key_of_an_outcome(full_tables: asyncpg.Connection) -> None:
    arbiters = await full_tables.fetchval(
        "SELECT array_agg(a.attname ORDER BY k.ordinal)"
        " FROM pg_index AS i"
        " CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, ordinal)"
        " JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
        " WHERE i.indrelid = 'outcomes'::regclass AND i.indisunique"
    )
    assert arbiters == ["run_id", "sample", "rollout"]
