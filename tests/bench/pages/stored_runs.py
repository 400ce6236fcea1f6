"""A stack with many runs: copies of a real one, and one of a million samples, put into the tables by SQL.

`PROCTOR_PAGES_RUNS` and `PROCTOR_PAGES_SAMPLES` set how many (10,000 and 1,000,000).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from services.results.postgres import SCHEMA as RESULTS
from services.scheduler.postgres import SCHEMA as SCHEDULER
from tests.bench.pages.copied_rows import FILL_SECONDS, connected, copy_of
from tests.bench.pages.stored_rollouts import StoredRollouts, store_rollouts
from tests.bench.results.exporting import fill
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import StackHarness

RUNS = int(os.environ.get("PROCTOR_PAGES_RUNS", "10000"))
SAMPLES = int(os.environ.get("PROCTOR_PAGES_SAMPLES", "1000000"))
MODELS = 100

# $RUNS copies of a run: newer ones have smaller numbers. Both databases make the same ids.
COPIES = f"""
    CREATE TEMPORARY TABLE copies AS
    SELECT md5('copy' || n)::uuid AS run_id, 'openai/m' || n % {MODELS} AS model,
        now() - n * interval '10 minutes' AS at
    FROM generate_series(1, {RUNS}) AS n
"""
ID, MODEL, AT = "c.run_id", "c.model", "c.at"
_OF_HISTORY = {"run_id": ID, "model": f"CASE WHEN t.model = '' THEN '' ELSE {MODEL} END", "closed_at": AT}
# In the order of their references; columns that are not named are those of the run that is copied.
OF_RESULTS: Mapping[str, Mapping[str, str]] = {
    "run_records": {"run_id": ID, "model": MODEL, "opened_at": AT, "created_at": AT, "frozen_at": AT},
    "run_tasks": {"run_id": ID},
    "task_counts": {"run_id": ID},
    "run_summaries": {"run_id": ID},
    "closed_runs": {"run_id": ID, "model": MODEL, "closed_at": AT},
    "history_entries": _OF_HISTORY,
    "leaderboard_entries": {"run_id": ID, "model": MODEL, "closed_at": AT},
}
OF_SCHEDULER: Mapping[str, Mapping[str, str]] = {
    "runs": {
        "run_id": ID,
        "request_id": "md5('request' || c.run_id)::uuid",
        "model": MODEL,
        "created_at": AT,
        "queued_at": AT,
        "started_at": AT,
        "admitted_at": AT,
        "finished_at": AT,
    },
    "run_tasks": {"run_id": ID},
}


@dataclass(frozen=True)
class StoredRuns:
    """`pair` are the real ones; `large` has a million samples."""

    pair: tuple[str, str]
    large: str
    rollouts: StoredRollouts


async def store_runs(stack: StackHarness, pair: tuple[str, str]) -> StoredRuns:
    """Of what results does with closed runs nothing is left to do for the copies."""
    await _worked_on(stack, pair)
    await _copied(stack, RESULTS, OF_RESULTS, pair[0])
    await _copied(stack, SCHEDULER, OF_SCHEDULER, pair[0])
    large = await fill(stack.stack.postgres_dsn, SAMPLES)
    connection = await connected(stack, RESULTS)
    await connection.execute(
        """
        INSERT INTO run_summaries (run_id, epoch, summary)
        SELECT $2::uuid, 1, replace(summary::text, '"sentiment"', '"rows"')::json
        FROM run_summaries WHERE run_id = $1::uuid
        """,
        pair[0],
        large.run_id,
    )
    await connection.close()
    connection = await connected(stack, SCHEDULER)
    changes = {"run_id": f"'{large.run_id}'::uuid", "request_id": "NULL", "total": str(SAMPLES)}
    source = pair[0], "(SELECT) AS c"
    await connection.execute(await copy_of(connection, SCHEDULER, "runs", changes, source))
    await connection.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    await connection.close()
    return StoredRuns(pair, large.run_id, await store_rollouts(stack, pair[0]))


async def _worked_on(stack: StackHarness, pair: tuple[str, str]) -> None:
    async def is_done() -> bool:
        connection = await connected(stack, RESULTS)
        left = await connection.fetchval(
            """
            SELECT count(*) FROM run_records AS r JOIN closed_runs AS c USING (run_id)
            WHERE run_id = ANY ($1::uuid[]) AND r.compared_epoch = r.epoch AND c.baselines IS NOT NULL
            """,
            list(pair),
        )
        await connection.close()
        return bool(left == len(pair))

    await eventually(is_done, "the runs are compared and have baselines", 120)


async def _copied(
    stack: StackHarness, schema: str, tables: Mapping[str, Mapping[str, str]], run_id: str
) -> None:
    connection = await connected(stack, schema)
    await connection.execute(COPIES)
    for table, changes in tables.items():
        statement = await copy_of(connection, schema, table, changes, (run_id, "copies AS c"))
        await connection.execute(statement, timeout=FILL_SECONDS)
    await connection.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    await connection.close()
