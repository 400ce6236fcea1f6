"""Reading leaderboard and history as runs pile up: milliseconds per call, in a real Postgres."""

import time
from collections.abc import Awaitable, Callable, Sequence

import asyncpg
from rich.console import Console
from rich.table import Table

from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.comparison.postgres import PostgresComparisons
from services.results.leaderboard.closed_run import BenchmarkFigure, BenchmarkResult
from services.results.leaderboard.conditions import conditions_of
from services.results.leaderboard.grpc_api import history_to_proto, leaderboard_to_proto
from services.results.leaderboard.list_history import HistoryQuery, ListHistory
from services.results.leaderboard.postgres import (
    BENCHMARK_BASELINES,
    RESULT,
    PostgresLeaderboard,
)
from services.results.leaderboard.rank_models import LeaderboardQuery, RankModels
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.conditions import EvaluatedRun
from services.results.statistics.figure import Figure
from tests.fakes.results.recorded_run import plan_of
from tests.harness.servers import postgres_server

SIZES = (10_000, 100_000)
CALLS = 50
FILL_SECONDS = 600.0
METRICS = ("acc", "acc_norm", "f1", "mcc", "score")

# Five benchmarks, 120 models, twenty projects; spread over a hundred days, whatever their number.
FILL = """
    CREATE TEMPORARY TABLE closed AS
    SELECT gen_random_uuid() AS run_id, 'suite' || number % 5 AS benchmark, 'p/' || number / 5 % 120 AS model,
        number % 20 AS project_id, now() - random() * interval '100 days' AS closed_at
    FROM generate_series(1, {missing}) AS number;
    INSERT INTO run_records (run_id, epoch, rollouts, scoring_method, is_truncated_left)
    SELECT run_id, 1, 1, 'loglikelihood', false FROM closed;
    INSERT INTO closed_runs (run_id, epoch, benchmark, model, project_id, state, closed_at, result, baselines)
    SELECT run_id, 1, benchmark, model, project_id, 'completed', closed_at, '{result}', '{baselines}'
    FROM closed;
    INSERT INTO history_entries (benchmark, model, closed_at, run_id)
    SELECT benchmark_or_all, model_or_all, closed_at, run_id
    FROM closed, unnest(ARRAY[benchmark, '']) AS benchmark_or_all, unnest(ARRAY[model, '']) AS model_or_all;
    INSERT INTO leaderboard_entries
        (benchmark, project_id, metric, model, conditions, closed_at, run_id, mean, is_whole)
    SELECT benchmark, project, metric, model, '{conditions}', closed_at, run_id, random(), true
    FROM closed, unnest(ARRAY[project_id::text, '']) AS project, unnest('{{{metrics}}}'::text[]) AS metric;
    DROP TABLE closed;
"""

# Each run against five others of its benchmark; against each other the latest ones of all models, the best
# ones, and the latest ones of a project.
COMPARE = """
    TRUNCATE run_comparisons;
    INSERT INTO run_comparisons
    SELECT run_id, other, '', 'acc', 1, 1, 0.01, 0.0, 0.02, 0.3, 3, 10000, 'bench'
    FROM (
        SELECT run_id, lead(run_id, step) OVER (PARTITION BY benchmark, step ORDER BY closed_at) AS other
        FROM closed_runs, generate_series(1, 5) AS step
    ) AS neighbours
    WHERE other IS NOT NULL;
    WITH shown AS (
        (
            SELECT DISTINCT ON (benchmark, model) 'latest' AS board, benchmark, run_id
            FROM leaderboard_entries WHERE project_id = '' AND metric = 'acc'
            ORDER BY benchmark, model, closed_at DESC, run_id DESC
        )
        UNION ALL
        (
            SELECT DISTINCT ON (benchmark, model) 'best', benchmark, run_id
            FROM leaderboard_entries WHERE project_id = '' AND metric = 'acc'
            ORDER BY benchmark, model, mean DESC, closed_at DESC, run_id DESC
        )
        UNION ALL
        (
            SELECT DISTINCT ON (benchmark, model) 'project', benchmark, run_id
            FROM leaderboard_entries WHERE project_id = '6' AND metric = 'acc'
            ORDER BY benchmark, model, closed_at DESC, run_id DESC
        )
    )
    INSERT INTO run_comparisons
    SELECT one.run_id, other.run_id, '', metric, 1, 1, 0.01, 0.0, 0.02, random(), 'not_shown', 10000, 'bench'
    FROM shown AS one
    JOIN shown AS other USING (board, benchmark)
    CROSS JOIN unnest(ARRAY['acc', 'score']) AS metric
    WHERE one.run_id < other.run_id
    ON CONFLICT DO NOTHING;
"""

