"""An archive that is killed at any step goes on: nothing is lost or doubled, and readers see all of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.run import RunState
from services.common.clock import SystemClock
from services.common.errors import ObjectStoreUnavailable
from services.common.migrations import migrate
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.results.answers.ports import KeyScan
from services.results.answers.postgres import PostgresAnswers
from services.results.archives.archive import ArchivePhase, folder_of
from services.results.archives.archive_run import ArchiveRun
from services.results.archives.parquet_parts import ParquetParts
from services.results.archives.postgres import PostgresArchives
from services.results.archives.postgres_reads import ArchivedReads
from services.results.decisions.decide_runs import DecideRuns, DecisionQuery
from services.results.decisions.postgres import PostgresAnsweredSamples
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.outcome import BEFORE_ALL
from services.results.outcomes.ports import AnswerSource
from services.results.outcomes.postgres import PostgresReuse, after_key
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.errors import RecordNotFound, RunArchived
from services.results.runs.run_plan import RunPlan
from services.results.summaries.ports import Stores
from tests.fakes.results.recorded_run import answered, choice_sample, failed, new_id, plan_of, scored
from tests.fakes.results.stores import close_run_of, postgres_stores
from tests.fakes.thorough_cases import first_cases
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

SIZE = 13
ENGINE = {"engine": "fake"}
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
    run_id = (await opened_run(stores)).run_id
    outcomes = [failed(at) if at == 3 else answered(at) for at in range(SIZE)]
    await stores.outcomes.record([scored(run_id, outcome) for outcome in outcomes])
    await stores.records.add_environment(run_id, ENGINE)
    await close_run_of(stores).close(run_id, 1, RunState.FAILED, allow_partial=False)
    return run_id


async def opened_run(stores: Stores) -> RunPlan:
    """All are over the same samples, and ask the same."""
    staging_id = new_id()
    await stores.sample_sets.stage(staging_id, [choice_sample(at) for at in range(SIZE)])
    sample_set = await stores.sample_sets.commit(staging_id, SIZE)
    plan = plan_of([SIZE], [sample_set.sample_set_id])
    tasks = tuple(replace(task, request_digest=b"a" * 32) for task in plan.tasks)
    return (await stores.records.open(replace(plan, tasks=tasks), 1)).plan


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


async def test_figures_of_a_run_are_not_replaced_once_its_answers_are_archived(
    installation: Installation,
) -> None:
    run_id, stores = await closed_run(installation), postgres_stores(installation.session)
    await stores.summaries.add_problem(run_id, 1, "Baselines cannot be computed.")
    kept = await stores.summaries.find(run_id, 1)
    await finish(installation.archives().archive, run_id, whole=nothing)
    with pytest.raises(RunArchived):
        await close_run_of(stores).close_run.close_again(run_id)
    assert await stores.summaries.find(run_id, 1) == kept


async def test_answers_that_are_archived_while_they_are_reused_are_passed_over(
    installation: Installation,
) -> None:
    run_id, stores = await closed_run(installation), postgres_stores(installation.session)
    plan = await opened_run(stores)

    class Sources(PostgresReuse):
        async def sources(self, *asked: Any) -> Sequence[AnswerSource]:
            found = await super().sources(*asked)
            assert [source.run_id for source in found][:1] == [run_id]
            await finish(installation.archives().archive, run_id, whole=nothing)
            return found[:1]

    reuse = ReuseAnswers(stores.records, stores.outcomes, Sources(installation.session))
    assert await reuse.reuse(plan.run_id, 1, ENGINE) == 0
    await finish(installation.archives().restore, run_id, whole=nothing)
    whole = ReuseAnswers(stores.records, stores.outcomes, PostgresReuse(installation.session))
    # All but the one that failed.
    assert await whole.reuse(plan.run_id, 1, ENGINE) == SIZE - 1


async def test_nothing_is_decided_by_a_run_whose_answers_are_archived(installation: Installation) -> None:
    run_id, stores = await closed_run(installation), postgres_stores(installation.session)
    plan = await opened_run(stores)
    await finish(installation.archives().archive, run_id, whole=nothing)
    deciding = DecideRuns(stores.records, PostgresAnsweredSamples(installation.session))
    assert await deciding.decide(DecisionQuery(plan.run_id, run_id, seed=4, alpha=0.05)) is None


async def test_a_restoration_waits_for_a_deletion_under_way(installation: Installation) -> None:
    """Else it would find rows stored that are deleted a moment later."""
    run_id = await closed_run(installation)
    archives = PostgresArchives(installation.session, part_outcomes=5)
    while await archives.phase(run_id) is not ArchivePhase.CLEARING:
        await installation.archives().archive(run_id)
    advancing = "SELECT FROM run_records WHERE run_id = $1 FOR NO KEY UPDATE NOWAIT"
    async with installation.session.transaction() as deleting:
        chunk = {"run_id": run_id, **after_key(BEFORE_ALL), "limit": 5}
        assert await deleting.fetchrow("clear_outcomes", **chunk) is not None
        async with installation.session.transaction() as restoring:
            with pytest.raises(asyncpg.LockNotAvailableError):
                await restoring.connection.execute(advancing, run_id)


async def test_rows_stay_where_a_file_of_them_is_missing(installation: Installation) -> None:
    """And the run is restored without it."""
    run_id, archives = await closed_run(installation), installation.archives()
    rows = await installation.rows(run_id)
    while await archives.archives.phase(run_id) is not ArchivePhase.CLEARING:
        await archives.archive(run_id)
    installation.objects.delete([key for key in installation.keys(run_id) if "outcomes-000001-" in key])
    with pytest.raises(ObjectStoreUnavailable, match="lacks part 1"):
        await archives.archive(run_id)
    assert await installation.rows(run_id) == rows
    await finish(archives.restore, run_id, whole=nothing)
    assert (await installation.rows(run_id), installation.keys(run_id)) == (rows, [])


async def test_a_deletion_that_slept_deletes_no_file_of_the_next_archive(installation: Installation) -> None:
    run_id, archives = await closed_run(installation), installation.archives()
    shown = await installation.read(run_id)
    await finish(archives.archive, run_id, whole=nothing)
    while await archives.archives.phase(run_id) is not ArchivePhase.REMOVING:
        await archives.restore(run_id)

    class Sleeping(ParquetParts):
        async def keys(self, run_id: str) -> list[str]:
            found = await super().keys(run_id)
            await finish(archives.restore, run_id, whole=nothing)
            await finish(archives.archive, run_id, whole=nothing)
            return found

    sleeper = replace(archives, files=Sleeping(installation.objects))
    assert not await sleeper.restore(run_id)
    assert await installation.read(run_id) == shown


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
