"""Runs are archived by order or by age, step by step, and not retried before they are restored."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.values.names.user import Caller
from proctor.values.run import ArchiveState, RunCounts, RunId, RunState
from services.common.errors import BelongsToAnother, ErrorKind, RemoteError
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.scheduler.projects.manage_projects import ManageProjects
from services.scheduler.projects.postgres import PostgresProjects
from services.scheduler.projects.project import ProjectChanges
from services.scheduler.runs.archives.archive_old_runs import ArchiveOldRuns
from services.scheduler.runs.archives.archive_runs import ArchiveRuns
from services.scheduler.runs.archives.postgres import PostgresRunArchives
from services.scheduler.runs.lifecycle.errors import RunNotArchivable
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.postgres_led import PostgresLedRuns
from services.scheduler.runs.lifecycle.run import RunFinish
from tests.fakes.callers import OPERATOR, by
from tests.fakes.scheduler.stores import new_run
from tests.fakes.scheduler.surroundings import START, SetClock
from tests.fakes.scheduler_rules import queue_limits
from tests.harness.servers import ordinary_role, postgres_server

MB = 10**6

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class StepwiseArchive:
    """Results: each archive takes two calls."""

    has_store: bool = True
    archived: set[RunId] = field(default_factory=set)
    begun: set[tuple[str, RunId]] = field(default_factory=set)

    async def archive_run(self, run_id: RunId) -> bool:
        if not self.has_store:
            raise RemoteError(ErrorKind.CONFLICT, "UNSUPPORTED", "There is no store.", {})
        return self._step("archive", run_id)

    async def restore_run(self, run_id: RunId) -> bool:
        return self._step("restore", run_id)

    def _step(self, what: str, run_id: RunId) -> bool:
        is_done = (what, run_id) in self.begun
        self.begun ^= {(what, run_id)}
        if is_done:
            (self.archived.add if what == "archive" else self.archived.discard)(run_id)
        return is_done


@dataclass(frozen=True)
class Scheduler:
    session: PostgresSession
    runs: PostgresRuns
    token: FencingToken
    record: StepwiseArchive

    @property
    def archives(self) -> ArchiveRuns:
        return ArchiveRuns(
            self.runs, PostgresRunArchives(self.session), self.record, SetClock(), lambda: None
        )

    async def closed(self, *, at: datetime = START, project_id: int = 0, answer_bytes: int = 0) -> RunId:
        run = await self.runs.add(new_run(project_id=project_id), "")
        counts = RunCounts(run.epoch, answer_bytes=answer_bytes)
        finish = RunFinish(RunState.CANCELLED, at, counts=counts)
        await PostgresLedRuns(self.session).finish(self.token, run, finish)
        return run.run_id

    async def state(self, run_id: RunId) -> ArchiveState | None:
        return (await self.runs.get(run_id)).archive_state

    async def changes(self, run_id: RunId) -> list[tuple[str, str, str]]:
        async with self.session.transaction() as transaction:
            rows = await transaction.connection.fetch(
                "SELECT username, action, detail FROM audit_records WHERE object_id = $1 ORDER BY record_id",
                run_id,
            )
            return [tuple(row) for row in rows][1:]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scheduler() -> AsyncIterator[Scheduler]:
    async with postgres_server() as server:
        dsn = await ordinary_role(server.address)
        await migrate(dsn, SCHEMA, MIGRATIONS)
        async with await connect_pool(dsn, schema=SCHEMA) as pool:
            session = PostgresSession(pool, QUERIES)
            runs = PostgresRuns(session, PostgresLimits(session, queue_limits(max_pending_runs_per_user=100)))
            token = FencingToken(await pool.fetchval(QUERIES["begin_term"].statement))
            yield Scheduler(session, runs, token, StepwiseArchive())


async def test_a_run_is_archived_and_restored_step_by_step(scheduler: Scheduler) -> None:
    run_id = await scheduler.closed()
    await scheduler.archives.archive(run_id, OPERATOR)
    assert await scheduler.state(run_id) is ArchiveState.ARCHIVING
    assert await scheduler.runs.requeue(run_id, by()) is None
    await scheduler.archives.move_some()
    assert (await scheduler.state(run_id), run_id in scheduler.record.archived) == (
        ArchiveState.ARCHIVED,
        True,
    )
    await scheduler.archives.archive(run_id, OPERATOR)
    await scheduler.archives.restore(run_id, OPERATOR)
    assert await scheduler.state(run_id) is ArchiveState.RESTORING
    with pytest.raises(RunNotArchivable):
        await scheduler.archives.archive(run_id, OPERATOR)
    await scheduler.archives.move_some()
    await scheduler.archives.move_some()
    assert (await scheduler.state(run_id), run_id in scheduler.record.archived) == (None, False)
    assert await scheduler.changes(run_id) == [("operator", "archive", ""), ("operator", "restore", "")]
    assert await scheduler.runs.requeue(run_id, by())


async def test_only_closed_runs_are_archived_by_their_owners_and_into_a_store(scheduler: Scheduler) -> None:
    pending = await scheduler.runs.add(new_run(), "")
    with pytest.raises(RunNotArchivable):
        await scheduler.archives.archive(pending.run_id, OPERATOR)
    run_id = await scheduler.closed()
    with pytest.raises(BelongsToAnother):
        await scheduler.archives.archive(run_id, Caller("another"))
    scheduler.record.has_store = False
    with pytest.raises(RemoteError):
        await scheduler.archives.archive(run_id, OPERATOR)
    scheduler.record.has_store = True
    assert await scheduler.state(run_id) is None


async def test_old_runs_are_archived_by_the_days_of_their_project(scheduler: Scheduler) -> None:
    manage = ManageProjects(PostgresProjects(scheduler.session), SetClock())
    project = await manage.create(uuid4().hex, "", OPERATOR, str(uuid4()))
    await manage.update(project.project_id, ProjectChanges(archive_after_days=2), OPERATOR)
    ages = {
        "week": (7, 0),
        "five": (5, 0),
        "project": (3, project.project_id),
        "young": (1, project.project_id),
    }
    runs = {
        name: await scheduler.closed(at=START - timedelta(days=days), project_id=project_id)
        for name, (days, project_id) in ages.items()
    }

    async def archived(archive_after_days: int) -> set[str]:
        old = ArchiveOldRuns(PostgresRunArchives(scheduler.session), SetClock(), archive_after_days)
        await old.archive()
        return {name for name, run_id in runs.items() if await scheduler.state(run_id)}

    assert await archived(0) == {"project"}
    # Others wait until what was ordered is done.
    assert await archived(6) == {"project"}
    await scheduler.archives.move_some()
    await scheduler.archives.move_some()
    assert await archived(6) == {"project", "week"}
    assert await scheduler.changes(runs["project"]) == [
        ("proctor", "archive", "it ended more than 2 days ago")
    ]


async def test_the_oldest_answers_beyond_the_bytes_of_a_project_are_archived(scheduler: Scheduler) -> None:
    manage = ManageProjects(PostgresProjects(scheduler.session), SetClock())
    project = await manage.create(uuid4().hex, "", OPERATOR, str(uuid4()))
    await manage.update(project.project_id, ProjectChanges(archive_over_bytes=25 * MB), OPERATOR)
    sizes = {
        "newest": (1, project.project_id, 10),
        "newer": (2, project.project_id, 10),
        "older": (3, project.project_id, 10),
        "oldest": (4, project.project_id, 1),
        # Of no project with bytes of its own: the installation's are theirs together.
        "large": (1, 0, 1000),
        "small": (2, 0, 1),
    }
    runs = {
        name: await scheduler.closed(
            at=START - timedelta(days=days), project_id=project_id, answer_bytes=megabytes * MB
        )
        for name, (days, project_id, megabytes) in sizes.items()
    }

    async def archived(over_bytes: int) -> set[str]:
        archives = PostgresRunArchives(scheduler.session)
        for _ in range(2):
            await ArchiveOldRuns(archives, SetClock(), over_bytes=over_bytes).archive()
            while await archives.moving():
                await scheduler.archives.move_some()
        return {name for name, run_id in runs.items() if await scheduler.state(run_id)}

    assert await archived(0) == {"older", "oldest"}
    assert await archived(1001 * MB) == {"older", "oldest"}
    assert await archived(1000 * MB) == {"older", "oldest", "small"}
    assert await scheduler.changes(runs["older"]) == [
        ("proctor", "archive", "its answers are beyond 25000000 bytes, and the oldest")
    ]


async def test_no_run_is_archived_by_age_once_results_has_no_store(scheduler: Scheduler) -> None:
    archives = PostgresRunArchives(scheduler.session)
    while await archives.moving():
        await scheduler.archives.move_some()
    record = StepwiseArchive()
    record.has_store = False
    ordered = ArchiveRuns(scheduler.runs, archives, record, SetClock(), lambda: None)
    run_id = await scheduler.closed(at=START - timedelta(days=9))
    for _ in range(3):
        await ArchiveOldRuns(archives, SetClock(), 8).archive()
        await ordered.move_some()
    assert await scheduler.state(run_id) is None
    assert len(await scheduler.changes(run_id)) == 1
