"""Archives of runs in Postgres, as users order them and the leader makes them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from proctor.values.run import ArchiveState, RunId
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author
from services.scheduler.audit.postgres import record_change
from services.scheduler.runs.lifecycle.postgres import change_of

# Bounds one round of the leader; the next one takes the rest.
_MAX_AT_ONCE = 20


class PostgresRunArchives:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session
        # Known once results has said so.
        self.has_no_store = False

    async def archive(self, run_id: RunId, author: Author, reason: str = "") -> bool:
        """False for a run that is not closed, or whose answers a batch or a judge still needs.

        Also for one that is archived already. `reason`: why the leader archives it by itself.
        """
        return await self._change("archive_run", run_id, Action.ARCHIVE, author, reason)

    async def restore(self, run_id: RunId, author: Author, reason: str = "") -> bool:
        """False for a run that is not archived."""
        return await self._change("restore_run", run_id, Action.RESTORE, author, reason)

    async def moving(self) -> Mapping[RunId, ArchiveState]:
        """Runs whose answers are to be moved."""
        rows = await self._session.fetch("list_moving_runs", limit=_MAX_AT_ONCE)
        return {RunId(str(row["run_id"])): ArchiveState(row["archive_state"]) for row in rows}

    async def old(self, archive_after_days: int, now: datetime) -> Mapping[RunId, int]:
        """The oldest runs that are due, by the days of their project or of the installation (0: never)."""
        rows = await self._session.fetch(
            "list_runs_to_archive", archive_after_days=archive_after_days, now=now, limit=_MAX_AT_ONCE
        )
        return {RunId(str(row["run_id"])): row["days"] for row in rows}

    async def beyond(self, archive_over_bytes: int) -> Mapping[RunId, int]:
        """The oldest runs beyond the bytes of their project, or of the installation (0: none)."""
        rows = await self._session.fetch(
            "list_runs_beyond_bytes", archive_over_bytes=archive_over_bytes, limit=_MAX_AT_ONCE
        )
        return {RunId(str(row["run_id"])): row["most"] for row in rows}

    async def mark_archived(self, run_id: RunId) -> None:
        await self._session.execute("set_archived", run_id=run_id)

    async def mark_restored(self, run_id: RunId) -> None:
        await self._session.execute("set_restored", run_id=run_id, before=ArchiveState.RESTORING)

    async def give_up(self, run_id: RunId) -> None:
        """Forgets the order to archive a run: results has no store for it."""
        self.has_no_store = True
        await self._session.execute("set_restored", run_id=run_id, before=ArchiveState.ARCHIVING)

    async def _change(self, query: str, run_id: RunId, action: Action, author: Author, reason: str) -> bool:
        async def change(transaction: PostgresTransaction) -> bool:
            project_id: int | None = await transaction.fetchval(query, run_id=run_id)
            if project_id is None:
                return False
            made = change_of(run_id, action, author)
            await record_change(transaction, replace(made, detail=reason, project_id=project_id))
            return True

        return await self._session.run(change)
