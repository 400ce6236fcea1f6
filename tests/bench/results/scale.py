"""The life of one large run: recorded, closed, read, searched, compared, exported, archived and restored.

`PROCTOR_SCALE_OUTCOMES=10000000 python -m tests.bench scale` measures ten million outcomes (default: one);
they take some 12 GB of disk for two runs over the same rows, which SQL fills. Memory is that of this process.
"""

import os
import tempfile
from pathlib import Path

import asyncpg
from rich.console import Console
from rich.table import Table

from proctor.values.run import RunState
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.results.answers.list_outcomes import ListOutcomes, OutcomeQuery
from services.results.answers.outcome_filter import OutcomeFilter
from services.results.answers.wiring import make_list_outcomes
from services.results.archives.archive_run import ArchiveRun
from services.results.archives.parquet_parts import ParquetParts
from services.results.archives.postgres import PostgresArchives
from services.results.archives.postgres_reads import ArchivedReads
from services.results.comparison.compare_runs import CompareQuery
from services.results.export.exported_run import RowKind, RowQuery
from services.results.export.postgres import PostgresExportRows
from services.results.leases.postgres import PostgresLeases
from services.results.outcomes.outcome import BEFORE_ALL
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.summaries.close_run import CloseRun
from services.results.summaries.summarize_run import SummarizeRun
from tests.bench.results.archiving import Steps
from tests.bench.results.comparing import FILL_SECONDS, add_run, add_set, compare_runs
from tests.fakes.results.recorded_run import answered, new_id, plan_of, scored
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

OUTCOMES = int(os.environ.get("PROCTOR_SCALE_OUTCOMES", "1000000"))
RECORDED = 100_000
BATCH = 250
PAGE = 100


class LargeRun:
    """`other_id` is a run over the same samples."""

    def __init__(self, pool: asyncpg.Pool, folder: Path, run_id: str, other_id: str) -> None:
        self.pool, self.run_id, self.other_id = pool, run_id, other_id
        self.session, self.clock = PostgresSession(pool, QUERIES), SystemClock()
        files = ParquetParts(ObstoreObjects(folder.as_uri()))
        self.session.make_call = ArchivedReads(files).call
        self.stores = postgres_stores(self.session)
        self.archives = ArchiveRun(
            self.stores.records, PostgresArchives(self.session), files, self.clock, settled_seconds=0
        )

    async def live(self, steps: Steps) -> None:
        await steps.time(f"record {RECORDED:,} of another run", self.record)
        await steps.time("close", lambda: self.close(self.run_id))
        await self.close(self.other_id)
        await self.read(steps, "Postgres")
        await steps.time("compare with a run over the same samples", self.compare)
        await steps.time("export as JSONL", self.export)
        await self.pool.execute("UPDATE run_records SET compared_epoch = epoch")
        await steps.time("archive", self.archive)
        await self.read(steps, "archive")
        await steps.time("export as JSONL, from the archive", self.export)
        await steps.time("restore", self.restore)

    async def read(self, steps: Steps, where: str) -> None:
        nothing = OutcomeFilter(text="in no prompt and in no answer")
        middle = OutcomeQuery(self.run_id, page_size=PAGE, first=(OUTCOMES // 2, 0))
        await steps.time(f"{where}: first page", lambda: self.page(OutcomeQuery(self.run_id, page_size=PAGE)))
        await steps.time(f"{where}: a page in the middle", lambda: self.page(middle))
        await steps.time(f"{where}: a text that is nowhere, to the end", lambda: self.search(nothing))

    @property
    def _listing(self) -> ListOutcomes:
        return make_list_outcomes(self.session, self.stores, self.clock)

    async def page(self, query: OutcomeQuery) -> None:
        assert len((await self._listing.list_page(query)).outcomes) == PAGE

    async def search(self, wanted: OutcomeFilter) -> None:
        """As a page does: call after call, each going on where the last one stopped."""
        token, listing = "", self._listing
        while True:
            page = await listing.list_page(
                OutcomeQuery(self.run_id, page_size=PAGE, page_token=token, filter=wanted)
            )
            assert not page.outcomes
            if not (token := page.next_page_token):
                return

    async def record(self) -> None:
        plan = plan_of([RECORDED], [await add_set(self.pool, 0, is_clustered=False, samples=RECORDED)])
        await self.stores.records.open(plan, 1)
        for start in range(0, RECORDED, BATCH):
            rows = [scored(plan.run_id, answered(at)) for at in range(start, start + BATCH)]
            assert await self.stores.outcomes.record(rows) == BATCH

    async def close(self, run_id: str) -> None:
        close_run = CloseRun(
            records=self.stores.records,
            summaries=self.stores.summaries,
            leases=PostgresLeases(session=self.session, holder=new_id()),
            summarize_run=SummarizeRun(stores=self.stores, clock=self.clock),
            limit_seconds=3600.0,
        )
        while not (await close_run.close(run_id, 1, RunState.COMPLETED, allow_partial=False)).summary:
            pass

    async def compare(self) -> None:
        query = CompareQuery((self.run_id, self.other_id), metrics=("acc",))
        comparison = await compare_runs(self.session).compare(query)
        assert comparison.differences[0].estimate.pairs == OUTCOMES

    async def export(self) -> None:
        query = RowQuery(RowKind.LINE, await self.stores.records.get(self.run_id), 0)
        lines = 0
        async for chunk in PostgresExportRows(self.session).chunks(query, BEFORE_ALL):
            lines += len(chunk.rows)
        assert lines == OUTCOMES

    async def archive(self) -> None:
        while not await self.archives.archive(self.run_id):
            pass

    async def restore(self) -> None:
        while not await self.archives.restore(self.run_id):
            pass


async def filled(pool: asyncpg.Pool, folder: Path) -> LargeRun:
    """Two open runs, whose outcomes are all there."""
    sample_set_id = await add_set(pool, 0, is_clustered=False, samples=OUTCOMES)
    run_id, other_id = [await add_run(pool, sample_set_id, share, OUTCOMES) for share in (0.72, 0.7)]
    await pool.execute("UPDATE run_records SET is_frozen = false, state = NULL, frozen_at = NULL")
    await pool.executemany(
        "INSERT INTO task_counts (run_id, task_index, recorded, unparsed) VALUES ($1, 0, $2, 0)",
        [(run_id, OUTCOMES), (other_id, OUTCOMES)],
    )
    await pool.execute("VACUUM ANALYZE", timeout=FILL_SECONDS)
    return LargeRun(pool, folder, run_id, other_id)


async def main() -> None:
    steps = Steps()
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
            async with await connect_pool(server.address, schema=SCHEMA) as pool:
                await (await filled(pool, Path(folder))).live(steps)
    shown = Table("step", "seconds", "CPU s", "peak MiB", title=f"A run of {OUTCOMES:,} outcomes")
    for row in steps.rows:
        shown.add_row(*row)
    Console(width=110).print(shown)
