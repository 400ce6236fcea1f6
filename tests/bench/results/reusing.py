"""Reusing the answers of a run: seconds and temporary bytes, where all rows are identical and where none is.

A row may occur any number of times, so the time must not depend on how often.
"""

import time

import asyncpg
from rich.console import Console
from rich.table import Table

from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.outcomes.ports import AnswerSource
from services.results.outcomes.postgres import PostgresReuse
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.postgres import PostgresRunRecords
from services.results.runs.run_plan import PlannedTask, RunPlan
from tests.bench.results.comparing import FILL_OUTCOMES
from tests.fakes.results.recorded_run import CHOICE_SCORING, new_id
from tests.harness.servers import postgres_server

ROWS = 50_000
CALLS = 3
MAX_RATIO = 2.0

ADD_SET = "INSERT INTO sample_sets (sample_set_id, digest) VALUES ($1::uuid, sha256($1::text::bytea))"
FILL_SAMPLES = """
    INSERT INTO samples
        (sample_set_id, position, doc_id, digest, prompt_text, choices, target_choice, target_texts, cluster)
    SELECT $1::uuid, number, number, sha256((number % $3::integer)::text::bytea), repeat('A prompt. ', 60),
        '{" no"," yes"}', number % 2, '{}', ''
    FROM generate_series(0, $2::integer - 1) AS number
"""
TEMPORARY_BYTES = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"


async def main() -> None:
    table = Table("rows", "median s", "slowest s", "temporary MB", title=f"Reusing {ROWS:,} answers")
    medians = []
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            for name, kinds in (("all different", ROWS), ("500 kinds", 500), ("all identical", 1)):
                sample_set_id = new_id()
                await pool.execute(ADD_SET, sample_set_id)
                await pool.execute(FILL_SAMPLES, sample_set_id, ROWS, kinds)
                source = await add_run(pool, sample_set_id)
                await pool.execute(FILL_OUTCOMES, source, ROWS, 0.7)
                before = await pool.fetchval(TEMPORARY_BYTES)
                seconds = sorted([await timed(pool, sample_set_id, source) for _ in range(CALLS)])
                # Sessions report what they wrote at times only.
                await pool.execute("SELECT pg_stat_force_next_flush()")
                megabytes = (await pool.fetchval(TEMPORARY_BYTES) - before) / CALLS / 1e6
                medians.append(seconds[CALLS // 2])
                table.add_row(name, f"{medians[-1]:.2f}", f"{seconds[-1]:.2f}", f"{megabytes:.0f}")
    Console(width=100).print(table)
    print(f"identical to different: {medians[-1] / medians[0]:.2f} (target: at most {MAX_RATIO:.0f})")


async def add_run(pool: asyncpg.Pool, sample_set_id: str) -> str:
    plan = RunPlan(new_id(), (PlannedTask("task", sample_set_id, 0, ROWS, CHOICE_SCORING),))
    await PostgresRunRecords(PostgresSession(pool, QUERIES)).open(plan, 1)
    return plan.run_id


async def timed(pool: asyncpg.Pool, sample_set_id: str, source: str) -> float:
    run_id = await add_run(pool, sample_set_id)
    started = time.perf_counter()
    reused = await PostgresReuse(PostgresSession(pool, QUERIES)).reuse(run_id, 1, 0, AnswerSource(source, 0))
    if reused != ROWS:
        raise SystemExit(f"{reused} of {ROWS} answers were reused")
    return time.perf_counter() - started
