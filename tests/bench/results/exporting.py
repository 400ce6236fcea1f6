"""A run as a file: rows per second from Postgres to a client of the HTTP door, first byte, CPU and memory.

The rows are put into the tables by SQL. They are a data set's: chats of some 400 bytes, answers of 170.
"""

import asyncio
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg
from rich.console import Console
from rich.table import Table

from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.postgres import SCHEMA
from services.results.runs.postgres import PROVENANCE, SCORING
from services.results.runs.run_plan import TaskProvenance
from tests.bench.harness.process_tree import usage_of_tree
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

SIZES = (100_000, 1_000_000)
LOOK_SECONDS = 0.2
READ_BYTES = 1024 * 1024
FILL_SECONDS = 900.0
TEXT_SCORING = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("exact_match"),))

# $1 run, $2 set, $3 rows, $4 how it is scored, $5 where it came from
FILL = (
    "INSERT INTO sample_sets (sample_set_id, digest) VALUES ($2::uuid, sha256($2::text::bytea))",
    """
    INSERT INTO run_records (
        run_id, epoch, is_frozen, rollouts, scoring_method, is_truncated_left, benchmark, model, state,
        frozen_at
    ) VALUES ($1::uuid, 1, true, 1, 'generate', false, 'ds_1', 'vllm/tiny', 'completed', now())
    """,
    """
    INSERT INTO run_tasks
        (run_id, task_index, task, sample_set_id, first_sample, sample_count, scoring, provenance)
    VALUES ($1::uuid, 0, 'rows', $2::uuid, 0, $3::integer, $4::jsonb, $5::jsonb)
    """,
    """
    INSERT INTO task_counts (run_id, task_index, recorded, unparsed) VALUES ($1, 0, $3, 0)
    """,
    """
    INSERT INTO samples (
        sample_set_id, position, doc_id, digest, prompt_messages, choices, target_texts, cluster, row_id
    )
    SELECT
        $2::uuid, n, n, sha256(n::text::bytea), jsonb_build_array(
            jsonb_build_array('system', 'Answer the question. Give only the answer, with no explanation.'),
            jsonb_build_array('user', concat(
                'Is sentence ', n, E' grammatical?\\n\\n',
                repeat('The sailors "rode" the breeze clear of rocks. ', 7)
            ))
        ), '{}', '{yes}', '', 'row-' || n
    FROM generate_series(0, $3::integer - 1) AS n
    """,
    """
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status,
        failure_message, answer_text, finish_reason, choices, prediction, scores, prompt_tokens,
        completion_tokens, cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
    )
    SELECT
        $1::uuid, n, 0, 0, n / 64, 1, 1, 'scored',
        '', concat('Answer ', n, ': ', repeat('I think "yes". ', 10)), 'stop', '[]', 'yes',
        '{"exact_match": 1.0}', 70, 12, 0, 0, random(), random() / 10, random() / 5
    FROM generate_series(0, $3::integer - 1) AS n
    """,
)


@dataclass
class Measured:
    """`rows` of the run, though only the last bytes were asked for. Peaks are of private memory, in MiB."""

    rows: int
    lines: int = 0
    size_bytes: int = 0
    first_byte_seconds: float = 0.0
    seconds: float = 0.0
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FilledRun:
    run_id: str
    rows: int


async def fill(dsn: str, rows: int) -> FilledRun:
    """A closed run of so many rows."""
    run_id, sample_set_id = str(uuid.uuid4()), str(uuid.uuid4())
    arguments = {
        1: run_id,
        2: sample_set_id,
        3: rows,
        4: SCORING.dump_json(TEXT_SCORING).decode(),
        5: PROVENANCE.dump_json(TaskProvenance()).decode(),
    }
    connection = await asyncpg.connect(dsn, server_settings={"search_path": SCHEMA})
    for statement in FILL:
        await connection.execute(_literal(statement, arguments), timeout=FILL_SECONDS)
    await connection.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    await connection.close()
    return FilledRun(run_id, rows)


