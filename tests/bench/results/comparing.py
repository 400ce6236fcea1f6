"""Comparing two runs of 100,000 samples: seconds from the call to the answer, in a real Postgres.

Equal sample sets are paired by position, others by digest; clustered samples come over one by one.
"""

import time
from dataclasses import dataclass

import asyncpg
from rich.console import Console
from rich.table import Table

from proctor.values.scoring import TaskGroup
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.common.processes.bounded_calls import BoundedCalls
from services.results.comparison.compare_runs import ComparePair, CompareQuery, CompareRuns
from services.results.comparison.comparison import DifferenceCache
from services.results.comparison.postgres import PostgresPairs
from services.results.leaderboard.postgres import PostgresLeaderboard
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.postgres import PostgresRunRecords
from services.results.runs.run_plan import PlannedTask, RunFacts, RunPlan
from tests.fakes.results.recorded_run import CHOICE_SCORING, new_id
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

SAMPLES = 100_000
FILL_SECONDS = 3600.0
CALLS = 5
TARGET_SECONDS = 2.0
METRICS = ("acc", "mcc")

ADD_SET = "INSERT INTO sample_sets (sample_set_id, digest) VALUES ($1::uuid, sha256($1::text::bytea))"
FILL_SAMPLES = """
    INSERT INTO samples
        (sample_set_id, position, doc_id, digest, prompt_text, choices, target_choice, target_texts, cluster)
    SELECT $1::uuid, number, number, sha256(((number + $3::integer) % $2::integer)::text::bytea),
        repeat('A prompt. ', 60), '{" no"," yes"}', number % 2, '{}',
        CASE WHEN $4::boolean THEN (number / 4)::text ELSE '' END
    FROM generate_series(0, $2::integer - 1) AS number
"""
FILL_OUTCOMES = """
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message,
        answer_text, finish_reason, choices, prediction, scores,
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, total_seconds
    )
    SELECT $1::uuid, number, 0, 0, number / 64, 1, 1, 'scored', NULL, '', 'An answer.', 'stop',
        '[[-1.5, false, 2], [-0.5, true, 2]]', ' yes',
        jsonb_build_object(
            'acc', (right_one)::integer::double precision,
            'mcc', jsonb_build_array(number % 2, CASE WHEN right_one THEN number % 2 ELSE 1 - number % 2 END)
        ),
        100, 1, 0, 0, 0.1
    FROM generate_series(0, $2::integer - 1) AS number
    CROSS JOIN LATERAL (SELECT random() < $3::double precision AS right_one) AS drawn
"""


@dataclass(frozen=True)
class Filled:
    """Two runs to compare."""

    name: str
    run_ids: tuple[str, str]


async def main() -> None:
    table = Table(
        "pairs", "metrics", "median s", "slowest s", title=f"Comparing two runs of {SAMPLES:,} samples"
    )
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            filled = await fill(pool)
            session = PostgresSession(pool, QUERIES)
            compare = compare_runs(session)
            for one in filled:
                for metrics in (METRICS[:1], METRICS):
                    seconds = await timed(compare, one, metrics)
                    table.add_row(
                        one.name, ", ".join(metrics), f"{seconds[CALLS // 2]:.2f}", f"{seconds[-1]:.2f}"
                    )
            Console(width=100).print(table)
            await print_plan(pool, filled[0])
    print(f"target: {TARGET_SECONDS:.0f} s for one metric")


def compare_runs(session: PostgresSession) -> CompareRuns:
    """Nothing is kept between calls."""
    stores, pairs = postgres_stores(session), PostgresPairs(session)
    return CompareRuns(
        records=stores.records,
        summaries=stores.summaries,
        runs_of_models=PostgresLeaderboard(session),
        compare_pair=ComparePair(sample_sets=stores.sample_sets, pairs=pairs, calls=BoundedCalls(1)),
        cache=DifferenceCache(max_cached=0),
    )


async def fill(pool: asyncpg.Pool) -> list[Filled]:
    """Statistics are left as they are just after a run: there are none."""
    one, shifted, clustered = [
        await add_set(pool, shift, is_clustered=is_clustered)
        for shift, is_clustered in ((0, False), (777, False), (0, True))
    ]
    return [
        Filled("the same set, by position", (await add_run(pool, one, 0.72), await add_run(pool, one, 0.7))),
        Filled("other sets, by digest", (await add_run(pool, one, 0.72), await add_run(pool, shifted, 0.7))),
        Filled(
            "25,000 clusters", (await add_run(pool, clustered, 0.72), await add_run(pool, clustered, 0.7))
        ),
    ]


async def add_set(pool: asyncpg.Pool, shift: int, *, is_clustered: bool, samples: int = SAMPLES) -> str:
    sample_set_id = new_id()
    await pool.execute(ADD_SET, sample_set_id)
    await pool.execute(FILL_SAMPLES, sample_set_id, samples, shift, is_clustered, timeout=FILL_SECONDS)
    return sample_set_id


async def add_run(pool: asyncpg.Pool, sample_set_id: str, share_right: float, samples: int = SAMPLES) -> str:
    """A frozen run of one task."""
    task = PlannedTask("task", sample_set_id, 0, samples, CHOICE_SCORING)
    facts = RunFacts("bench", model=f"p/{share_right}")
    plan = RunPlan(new_id(), (task,), facts=facts, groups=(TaskGroup("bench", ("task",)),))
    records = PostgresRunRecords(PostgresSession(pool, QUERIES))
    await records.open(plan, 1)
    await pool.execute(FILL_OUTCOMES, plan.run_id, samples, share_right, timeout=FILL_SECONDS)
    await pool.execute(
        "UPDATE run_records SET is_frozen = true, state = 'completed' WHERE run_id = $1", plan.run_id
    )
    return plan.run_id


async def timed(compare: CompareRuns, filled: Filled, metrics: tuple[str, ...]) -> list[float]:
    """Seconds of several calls, in order; the first one, which reads from disk, is among them."""
    seconds = []
    for _ in range(CALLS):
        started = time.perf_counter()
        comparison = await compare.compare(CompareQuery(filled.run_ids, metrics=metrics))
        seconds.append(time.perf_counter() - started)
        if comparison.differences[0].estimate.pairs != SAMPLES:
            raise SystemExit(f"{filled.name}: {comparison.differences[0]}")
    return sorted(seconds)


async def print_plan(pool: asyncpg.Pool, filled: Filled) -> None:
    """What Postgres does: how it finds the answers, and how it joins them."""
    sample_set_id = await pool.fetchval(
        "SELECT sample_set_id FROM run_tasks WHERE run_id = $1", filled.run_ids[0]
    )
    first_run_id, second_run_id = filled.run_ids
    statement, *arguments = QUERIES["list_pairs"].call(
        {
            "first_run_id": first_run_id,
            "second_run_id": second_run_id,
            "first_indexes": [0],
            "second_indexes": [0],
            "first_starts": [0],
            "second_starts": [0],
            "first_set_ids": [sample_set_id],
            "second_set_ids": [sample_set_id],
            "task_numbers": [1],
            "metrics": ["acc"],
            "first_from": 0,
            "first_to": SAMPLES,
            "second_from": 0,
            "second_to": SAMPLES,
            "position_from": 0,
            "position_to": SAMPLES,
        }
    )
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(QUERIES["join_by_hash"].statement)
        lines = await connection.fetch(f"EXPLAIN (COSTS OFF) {statement}", *arguments)
    nodes = [line[0].strip() for line in lines]
    print("\n".join(node for node in nodes if "Join" in node or "Scan using" in node or "Index" in node))
