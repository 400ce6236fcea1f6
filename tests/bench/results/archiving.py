"""A run in Postgres, in the object store and back: seconds, CPU and memory of results, and bytes in Postgres.

Other services wait meanwhile, so the CPU is that of this process; what Postgres takes is in the seconds.
"""

import resource
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import Connection, PostgresSession, connect_pool
from services.results.answers.ports import KeyScan
from services.results.answers.postgres import PostgresAnswers
from services.results.archives.archive_run import ArchiveRun
from services.results.archives.parquet_parts import ParquetParts
from services.results.archives.postgres import PostgresArchives
from services.results.archives.postgres_reads import ArchivedReads
from services.results.comparison.postgres import PostgresPairs
from services.results.export.exported_run import RowKind, RowQuery
from services.results.export.postgres import PostgresExportRows
from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from tests.bench.results.exporting import fill
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

SIZE = 100_000
PAGE = 100
# Closed as the service leaves it: summarised, and compared with its peers.
CLOSE = (
    "INSERT INTO run_summaries (run_id, epoch, summary) VALUES ($1, 1, '{}')",
    "UPDATE run_records SET compared_epoch = epoch WHERE run_id = $1",
)


@dataclass(slots=True)
class Steps:
    rows: list[tuple[str, ...]] = field(default_factory=list)

    async def time(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        started, cpu = time.monotonic(), time.process_time()
        await step()
        seconds, cpu = time.monotonic() - started, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name}: {seconds:.2f} s", flush=True)
        self.rows.append((name, f"{seconds:.2f}", f"{cpu:.2f}", f"{peak:.0f}"))


@dataclass(frozen=True, slots=True)
class Readers:
    """What users read of a run: pages, a file and a comparison with another."""

    session: PostgresSession
    run_id: str
    other_id: str

    async def time(self, steps: Steps, where: str) -> None:
        await steps.time(f"{where}: first page of {PAGE}", lambda: self.page(BEFORE_ALL))
        await steps.time(f"{where}: a page in the middle", lambda: self.page((SIZE // 2, 0)))
        await steps.time(f"{where}: the next page", lambda: self.page((SIZE // 2 + PAGE, 0)))
        await steps.time(f"{where}: export as JSONL", self.export)
        await steps.time(f"{where}: pairs with a run in Postgres", self.pairs)

    async def page(self, after: OutcomeKey) -> None:
        answers = PostgresAnswers(self.session)
        keys = await answers.keys(KeyScan(self.run_id, after, SIZE, PAGE))
        assert len(await answers.read(self.run_id, keys)) == PAGE

    async def export(self) -> None:
        record = await postgres_stores(self.session).records.get(self.run_id)
        lines = 0
        async for chunk in PostgresExportRows(self.session).chunks(
            RowQuery(RowKind.LINE, record, 0), BEFORE_ALL
        ):
            lines += len(chunk.rows)
        assert lines == SIZE

    async def pairs(self) -> None:
        records = postgres_stores(self.session).records
        plans = [(await records.get(run_id)).plan for run_id in (self.run_id, self.other_id)]
        await PostgresPairs(self.session).pairs(plans[0], plans[1], {"rows": ["exact_match"]})


async def table_mib(connection: Connection) -> str:
    await connection.execute("VACUUM outcomes")
    size = await connection.fetchval("SELECT pg_total_relation_size('outcomes')")
    count = await connection.fetchval("SELECT count(*) FROM outcomes")
    return f"{count:,} rows, {size / 2**20:.0f} MiB"


async def measure(dsn: str, folder: Path) -> tuple[Steps, dict[str, str]]:
    await migrate(dsn, SCHEMA, MIGRATIONS)
    other, run = await fill(dsn, SIZE), await fill(dsn, SIZE)
    steps, table = Steps(), {}
    async with await connect_pool(dsn, schema=SCHEMA) as pool, pool.acquire() as connection:
        for statement in CLOSE:
            await connection.execute(statement, run.run_id)
        session, files = PostgresSession(pool, QUERIES), ParquetParts(ObstoreObjects(folder.as_uri()))
        session.make_call = ArchivedReads(files).call
        records = postgres_stores(session).records
        archives = ArchiveRun(records, PostgresArchives(session), files, SystemClock(), settled_seconds=0)
        readers = Readers(session, run.run_id, other.run_id)

        async def until(step: Callable[[str], Awaitable[bool]]) -> None:
            while not await step(run.run_id):
                pass

        await readers.time(steps, "Postgres")
        table["before"] = await table_mib(connection)
        await steps.time("archive", lambda: until(archives.archive))
        table["archived"] = await table_mib(connection)
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        table["files"] = f"{len(sizes)} files, {sum(sizes) / 2**20:.0f} MiB"
        await readers.time(steps, "archive")
        await steps.time("restore", lambda: until(archives.restore))
        table["restored"] = await table_mib(connection)
    return steps, table


async def main() -> None:
    async with postgres_server() as server:
        with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
            steps, table = await measure(server.address, Path(folder))
    shown = Table("step", "seconds", "CPU s", "peak MiB", title=f"An archive of {SIZE:,} outcomes")
    for row in steps.rows:
        shown.add_row(*row)
    Console(width=110).print(shown)
    sizes = Table(*table, title="Outcomes of two runs in Postgres, and of one in the store")
    sizes.add_row(*table.values())
    Console(width=110).print(sizes)
