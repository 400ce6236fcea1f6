"""An archive that is killed at any step goes on: nothing is lost or doubled, and readers see all of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from proctor.values.run import RunState
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.results.answers.ports import KeyScan
from services.results.answers.postgres import PostgresAnswers
from services.results.archives.archive import folder_of
from services.results.archives.archive_run import ArchiveRun
from services.results.archives.parquet_parts import ParquetParts
from services.results.archives.postgres import PostgresArchives
from services.results.archives.postgres_reads import ArchivedReads
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.outcome import BEFORE_ALL
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.errors import RecordNotFound
from tests.fakes.results.recorded_run import answered, choice_sample, failed, new_id, plan_of, scored
from tests.fakes.results.stores import close_run_of, postgres_stores
from tests.fakes.thorough_cases import first_cases
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

SIZE = 13
# More than an archive of so many outcomes makes, each before and after it has had its effect.
STEPS = 40


class Killed(BaseException):
    """The process ends here."""


@dataclass(slots=True)
class Kills:
    """Ends the process at a step: before its effect, or after it where nobody learns of it."""

    at: int
    done: int = 0

    def killing(self, part: Any) -> Any:
        return _Killing(part, self)

    async def step(self, call: Callable[[], Awaitable[Any]]) -> Any:
        number, self.done = self.done, self.done + 2
        if number == self.at:
            raise Killed
        result = await call()
        if number + 1 == self.at:
            raise Killed
        return result


@dataclass(slots=True)
class _Killing:
    part: Any
    kills: Kills

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.part, name)
        if name == "check":
            return method
        return lambda *arguments: self.kills.step(lambda: method(*arguments))


@dataclass(frozen=True, slots=True)
class Installation:
    session: PostgresSession
    objects: ObstoreObjects

    @property
    def files(self) -> ParquetParts:
        return ParquetParts(self.objects)

    def keys(self, run_id: str) -> list[str]:
        return list(self.objects.keys(folder_of(run_id)))

    def archives(self, kills: Kills | None = None) -> ArchiveRun:
        parts: tuple[Any, Any] = PostgresArchives(self.session, part_outcomes=5), self.files
        archives, files = map(kills.killing, parts) if kills else parts
        records = postgres_stores(self.session).records
        return ArchiveRun(records, archives, files, SystemClock(), settled_seconds=0)

    async def rows(self, run_id: str) -> list[str]:
        rows = "SELECT o::text FROM outcomes AS o WHERE run_id = $1 ORDER BY sample, rollout"
        async with self.session.transaction() as transaction:
            return [row[0] for row in await transaction.connection.fetch(rows, run_id)]

    async def read(self, run_id: str) -> list[Any]:
        """As every reader does."""
        answers = PostgresAnswers(self.session)
        keys = await answers.keys(KeyScan(run_id, BEFORE_ALL, SIZE, SIZE))
        return await answers.read(run_id, keys)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    objects = tmp_path_factory.mktemp("objects")
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            made = Installation(PostgresSession(pool, QUERIES), ObstoreObjects(objects.as_uri()))
            made.session.make_call = ArchivedReads(made.files).call
            yield made


async def closed_run(installation: Installation) -> str:
    stores = postgres_stores(installation.session)
    staging_id = new_id()
    await stores.sample_sets.stage(staging_id, [choice_sample(at, staging_id) for at in range(SIZE)])
    sample_set = await stores.sample_sets.commit(staging_id, SIZE)
    plan = (await stores.records.open(plan_of([SIZE], [sample_set.sample_set_id]), 1)).plan
    outcomes = [failed(at) if at == 3 else answered(at) for at in range(SIZE)]
    await stores.outcomes.record([scored(plan.run_id, outcome) for outcome in outcomes])
    await close_run_of(stores).close(plan.run_id, 1, RunState.FAILED, allow_partial=False)
    return plan.run_id


async def finish(
    step: Callable[[str], Awaitable[bool]], run_id: str, whole: Callable[[], Awaitable[None]]
) -> None:
    """The leader calls until it is done. After each call readers see everything."""
    while not await step(run_id):
        await whole()


async def test_a_deleted_run_leaves_no_file(installation: Installation) -> None:
    stores = postgres_stores(installation.session)
    archived, begun = await closed_run(installation), await closed_run(installation)
    archives = installation.archives()
    await finish(archives.archive, archived, whole=nothing)
    assert installation.keys(archived)
    delete = DeleteRunRecord(stores.records, stores.outcomes, archives)
    for run_id in (archived, begun):
        await delete.delete(run_id)
    # A leader that has not noticed yet writes one more file.
    await PostgresArchives(installation.session).begin(begun)
    with pytest.raises(RecordNotFound):
        await archives._write_part(begun, 0, BEFORE_ALL)
    await delete.sweep()
    assert not installation.keys(archived)
    assert not installation.keys(begun)
    assert await installation.rows(begun) == []


async def nothing() -> None:
    """Readers do not look."""


# The first one is not killed.
@first_cases(5, "at", [-1, 4, 13, 17, 22, *range(2 * STEPS)])
async def test_archives_outlive_a_kill_at_any_step(installation: Installation, at: int) -> None:
    run_id = await closed_run(installation)
    rows, shown = await installation.rows(run_id), await installation.read(run_id)
    assert len(rows) == len(shown) == SIZE

    async def whole() -> None:
        assert await installation.read(run_id) == shown

    for is_archive in (True, False):
        kills = Kills(at)
        killed, after = installation.archives(kills), installation.archives()
        with suppress(Killed):
            await finish(killed.archive if is_archive else killed.restore, run_id, whole)
        assert kills.done < 2 * STEPS
        await whole()
        await finish(after.archive if is_archive else after.restore, run_id, whole)
        await whole()
        assert await installation.rows(run_id) == ([] if is_archive else rows)
