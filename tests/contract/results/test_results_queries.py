"""Each query of results fits the migrated schema, and the hot ones find their rows by an index."""

import json
import re
from collections.abc import AsyncIterator, Mapping

import asyncpg
import pytest
import pytest_asyncio

from services.common.migrations import migrate
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from tests.fakes.prepared_queries import executing, preparing
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "'00000000-0000-0000-0000-000000000001'"
SET = "'00000000-0000-0000-0000-000000000002'"

POSITIONS = "'{" + ",".join(str(position) for position in range(500, 564)) + "}'"

EXPORTED = {
    "run_id": RUN,
    "epoch": "1",
    "after_sample": "5000",
    "after_rollout": "0",
    "end_sample": "6000",
    "max_bytes": "1000000",
}

# Metrics, bounds of scores and lengths, marks and the class of failures.
MOST = {"most": "1001"}
HISTORY = {"benchmark": "''", "model": "'p/7'", "since": "now() - interval '1 day'"}
CHOSEN = {
    "metrics": "'{a}'",
    "min_score": "0",
    "max_score": "1",
    "min_characters": "0",
    "max_characters": "9",
    "mark": "'golden'",
    "failure_class": "NULL",
}
PAGE = {"after_sample": "5000", "after_rollout": "0", "before_sample": "20000"}
# Query to the literals it is asked with over the rows of `full_tables`.
HOT: Mapping[str, Mapping[str, str]] = {
    "list_targets": {"sample_set_id": SET, "positions": POSITIONS},
    "list_stored_scores": {"run_id": RUN, "first_sample": "0", "end_sample": "10"},
    "list_docs": {"sample_set_id": SET, "positions": POSITIONS},
    "weigh_samples": {"sample_set_id": SET, "positions": POSITIONS},
    "list_samples": {"sample_set_id": SET, "positions": POSITIONS},
    "list_sample_messages": {"sample_set_id": SET, "positions": POSITIONS},
    "list_missing": {
        "run_id": RUN,
        "epoch": "1",
        "rollout": "0",
        "first_sample": "5000",
        "end_sample": "6000",
    },
    "list_outcomes": {"run_id": RUN, **PAGE, "limit": "100"},
    "list_outcomes_of_status": {"run_id": RUN, **PAGE, "limit": "100", "status": "'failed'"},
    "list_marked_keys": {"mark": "'golden'", "run_id": RUN, **PAGE, "limit": "512"},
    "set_annotation": {
        "run_id": RUN,
        "question": "'q'",
        "sample": "7",
        "rollout": "0",
        "username": "'ann'",
        "label": "'yes'",
        "score": "1",
        "comment": "''",
    },
    "list_judges": {"judged_run_id": "'glue'", "limit": "50"},
    "list_verdict_places": {"run_ids": f"ARRAY[{RUN}]::uuid[]", "samples": POSITIONS, "rollouts": POSITIONS},
    "list_settled_scores": {"run_id": RUN, "questions": "'{q}'"},
    "list_verdicts": {"run_id": RUN, "judged_run_id": RUN, "metric": "'verdict'"},
    "list_marks": {"run_id": RUN, "samples": POSITIONS, "rollouts": POSITIONS},
    "list_outcome_keys": {"run_id": RUN, **PAGE, "limit": "512"},
    "match_outcomes": {
        "run_id": RUN,
        "samples": POSITIONS,
        "rollouts": POSITIONS,
        "max_bytes": "1",
        "status": "NULL",
        "row_id": "'i'",
        "text": "'p'",
        **CHOSEN,
    },
    "weigh_outcomes": {"run_id": RUN, "samples": POSITIONS, "rollouts": POSITIONS},
    "list_whole_outcomes": {"run_id": RUN, "samples": POSITIONS, "rollouts": POSITIONS},
    "list_brief_outcomes": {"run_id": RUN, "samples": POSITIONS, "rollouts": POSITIONS},
    "digest_answers": {"run_id": RUN, "samples": POSITIONS},
    "list_same_rows": {"sample_set_id": SET, "other_id": RUN, "first_position": "500", "end_position": "564"},
    "list_by_digest": {"sample_set_id": SET, "digests": "ARRAY['a', 'b']::bytea[]", "max_of_each": "9"},
    "list_scores": {"run_id": RUN, "first_sample": "5000", "end_sample": "6000", "metrics": "'{acc}'"},
    "count_times": {"run_id": RUN, "first_sample": "5000", "end_sample": "6000", "width": "0.001"},
    "export_lines": EXPORTED,
    "export_columns": EXPORTED,
    "export_batch_answers": EXPORTED,
    "export_batch_errors": {**EXPORTED, "sample_set_id": SET, "first_sample": "0"},
    "list_shard_counts": {"run_ids": f"ARRAY[{RUN}]::uuid[]", "shards": "ARRAY[7]"},
    "list_task_counts": {"run_ids": f"ARRAY[{RUN}]::uuid[]"},
    "list_all_shard_counts": {"run_id": RUN},
    "list_leaderboard_metrics": {"benchmark": "'glue'", "project_id": "''"},
    "list_entries": {
        "benchmark": "'glue'",
        "project_id": "'7'",
        "metric": "'acc'",
        "is_best": "true",
        **MOST,
    },
    "list_history": {
        "benchmark": "'glue'",
        "model": "''",
        "since": "now() - interval '1 day'",
        "before_closed_at": "'infinity'",
        "before_run_id": "gen_random_uuid()",
        "limit": "100",
        "state": "''",
    },
    "count_history": {**HISTORY, "sees_all": "false", **MOST},
    "list_comparisons": {"run_ids": f"ARRAY[{RUN}, {SET}]::uuid[]", "metric": "'acc'"},
    "find_previous_run": {
        "run_id": RUN,
        "project_id": "''",
        "benchmark": "'glue'",
        "model": "'p/7'",
        "conditions": "'conditions'",
    },
    "find_waiting_run": {"work": "'comparison'"},
    "delete_run_record": {"run_id": RUN},
    "delete_task_counts": {"run_id": RUN},
    "delete_shard_counts": {"run_id": RUN},
    "delete_outcomes": {"run_id": RUN, "after_sample": "5000", "after_rollout": "0", "limit": "5000"},
    "delete_set_samples": {"sample_set_id": SET, "after_position": "5000", "limit": "5000"},
}
PAIRED: Mapping[str, Mapping[str, str]] = {
    "list_pairs": {
        "first_run_id": RUN,
        "second_run_id": SET,
        **dict.fromkeys(("first_indexes", "second_indexes", "first_starts", "second_starts"), "'{0}'"),
        "first_set_ids": f"ARRAY[{SET}]::uuid[]",
        "second_set_ids": f"ARRAY[{RUN}]::uuid[]",
        "task_numbers": "'{1}'",
        "metrics": "'{acc}'",
        **dict.fromkeys(("first_from", "second_from", "position_from"), "0"),
        **dict.fromkeys(("first_to", "second_to", "position_to"), "9"),
    },
    "list_flips": {
        "first_run_id": RUN,
        "second_run_id": SET,
        "first_start": "0",
        "second_start": "0",
        "first_end": "20000",
        "second_from": "0",
        "second_end": "20000",
        "first_set_id": SET,
        "second_set_id": RUN,
        "metric": "'acc'",
        "after_sample": "0",
        "limit": "100",
    },
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
            (benchmark, project_id, metric, model, conditions, closed_at, run_id, mean, is_whole)
        SELECT 'glue', project, metric, model, 'conditions', closed_at, run_id, random(), true
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
        SELECT {FRESH_RUN}, sample, 0, 0, sample / 64, 1, 1, 'scored', NULL, '', 'text', '', 'stop', '[]', '',
            '{{"acc": 1.0}}', 1, 1, 0, 0, 0.1, NULL, NULL
        FROM generate_series(0, {FRESH_ROWS - 1}) AS sample;
        INSERT INTO samples
        SELECT {FRESH_SET}, position, position, sha256('x'), 'prompt', NULL, '{{}}', NULL, '{{}}', ''
        FROM generate_series(0, {FRESH_ROWS - 1}) AS position;
        INSERT INTO run_records (run_id, epoch, rollouts, scoring_method, is_truncated_left)
        VALUES ({FRESH_RUN}, 1, 1, 'loglikelihood', false);
        INSERT INTO sample_sets (sample_set_id, digest) VALUES ({FRESH_SET}, 'fresh');
        INSERT INTO run_tasks VALUES ({FRESH_RUN}, 0, 't', {FRESH_SET}, 0, {FRESH_ROWS}, '{{}}', '{{}}');
        INSERT INTO marks
        SELECT {FRESH_RUN}, sample, 0, (ARRAY['golden', 'wrong'])[sample % 2 + 1]::answer_mark, 'ann'
        FROM generate_series(0, 1999) AS sample;
"""
SMALL_TABLES = {"run_tasks", "sample_sets", "run_records", "run_environments", "leases"}


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
            '', 'text', '', 'stop', '[]', '', '{{"acc": 1.0}}', 1, 1, 0, 0, 0.1, NULL, NULL
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
        INSERT INTO marks
        SELECT {RUN}, sample, 0, (ARRAY['golden', 'wrong'])[sample % 2 + 1]::answer_mark, 'ann'
        FROM generate_series(0, 19999) AS sample;
        {CLOSED_RUNS}
        INSERT INTO annotations (run_id, question, sample, rollout, username, label, score, comment)
        SELECT run_id, 'q', sample, 0, 'ann', 'yes', 1, ''
        FROM closed, generate_series(1, 3) AS sample;
        ANALYZE;
        """
    )
    return connection