Call = Callable[[], Awaitable[object]]


async def main() -> None:
    table = Table("runs stored", "call", "median ms", "slowest ms", title="Reading leaderboards")
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            for size in SIZES:
                await fill(pool, size)
                for name, call in calls(PostgresSession(pool, QUERIES)).items():
                    milliseconds = await timed(call)
                    median = milliseconds[len(milliseconds) // 2]
                    table.add_row(f"{size:,}", name, f"{median:.1f}", f"{milliseconds[-1]:.1f}")
    Console(width=110).print(table)


async def fill(pool: asyncpg.Pool, size: int) -> None:
    """Adds what is missing to `size` runs."""
    conditions = conditions_of(EvaluatedRun(plan_of([10] * 9)))
    figure = BenchmarkFigure(Figure(0.5, 0.01, 0.01, 0.48, 0.52, 10_000, "normal"), 9)
    figures = dict.fromkeys(METRICS, figure)
    statement = FILL.format(
        missing=size - await pool.fetchval("SELECT count(*) FROM closed_runs"),
        result=RESULT.dump_json(BenchmarkResult(conditions, figures, 10_000)).decode(),
        baselines=BENCHMARK_BASELINES.dump_json(
            dict.fromkeys(("random", "majority", "longest"), figures)
        ).decode(),
        conditions=conditions.key,
        metrics=",".join(METRICS),
    )
    async with pool.acquire() as connection:
        for part in (statement, COMPARE, "VACUUM ANALYZE"):
            await connection.execute(part, timeout=FILL_SECONDS)


def calls(session: PostgresSession) -> dict[str, Call]:
    leaderboard = PostgresLeaderboard(session)
    rank_models = RankModels(leaderboard, PostgresComparisons(session), CompareNothing())
    list_history = ListHistory(leaderboard, SystemClock())

    def ranked(query: LeaderboardQuery) -> Call:
        async def call() -> object:
            return leaderboard_to_proto(await rank_models.rank(query))

        return call

    def history(query: HistoryQuery) -> Call:
        async def call() -> object:
            return history_to_proto(await list_history.list_page(query))

        return call

    return {
        "leaderboard": ranked(LeaderboardQuery("suite1", "accuracy")),
        "leaderboard, 100 models": ranked(LeaderboardQuery("suite1", "score", max_entries=100)),
        "leaderboard, best runs": ranked(LeaderboardQuery("suite1", "accuracy", is_best=True)),
        "leaderboard of a project": ranked(LeaderboardQuery("suite1", "accuracy", project_id=6)),
        "history of 30 days": history(HistoryQuery()),
        "history of a model": history(HistoryQuery(model="p/7", days=365)),
        "history of a suite, 500 runs": history(HistoryQuery(benchmark="suite1", page_size=500)),
    }


class CompareNothing:
    """Compares no pair: all that is read here was compared before."""

    def add(self, pairs: Sequence[tuple[str, str]]) -> int:
        raise LookupError(pairs)


async def timed(call: Call) -> list[float]:
    """Of each call, sorted; the first one fills the caches and does not count."""
    await call()
    milliseconds = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await call()
        milliseconds.append(1000 * (time.perf_counter() - started))
    return sorted(milliseconds)
