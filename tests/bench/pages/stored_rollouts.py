"""Orders of rollouts put into the tables by SQL: many, and one with a trajectory of every rollout.

`PROCTOR_PAGES_ORDERS` sets how many (1,000).
"""

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import asyncpg

from services.results.postgres import SCHEMA as RESULTS
from services.results.runs.postgres import PROVENANCE
from services.results.runs.run_plan import TaskProvenance
from services.scheduler.postgres import SCHEMA as SCHEDULER
from tests.bench.pages.copied_rows import FILL_SECONDS, connected, copy_of
from tests.contract.gateway.pages.rollouts.shown_rollouts import record
from tests.harness.stack_harness import StackHarness

ORDERS = int(os.environ.get("PROCTOR_PAGES_ORDERS", "1000"))
SUITE = "agents"
TASKS, ROLLOUTS = 50, 10
MODELS = ("openai/agent-1", "openai/agent-2")
_STEPS = 60
# What a copy is joined with: its id.
_ONE = "(SELECT '%s'::uuid AS run_id) AS c"
_SAMPLE_SET = "INSERT INTO sample_sets (sample_set_id, digest) VALUES ($1::uuid, sha256('agents'))"
# Older orders are of runs that are there already: a list shows nothing of them but their state.
_OLDER = f"""
    INSERT INTO rollouts_orders (
        order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids,
        created_at
    )
    SELECT
        md5('order' || n)::uuid, 'local', 1, '{SUITE}', 1, '{{}}', {ROLLOUTS},
        (SELECT array_agg('task-' || t ORDER BY t) FROM generate_series(1, {TASKS}) AS t),
        array_agg(model), array_agg(run_id), now() - n * interval '1 hour'
    FROM generate_series(1, {ORDERS}) AS n
    CROSS JOIN LATERAL (
        SELECT run_id, model FROM runs WHERE benchmark <> '{SUITE}'
        ORDER BY created_at DESC OFFSET 2 * (n % 400) LIMIT 2
    ) AS r
    GROUP BY n
"""
_SUITE_VERSION = (
    f"INSERT INTO user_suites (suite, last_version) VALUES ('{SUITE}', 1)",
    f"""
    INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at)
    VALUES ('{SUITE}', 1, 'agents', '', 'agents.yaml', 'local', now())
    """,
)
_SAMPLES = """
    INSERT INTO samples (
        sample_set_id, position, doc_id, digest, prompt_messages, choices, target_texts, cluster, row_id
    )
    SELECT
        $1::uuid, n, n, sha256(n::text::bytea), '[["user", "Mend the parser."]]', '{}', '{}', '',
        'task-' || n + 1
    FROM generate_series(0, $2::integer - 1) AS n
"""
_TASK = """
    INSERT INTO run_tasks
        (run_id, task_index, task, sample_set_id, first_sample, sample_count, scoring, provenance)
    SELECT $1::uuid, 0, $2::text, $3::uuid, 0, $4::integer, scoring, $5::jsonb
    FROM run_tasks WHERE run_id = $6::uuid AND task_index = 0
"""
_OUTCOMES = """
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status,
        failure_message, answer_text, finish_reason, choices, prediction, scores, prompt_tokens,
        completion_tokens, cached_tokens, reasoning_tokens, total_seconds, body_json
    )
    SELECT
        $1::uuid, sample, rollout, 0, sample, 1, 1, 'scored', '', 'Done', 'submitted', '[]', '',
        jsonb_build_object('reward', ((sample + rollout) % 3)::double precision / 2), 90000, 4000, 0, 0, 300,
        $4::text
    FROM generate_series(0, $2::integer - 1) AS sample
    CROSS JOIN generate_series(0, $3::integer - 1) AS rollout
"""
_COUNTS = (
    "INSERT INTO task_counts (run_id, task_index, recorded, unparsed) VALUES ($1::uuid, 0, $2::bigint, 0)"
)
_SUMMARY = """
    INSERT INTO run_summaries (run_id, epoch, summary)
    SELECT $1::uuid, 1, replace(replace(summary::text, '"acc"', '"reward"'), '"sentiment"', $3::text)::json
    FROM run_summaries WHERE run_id = $2::uuid
"""
_ORDER = """
    INSERT INTO rollouts_orders (
        order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids,
        created_at
    )
    SELECT
        $1::uuid, 'local', 1, $2::text, 1, '{}', $3::integer, array_agg('task-' || t ORDER BY t), $5::text[],
        $6::uuid[], now()
    FROM generate_series(1, $4::integer) AS t
"""


@dataclass(frozen=True)
class StoredRollouts:
    """The newest order, and its first run."""

    order_id: str
    run_id: str


async def store_rollouts(stack: StackHarness, template: str) -> StoredRollouts:
    """`template`: a completed run, of which the runs of the order are copies but for what is named here."""
    runs = {str(uuid.uuid4()): model for model in MODELS}
    connection = await connected(stack, RESULTS)
    await _record(connection, runs, template)
    await connection.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    await connection.close()
    connection = await connected(stack, SCHEDULER)
    order_id = await _order(connection, runs, template)
    await connection.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    await connection.close()
    return StoredRollouts(order_id, next(iter(runs)))


async def _record(connection: asyncpg.Connection, runs: Mapping[str, str], template: str) -> None:
    sample_set_id = str(uuid.uuid4())
    await connection.execute(_SAMPLE_SET, sample_set_id)
    await connection.execute(_SAMPLES, sample_set_id, TASKS)
    provenance = PROVENANCE.dump_json(TaskProvenance()).decode()
    body = record("and so on " * 100, _STEPS)
    for run_id, model in runs.items():
        changes = _changes(model) | {"rollouts": str(ROLLOUTS)}
        source = template, _ONE % run_id
        await connection.execute(await copy_of(connection, RESULTS, "run_records", changes, source))
        await connection.execute(_TASK, run_id, SUITE, sample_set_id, TASKS, provenance, template)
        await connection.execute(_OUTCOMES, run_id, TASKS, ROLLOUTS, body, timeout=FILL_SECONDS)
        await connection.execute(_COUNTS, run_id, TASKS * ROLLOUTS)
        await connection.execute(_SUMMARY, run_id, template, f'"{SUITE}"')


async def _order(connection: asyncpg.Connection, runs: Mapping[str, str], template: str) -> str:
    """The id of the order."""
    for statement in _SUITE_VERSION:
        await connection.execute(statement)
    await connection.execute(_OLDER, timeout=FILL_SECONDS)
    ordered = f"""t.ordered || '{{"suite": "{SUITE}", "rollouts": {ROLLOUTS}}}'"""
    for run_id, model in runs.items():
        own = {"request_id": "NULL", "total": str(TASKS * ROLLOUTS), "ordered": ordered}
        source = template, _ONE % run_id
        changes = _changes(model) | own
        await connection.execute(await copy_of(connection, SCHEDULER, "runs", changes, source))
    order_id = str(uuid.uuid4())
    await connection.execute(_ORDER, order_id, SUITE, ROLLOUTS, TASKS, list(runs.values()), list(runs))
    return order_id


def _changes(model: str) -> dict[str, str]:
    return {"run_id": "c.run_id", "model": f"'{model}'", "benchmark": f"'{SUITE}'", "suite_version": "1"}
