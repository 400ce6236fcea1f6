"""Imported runs in Postgres: added when all of them is stored, in one transaction."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from proctor.values.run import RunId
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.planning.postgres import task_values
from services.scheduler.runs.lifecycle.postgres import row_values
from services.scheduler.runs.lifecycle.postgres_rows import to_json
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.suites.errors import UnknownSuite

# Values of a run that waits; an imported one has none.
_OF_ORDERS = ("request_id", "price", "dataset_id", "expires_at")


class PostgresImports:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def announce(self, run_id: RunId, until: datetime) -> None:
        await self._session.execute("announce_import", run_id=run_id, deleted_at=until)

    async def add(self, run: Run, tasks: Sequence[PlannedTask], file_digest: str) -> bool:
        values = {name: value for name, value in row_values(run, None).items() if name not in _OF_ORDERS}

        async def add(transaction: PostgresTransaction) -> bool:
            taken = await transaction.fetchval(
                "take_announced_import", run_id=run.run_id, now=run.finished_at
            )
            if taken is None:
                return False
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
                transaction, Change(author, Action.IMPORT, ObjectKind.RUN, run.run_id, details)
            )
            return True

        try:
            return await self._session.run(add)
        except asyncpg.ForeignKeyViolationError as error:
            others = f"other versions of {run.order.suite}"
            raise UnknownSuite(suite=run.suite_name, supported=others) from error
