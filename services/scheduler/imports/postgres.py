"""Imported runs in Postgres: added when all of them is stored, in one transaction."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid5

import asyncpg

from proctor.values.run import RunId
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.imports.errors import ImportedElsewhere
from services.scheduler.imports.ports import EarlierImport
from services.scheduler.planning.postgres import task_values
from services.scheduler.runs.lifecycle.postgres_rows import row_values, to_json
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.suites.errors import UnknownSuite

# Values of a run that waits; an imported one has none.
_OF_ORDERS = ("price", "dataset_id", "expires_at", "has_judges_to_order")


class PostgresImports:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def announce(self, run_id: RunId, until: datetime) -> None:
        await self._session.execute("announce_import", run_id=run_id, deleted_at=until)

    async def give_up(self, run_id: RunId, now: datetime) -> None:
        await self._session.execute("give_up_import", run_id=run_id, now=now)

    async def earlier(self, request_id: str, user: str) -> EarlierImport | None:
        row = await self._session.fetchrow("find_imported_run", request_id=_request(request_id, user))
        return EarlierImport(RunId(str(row["run_id"])), row["digest"] or "") if row else None

    async def add(self, run: Run, tasks: Sequence[PlannedTask], request_id: str, file_digest: str) -> bool:
        given = row_values(run, _request(request_id, run.user))
        values = {name: value for name, value in given.items() if name not in _OF_ORDERS}

        async def add(transaction: PostgresTransaction) -> bool:
            taken = await transaction.fetchval(
                "take_announced_import", run_id=run.run_id, now=run.finished_at
            )
            if taken is None:
                # The commit of an earlier try may not have been answered.
                return await transaction.fetchval("find_added_import", run_id=run.run_id) is not None
            await transaction.execute(
                "add_imported_run",
                **values,
                total=run.total,
                started_at=run.started_at,
                finished_at=run.finished_at,
                final_counts=to_json(run.final_counts),
            )
            await transaction.executemany(
                "add_task",
                [
                    {"run_id": run.run_id, "task_index": index, **task_values(task)}
                    for index, task in enumerate(tasks)
                ],
            )
            author = Author(run.user, run.created_at)
            details = f"{run.order.model}, SHA-256 {file_digest}"
            await record_change(
                transaction,
                Change(author, Action.IMPORT, ObjectKind.RUN, run.run_id, details, run.order.project_id),
            )
            return True

        try:
            return await self._session.run(add)
        except asyncpg.ForeignKeyViolationError as error:
            others = f"other versions of {run.order.suite}"
            raise UnknownSuite(suite=run.suite_name, supported=others) from error
        except asyncpg.UniqueViolationError as error:
            raise ImportedElsewhere from error


def _request(request_id: str, user: str) -> UUID:
    """Request ids are unique per user only."""
    return uuid5(UUID(request_id), user)