@pytest.mark.parametrize("name", QUERIES)
async def test_query_fits_the_schema(connection: asyncpg.Connection, name: str) -> None:
    query = QUERIES[name]
    statement = await connection.prepare(query.statement)
    assert len(statement.get_parameters()) == len(query.parameters)


async def test_an_outcome_that_replaces_another_brings_every_column_in_order(
    connection: asyncpg.Connection,
) -> None:
    columns = await connection.fetch(
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = $1 AND table_name = 'outcomes' ORDER BY ordinal_position",
        SCHEMA,
    )
    listed = re.search(r"DO UPDATE SET[^(]*\(([^()]*)\) = \(", QUERIES["record_outcomes"].statement)
    assert listed is not None
    assert listed[1].replace(",", " ").split() == [row["column_name"] for row in columns]


@pytest.mark.parametrize("name", HOT)
async def test_hot_query_reads_no_table_as_a_whole(full_tables: asyncpg.Connection, name: str) -> None:
    await full_tables.execute("SET plan_cache_mode = force_generic_plan")
    query = QUERIES[name]
    await full_tables.execute(preparing(f"hot_{name}", query))
    plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) {executing(f'hot_{name}', query, HOT[name])}")
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
        await full_tables.execute(preparing(f"fresh_{name}", QUERIES[name]))
        executed = executing(f"fresh_{name}", QUERIES[name], HOT[name])
        fresh = executed.replace(RUN, FRESH_RUN).replace(SET, FRESH_SET)
        plan = await full_tables.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {fresh}")
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
        await full_tables.execute(preparing(f"chunk_{name}", QUERIES[name]))
        executed = executing(f"chunk_{name}", QUERIES[name], {**EXPORTED, "end_sample": "5010"})
        plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) {executed}")
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
        await full_tables.execute(preparing(f"unknown_{name}", QUERIES[name]))
        executed = executing(f"unknown_{name}", QUERIES[name], {"sample_set_id": SET, "positions": many})
        for mode in ("force_generic_plan", "force_custom_plan"):
            await full_tables.execute(f"SET LOCAL plan_cache_mode = {mode}")
            plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) {executed}")
            assert set(re.findall(r'"Index Name": "(samples\w*)"', plan)) == {"samples_pkey"}, mode


