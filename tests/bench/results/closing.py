"""The close of a run: seconds, memory of the process that sums up, and how long a recorder beside it waits.

Rows are put into the tables by SQL: ten answers to each sample, right or wrong and graded, or pairs of
numbers for a correlation. `PROCTOR_BENCH_OUTCOMES=10000000 python -m tests.bench close` measures other sizes.
"""

import asyncio
import os
import threading
import time
from dataclasses import dataclass, replace

import asyncpg
from rich.console import Console
from rich.table import Table

from proctor.values.run import RunState
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.leases.postgres import PostgresLeases
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.summaries.close_run import CloseRun
from services.results.summaries.run_summary import RunSummary
from services.results.summaries.summarize_run import SummarizeRun
from tests.bench.harness.process_tree import usage_of_tree
from tests.fakes.results.recorded_run import answered, choice_sample, new_id, plan_of, scored
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

SIZES = [int(size) for size in os.environ.get("PROCTOR_BENCH_OUTCOMES", "100000,1000000").split(",")]
ROLLOUTS = 10
FILL_SECONDS = 3600.0
LOOK_SECONDS = 0.05
METRICS = {"means": ("exact_match", "squad_f1"), "correlation": ("spearman",)}

# $1 run, $2 samples, $3 rollouts, $4 scores
FILL = """
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status,
        failure_message, answer_text, finish_reason, choices, prediction, scores, prompt_tokens,
        completion_tokens, cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
    )
    SELECT
        '$1', sample, rollout, 0, sample / 64, 1, 1, 'scored', '', 'I think "yes".', 'stop', '[]', 'yes', $4,
        70, 12, 0, 0, 1 + random(), random() / 10, random() / 5
    FROM generate_series(0, $2 - 1) AS sample, generate_series(0, $3 - 1) AS rollout
"""
SCORES = {
    "means": "jsonb_build_object('exact_match', round(random()), 'squad_f1', random())",
    "correlation": "jsonb_build_object('spearman', jsonb_build_array(sample % 7, random() + sample % 7))",
}


@dataclass
class Measured:
    outcomes: int
    seconds: float = 0.0
    peak_mib: float = 0.0
    calls: int = 0
    longest_wait_ms: float = 0.0
    recorded: int = 0


class MemoryPeak:
    """The private memory of this process above what it had at first, looked at by a thread."""

    def __init__(self) -> None:
        self._first = self.peak = usage_of_tree(os.getpid()).anon_mib
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            self.peak = max(self.peak, usage_of_tree(os.getpid()).anon_mib)

    def end(self) -> float:
        self._is_over.set()
        self._thread.join()
        return self.peak - self._first


class Bench:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool
        self.stores = postgres_stores(PostgresSession(pool, QUERIES))

    async def opened(self, samples: int, rollouts: int, metrics: tuple[str, ...]) -> str:
        sample_set_id = new_id()
        await self.stores.sample_sets.stage(sample_set_id, [choice_sample(0, sample_set_id)])
        await self.stores.sample_sets.commit(sample_set_id, 1)
        plan = plan_of([samples], [sample_set_id], rollouts=rollouts)
        scoring = TaskScoring(OutputType.GENERATE_UNTIL, tuple(map(MetricUse, metrics)))
        [task] = plan.tasks
        await self.stores.records.open(replace(plan, tasks=(replace(task, scoring=scoring),)), 1)
        return plan.run_id

    async def filled(self, kind: str, outcomes: int) -> str:
        rollouts = ROLLOUTS if kind == "means" else 1
        run_id = await self.opened(outcomes // rollouts, rollouts, METRICS[kind])
        statement = FILL.replace("$1", run_id).replace("$2", str(outcomes // rollouts))
        statement = statement.replace("$3", str(rollouts)).replace("$4", SCORES[kind])
        async with self.pool.acquire() as connection:
            await connection.execute(statement, timeout=FILL_SECONDS)
            await connection.execute(
                "INSERT INTO task_counts (run_id, task_index, recorded, unparsed) VALUES ($1, 0, $2, 0)",
                run_id,
                outcomes,
            )
            await connection.execute("VACUUM ANALYZE outcomes", timeout=FILL_SECONDS)
        return run_id

    async def record_beside(self, measured: Measured) -> None:
        """Records outcomes of another run one batch after the other, as long as it is let."""
        run_id = await self.opened(10_000_000, 1, ("exact_match",))
        for start in range(0, 10_000_000, 64):
            rows = [
                replace(scored(run_id, answered(at)), scores={"exact_match": 1.0})
                for at in range(start, start + 64)
            ]
            began = time.monotonic()
            measured.recorded += await self.stores.outcomes.record(rows)
            wait = time.monotonic() - began
            measured.longest_wait_ms = max(measured.longest_wait_ms, wait * 1000)
            await asyncio.sleep(0.01)

    async def close(self, kind: str, outcomes: int) -> Measured:
        run_id, measured = await self.filled(kind, outcomes), Measured(outcomes)
        clock = SystemClock()
        close_run = CloseRun(
            records=self.stores.records,
            summaries=self.stores.summaries,
            leases=PostgresLeases(session=PostgresSession(self.pool, QUERIES), holder=new_id()),
            summarize_run=SummarizeRun(stores=self.stores, clock=clock),
            limit_seconds=3600.0,
        )
        beside = asyncio.create_task(self.record_beside(measured))
        peak, began = MemoryPeak(), time.monotonic()
        summary: RunSummary | None = None
        while summary is None:
            closing = await close_run.close(run_id, 1, RunState.COMPLETED, allow_partial=False)
            summary, measured.calls = closing.summary, measured.calls + 1
        measured.seconds, measured.peak_mib = time.monotonic() - began, peak.end()
        beside.cancel()
        if summary.problems:
            raise SystemExit(str(summary.problems))
        return measured


def print_closes(measured: dict[tuple[str, int], Measured]) -> None:
    table = Table(title="Closes of runs")
    columns = (
        "figures",
        "outcomes",
        "seconds",
        "µs/outcome",
        "peak MiB",
        "calls",
        "recorded beside/s",
        "longest wait, ms",
    )
    for heading in columns:
        table.add_column(heading, justify="right" if table.columns else "left")
    for (name, _), one in measured.items():
        rate, speed = one.seconds / one.outcomes * 1e6, one.recorded / one.seconds
        numbers = (
            f"{one.outcomes:,}",
            f"{one.seconds:.1f}",
            f"{rate:.1f}",
            f"{one.peak_mib:.0f}",
            str(one.calls),
        )
        table.add_row(name, *numbers, f"{speed:,.0f}", f"{one.longest_wait_ms:.0f}")
    Console(width=120).print(table)


async def main() -> None:
    measured: dict[tuple[str, int], Measured] = {}
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            bench = Bench(pool)
            for size in SIZES:
                for kind in METRICS:
                    measured[kind, size] = await bench.close(kind, size)
    print_closes(measured)
