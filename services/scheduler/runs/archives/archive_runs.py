"""Archives closed runs and restores them: the order is stored, and the leader makes results follow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from proctor.values.names.user import Caller
from proctor.values.run import ArchiveState, RunId
from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.lifecycle import every
from services.common.requests.request_fields import check_owner
from services.common.structured_logs import get_logger
from services.scheduler.audit.audit_record import Author
from services.scheduler.runs.archives.postgres import PostgresRunArchives
from services.scheduler.runs.lifecycle.errors import RunNotArchivable
from services.scheduler.runs.lifecycle.ports import RecordArchive, RunStore
from services.scheduler.runs.lifecycle.run import Run

log = get_logger()

# Results does some seconds of work at each call; other work comes between.
ROUND_SECONDS = 1.0
# Results has no store for archives: nothing was begun, and waiting does not help.
_NO_STORE = "UNSUPPORTED"


@dataclass(frozen=True, slots=True)
class ArchiveRuns:
    """Each call can be repeated, since an answer may be lost. Raises `BelongsToAnother`."""

    runs: RunStore
    archives: PostgresRunArchives
    record: RecordArchive
    clock: Clock
    check_room: Callable[[], None]

    async def archive(self, run_id: RunId, caller: Caller) -> None:
        """Raises `RunNotArchivable`, and the error of results where there is no store for archives."""
        run = await self._owned(run_id, caller)
        if run.archive_state in (ArchiveState.ARCHIVING, ArchiveState.ARCHIVED):
            return
        if not await self.archives.archive(run_id, Author(caller.name, self.clock.now())):
            raise RunNotArchivable(run_id=run_id, state=run.archive_state or run.display_state)
        # The caller learns at once where no run can be archived; what else fails is tried again.
        try:
            await self._move(run_id, ArchiveState.ARCHIVING)
        except DomainError as error:
            if error.reason == _NO_STORE:
                raise
            log.info("archive not begun", run_id=run_id, error=str(error))

    async def restore(self, run_id: RunId, caller: Caller) -> None:
        """Raises `DiskFull` where there is no room for the answers."""
        await self._owned(run_id, caller)
        self.check_room()
        await self.archives.restore(run_id, Author(caller.name, self.clock.now()))

    async def lead(self) -> NoReturn:
        """Moves answers for ever, in the leader."""
        await every(ROUND_SECONDS, self.move_some, name="move answers of archived runs")

    async def move_some(self) -> None:
        """Moves some answers of each run in turn. A run that fails is tried again in the next round."""
        for run_id, state in (await self.archives.moving()).items():
            try:
                await self._move(run_id, state)
            except DomainError as error:
                log.warning("answers not moved", run_id=run_id, state=state, error=str(error))

    async def _move(self, run_id: RunId, state: ArchiveState) -> None:
        if state is ArchiveState.RESTORING:
            if await self.record.restore_run(run_id):
                await self.archives.mark_restored(run_id)
            return
        try:
            is_done = await self.record.archive_run(run_id)
        except DomainError as error:
            if error.reason == _NO_STORE:
                await self.archives.give_up(run_id)
            raise
        if is_done:
            await self.archives.mark_archived(run_id)

    async def _owned(self, run_id: RunId, caller: Caller) -> Run:
        run = await self.runs.get(run_id)
        check_owner(caller, run.user, f"Run {run_id}", run.order.project_id)
        return run