def _literal(statement: str, arguments: dict[int, object]) -> str:
    """Not every statement uses every argument, which a prepared one would have to."""
    for number, value in arguments.items():
        statement = statement.replace(f"${number}", str(value) if isinstance(value, int) else f"'{value}'")
    return statement


@asynccontextmanager
async def watched(stack: StackHarness, measured: Measured) -> AsyncIterator[None]:
    pids = {name: child.pid for name, child in stack.stack.children.items() if child.pid}
    before = {name: usage_of_tree(pid).cpu_seconds for name, pid in pids.items()}

    async def look() -> None:
        while True:
            for name, pid in pids.items():
                mib = usage_of_tree(pid).anon_mib
                measured.peak_mib[name] = max(measured.peak_mib.get(name, 0.0), mib)
            await asyncio.sleep(LOOK_SECONDS)

    looking = asyncio.create_task(look())
    yield
    looking.cancel()
    measured.cpu_seconds = {name: usage_of_tree(pid).cpu_seconds - before[name] for name, pid in pids.items()}


async def download(stack: StackHarness, run: FilledRun, form: str, first_byte: int = 0) -> Measured:
    """The whole file, or what comes after some bytes, read as fast as it comes and kept nowhere."""
    measured = Measured(run.rows)
    url = f"http://{stack.stack.gateway_http}/api/v1/benchmarking/results/{run.run_id}/export?format={form}"
    headers = {"Range": f"bytes={first_byte}-"} if first_byte else {}
    timeout = aiohttp.ClientTimeout(total=None)
    async with watched(stack, measured), aiohttp.ClientSession(timeout=timeout) as session:
        started = time.monotonic()
        async with session.get(url, headers=headers) as response:
            response.raise_for_status()
            async for piece in response.content.iter_chunked(READ_BYTES):
                if not measured.size_bytes:
                    measured.first_byte_seconds = time.monotonic() - started
                measured.size_bytes += len(piece)
                measured.lines += piece.count(b"\n")
        measured.seconds = time.monotonic() - started
    return measured


def print_rates(measured: dict[str, Measured]) -> None:
    table = Table(title="Exports over HTTP")
    columns = ("file", "rows/s", "MB/s", "first byte, ms", "seconds", "CPU s per 1,000", "of it Postgres")
    for heading in columns:
        table.add_column(heading, justify="right" if table.columns else "left")
    for name, one in measured.items():
        cpu = sum(one.cpu_seconds.values()) / one.rows * 1000
        postgres = one.cpu_seconds["postgres"] / one.rows * 1000
        rates = (f"{one.rows / one.seconds:,.0f}", f"{one.size_bytes / one.seconds / 1e6:.0f}")
        times = (f"{one.first_byte_seconds * 1000:.0f}", f"{one.seconds:.1f}")
        table.add_row(name, *rates, *times, f"{cpu:.3f}", f"{postgres:.3f}")
    Console(width=110).print(table)


def print_memory(measured: dict[str, Measured]) -> None:
    table = Table("file", *next(iter(measured.values())).peak_mib, title="Peak private memory, MiB")
    for name, one in measured.items():
        table.add_row(name, *(f"{mib:.0f}" for mib in one.peak_mib.values()))
    Console(width=110).print(table)


async def measure(sizes: tuple[int, ...]) -> dict[str, Measured]:
    measured: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        async with stack_harness(Path(folder), StackOrder(environment={})) as stack:
            dsn = stack.stack.postgres_dsn
            await download(stack, await fill(dsn, 1000), "jsonl")  # what is loaded on first use
            for size in sizes:
                run = await fill(dsn, size)
                whole = await download(stack, run, "jsonl")
                if whole.lines != size:
                    raise SystemExit(f"{whole.lines} rows came of {size}")
                measured[f"{size:,} jsonl"] = whole
                measured[f"{size:,} csv"] = await download(stack, run, "csv")
                rest = await download(stack, run, "jsonl", whole.size_bytes * 9 // 10)
                measured[f"{size:,} jsonl, last tenth"] = rest
    return measured


async def main() -> None:
    measured = await measure(SIZES)
    print_rates(measured)
    print_memory(measured)