@pytest.mark.parametrize("name", PAIRED)
async def test_runs_are_paired_by_hashing_whatever_the_statistics_say(
    connection: asyncpg.Connection, name: str
) -> None:
    """Right after a run there are none, and a loop within a loop over 100,000 samples would take hours."""
    async with connection.transaction():
        await connection.execute(QUERIES["join_by_hash"].statement)
        await connection.execute(preparing(f"pairs_{name}", QUERIES[name]))
        executed = executing(f"pairs_{name}", QUERIES[name], PAIRED[name])
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {executed}")
    joins = set(re.findall(r'"Node Type": "((?:Hash|Merge) Join|Nested Loop)"', plan))
    assert joins == {"Hash Join"}


async def test_reuse_reads_samples_and_outcomes_of_two_tasks_only(
    full_tables: asyncpg.Connection,
) -> None:
    """Where joins are by hash, a table of which not all is wanted must be narrowed before."""
    async with full_tables.transaction():
        await full_tables.execute(QUERIES["join_by_hash"].statement)
        await full_tables.execute(preparing("reusing", QUERIES["reuse_answers"]))
        values = {
            "run_id": RUN,
            "epoch": "1",
            "task_index": "0",
            "source_run_id": SET,
            "source_task_index": "0",
        }
        executed = executing("reusing", QUERIES["reuse_answers"], values)
        plan = await full_tables.fetchval(f"EXPLAIN (FORMAT JSON) {executed}")
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
