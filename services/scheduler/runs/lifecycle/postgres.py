"""Runs in Postgres, as users submit, read, stop and delete them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from uuid import UUID, uuid5

import asyncpg

from proctor.values.run import RunId, RunState
from services.common.checked_fields import refuse
from services.common.errors import RunNotFound
from services.common.postgres import PostgresSession, PostgresTransaction
from services.common.sql.row_scope import current_scope
from services.common.traces import current_trace
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.notices.postgres import record_event
from services.scheduler.runs.lifecycle.errors import (
    BatchFilesUnwritten,
    PriorityNotAllowed,
    QueueFull,
    RequestIdTaken,
    RunNotClosed,
    RunOfBatch,
    RunStillActive,
)
from services.scheduler.runs.lifecycle.postgres_projects import within_project
from services.scheduler.runs.lifecycle.postgres_rows import (
    labels_from_row,
    row_values,
    run_from_row,
    run_ids_from_rows,
    task_from_row,
)
from services.scheduler.runs.lifecycle.run import (
    CLOSING,
    PlannedTask,
    Run,
    states_before,
)
from services.scheduler.runs.lifecycle.run_events import run_ended
from services.scheduler.runs.lifecycle.run_labels import LabelChange, labels_in_words, labels_problem
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.suites.errors import UnknownSuite
from services.scheduler.uploads.dataset import is_dataset_id
from services.scheduler.uploads.errors import (
    DatasetInUse,
    DatasetInUseElsewhere,
    DatasetNotFound,
    FileInUseByRun,
    FileInUseElsewhere,
)

# Goes out with `QueueFull`: runs finish in minutes, so an earlier order rarely finds room.
RETRY_AFTER_SECONDS = 30
# Bounds one sweep of the leader; the next one takes the rest.
_MAX_DELETED_AT_ONCE = 100


class PostgresRuns:
    """Stores runs."""

    def __init__(self, session: PostgresSession, limits: PostgresLimits) -> None:
        self._session = session
        self._limits = limits

    async def add(
        self,
        run: Run,
        request_id: str,
        base: Run | None = None,
        gate: RunGate | None = None,
        *,
        digest: bytes = b"",
    ) -> Run:
        async def add(transaction: PostgresTransaction) -> Run:
            sharing = 1 if base is None else 2
            stored = await self.add_in(transaction, run, request_id, sharing=sharing, digest=digest)
            # Not for a repeated call: its base may be deleted by now.
            if base is not None and stored is run:
                await self.add_in(transaction, base, "")
            if gate:
                # Of a repeated call, too: it may compare the same run by another margin.
                await transaction.execute("add_run_gate", run_id=stored.run_id, **asdict(gate))
            return stored

        try:
            return await self._session.run(add)
        except asyncpg.ForeignKeyViolationError as error:
            if gate and error.constraint_name == "run_gates_base_run_id_fkey":
                raise RunNotFound(run_id=gate.base_run_id) from error
            # The version was deleted after it was looked up.
            others = f"other versions of {run.order.suite}"
            raise UnknownSuite(suite=run.suite_name, supported=others) from error

    async def add_in(
        self,
        transaction: PostgresTransaction,
        run: Run,
        request_id: str,
        *,
        sharing: int = 1,
        digest: bytes = b"",
    ) -> Run:
        """Adds the run in a transaction that stores more than the run: so many runs of its order, or less.

        Returns the given run. The stored one has a max_cost where the budget of its project sets one.
        """
        request = _of_user(request_id, run.user) if request_id else None
        # Before looking for an earlier call: two calls at once would both find none and both be stored.
        await lock_user(transaction, run.user)
        found = await transaction.fetchval("find_submitted_run", run_id=run.run_id, request_id=request)
        if found is not None:
            return _same_order(await _get(transaction, RunId(str(found))), run, request_id)
        limits = await self._limits.locked_limits(transaction)
        _check_priority(run, limits)
        await _check_queue(transaction, run.user, limits.max_pending_runs_per_user)
        admitted = await within_project(transaction, run, run.created_at, sharing=sharing)
        # Last, so that the row of a data set which many runs use is locked for a short time only.
        await _lock_dataset(transaction, run.order.dataset_id)
        await transaction.execute("add_run", **row_values(admitted, request), request_digest=digest or None)
        author = Author(run.user, run.created_at)
        order = run.order
        submitted = Change(author, Action.SUBMIT, ObjectKind.RUN, run.run_id, order.model, order.project_id)
        await record_change(transaction, submitted)
        if trace := current_trace():
            await transaction.execute("add_run_trace", run_id=run.run_id, traceparent=trace)
        return run

    async def repeated(self, request_id: str, user: str, digest: bytes) -> Run | None:
        request = _of_user(request_id, user)
        row = await self._session.fetchrow(
            "read_repeated_run", request_id=request, request_digest=digest or None
        )
        return None if row is None else run_from_row(row)

    async def get(self, run_id: RunId) -> Run:
        return _found(run_id, await self._session.fetchrow("read_run", run_id=run_id))

    async def among(self, run_ids: Sequence[RunId]) -> Sequence[Run]:
        rows = await self._session.fetch("list_driven_runs", run_ids=run_ids)
        return [run_from_row(row) for row in rows]

    async def planned_tasks(self, run_id: RunId) -> tuple[PlannedTask, ...]:
        rows = await self._session.fetch("list_planned_tasks", run_id=run_id)
        return tuple(task_from_row(row) for row in rows)

    async def cancel(self, run_id: RunId, author: Author) -> Run | None:
        states = states_before(RunState.CANCELLED)
        change = change_of(run_id, Action.CANCEL, author)
        return await self._change(change, "cancel_run", run_id, states=states, finished_at=author.at)

    async def pause(self, run_id: RunId, author: Author) -> Run | None:
        states = states_before(RunState.PAUSED)
        change = change_of(run_id, Action.PAUSE, author)
        return await self._change(change, "pause_run", run_id, states=states, queued_at=author.at)

    async def requeue(self, run_id: RunId, author: Author) -> Run | None:
        batch_id = await self._session.fetchval("find_batch_of_run", run_id=run_id)
        if batch_id is not None:
            raise RunOfBatch(run_id=run_id, batch_id=batch_id)
        final_states = [state for state in states_before(RunState.PENDING) if state.is_final]
        change = change_of(run_id, Action.RETRY, author)
        return await self._make_pending(
            change, "requeue_run", run_id, states=final_states, queued_at=author.at
        )

    async def resume(self, run_id: RunId, author: Author) -> Run | None:
        change = change_of(run_id, Action.RESUME, author)
        return await self._make_pending(change, "resume_run", run_id, queued_at=author.at)

    async def label(self, run_id: RunId, change: LabelChange, author: Author) -> None:
        async def label(transaction: PostgresTransaction) -> None:
            row = await transaction.fetchrow("lock_run_labels", run_id=run_id)
            if row is None:
                raise RunNotFound(run_id=run_id)
            present = labels_from_row(row)
            labels = change.of(present)
            refuse(labels_problem(labels))
            if labels == present:
                return
            values = {"name": labels.name, "tags": list(labels.tags), "note": labels.note}
            await transaction.execute("set_run_labels", run_id=run_id, **values)
            words, project_id = labels_in_words(labels), row["project_id"]
            made = Change(author, Action.LABEL, ObjectKind.RUN, run_id, words, project_id)
            await record_change(transaction, made)

        await self._session.run(label)

    async def delete(self, run_id: RunId, author: Author) -> None:
        async def delete(transaction: PostgresTransaction) -> None:
            row = await transaction.fetchrow("lock_run_to_delete", run_id=run_id)
            if row is None:
                # The session repeats a transaction whose commit was not answered: the first one did delete.
                if (
                    await transaction.fetchval("find_deleted_run", run_id=run_id, deleted_at=author.at)
                    is not None
                ):
                    return
                raise RunNotFound(run_id=run_id)
            if not RunState(row["state"]).is_final:
                raise RunStillActive(run_id=run_id, state=CLOSING if row["is_closing"] else row["state"])
            if not row["is_closed"]:
                raise RunNotClosed(run_id=run_id, state=row["state"])
            if row["has_unwritten_files"]:
                raise BatchFilesUnwritten(run_id=run_id, batch_id=row["batch_id"])
            # In the same transaction as the deletion: results is asked to follow, also after a crash here.
            await transaction.execute("add_deleted_run", run_id=run_id, deleted_at=author.at)
            made = replace(change_of(run_id, Action.DELETE, author), project_id=row["project_id"])
            await record_change(transaction, made)
            await transaction.execute("delete_run", run_id=run_id)

        await self._session.run(delete)

    async def deleted(self, before: datetime) -> Sequence[RunId]:
        rows = await self._session.fetch(
            "list_deleted_runs", deleted_before=before, limit=_MAX_DELETED_AT_ONCE
        )
        return run_ids_from_rows(rows)

    async def postpone_deleted(self, run_id: RunId, now: datetime) -> None:
        await self._session.execute("postpone_deleted_run", run_id=run_id, deleted_at=now)

    async def delete_deletion(self, run_id: RunId) -> None:
        await self._session.execute("delete_deleted_run", run_id=run_id)

    async def _change(self, made: Change, query: str, run_id: RunId, /, **values: object) -> Run | None:
        """Returns the changed run, or None if its state does not allow the change."""

        async def change(transaction: PostgresTransaction) -> Run | None:
            if await transaction.fetchval(query, run_id=run_id, **values) is None:
                return None
            run = await _get(transaction, run_id)
            await record_change(transaction, replace(made, project_id=run.order.project_id))
            if run.state.is_final:
                await record_event(transaction, run_ended(run, run.state, made.author.at))
            return run

        return await self._session.run(change)

    async def _make_pending(self, made: Change, query: str, run_id: RunId, /, **values: object) -> Run | None:
        """Makes the run pending with at most the priority that its user may have now.

        A retried run needs room in the queue; others are counted already.
        """
        found = await self.get(run_id)
        user, made = found.user, replace(made, project_id=found.order.project_id)

        async def make_pending(transaction: PostgresTransaction) -> Run | None:
            await lock_user(transaction, user)
            # The row changes before the checks below; an error rolls it back.
            if await transaction.fetchval(query, run_id=run_id, **values) is None:
                return None
            await record_change(transaction, made)
            limits = await self._limits.locked_limits(transaction)
            if made.action is Action.RETRY:
                await _check_queue(transaction, user, limits.max_pending_runs_per_user, own=1)
            run = await _get(transaction, run_id)
            if made.action is Action.RETRY:
                admitted = await within_project(transaction, run, made.author.at)
                if admitted != run:
                    await transaction.execute("set_max_cost", run_id=run_id, max_cost=admitted.order.max_cost)
                run = admitted
            allowed = run.limited_to(limits.highest_priority(user))
            if allowed != run:
                await transaction.execute(
                    "set_priority", run_id=run_id, priority=allowed.order.priority.number
                )
            return allowed

        return await self._session.run(make_pending)


def change_of(run_id: RunId, action: Action, author: Author) -> Change:
    return Change(author, action, ObjectKind.RUN, run_id)


async def refuse_used_by_run(transaction: PostgresTransaction, upload_id: str) -> None:
    """Raises `DatasetInUse` or `FileInUseByRun` while an unfinished run reads the data set or file.

    A run of a project that the caller does not see is not named.
    """
    row = await transaction.fetchrow("find_run_using_upload", upload_id=upload_id)
    if row is None:
        return
    is_dataset, is_seen = is_dataset_id(upload_id), current_scope().reads(row["project_id"])
    used = {"dataset_id" if is_dataset else "file_id": upload_id}
    if is_seen:
        raise (DatasetInUse if is_dataset else FileInUseByRun)(**used, run_id=str(row["run_id"]))
    raise (DatasetInUseElsewhere if is_dataset else FileInUseElsewhere)(**used)


async def lock_user(transaction: PostgresTransaction, user: str) -> None:
    """Lets one transaction after the other change the user's queue."""
    await transaction.execute("lock_user", username=user)


async def _get(transaction: PostgresTransaction, run_id: RunId) -> Run:
    return _found(run_id, await transaction.fetchrow("read_run", run_id=run_id))


def _found(run_id: RunId, row: asyncpg.Record | None) -> Run:
    if row is None:
        raise RunNotFound(run_id=run_id)
    return run_from_row(row)


def _of_user(request_id: str, user: str) -> UUID:
    """Request ids are unique per user only."""
    return uuid5(UUID(request_id), user)


def _same_order(found: Run, wanted: Run, request_id: str) -> Run:
    if not found.order.is_repeated_by(wanted.order):
        dataset_id = found.order.dataset_id
        raise RequestIdTaken(request_id=request_id, run_id=found.run_id, dataset_id=dataset_id)
    return found


async def _check_queue(transaction: PostgresTransaction, user: str, max_pending: int, own: int = 0) -> None:
    """`own` is how many of the counted runs are the ones that ask."""
    if await transaction.fetchval("count_pending_and_paused_runs", username=user) - own >= max_pending:
        raise QueueFull(user=user, limit=max_pending, retry_after_seconds=RETRY_AFTER_SECONDS)


def _check_priority(run: Run, limits: QueueLimits) -> None:
    allowed = limits.allowed_priorities(run.user)
    if run.order.priority not in allowed:
        raise PriorityNotAllowed(user=run.user, priority=run.order.priority, allowed=", ".join(allowed))


async def _lock_dataset(transaction: PostgresTransaction, dataset_id: str) -> None:
    """Raises `DatasetNotFound` if it was deleted after it was looked up."""
    if not dataset_id:
        return
    if is_dataset_id(dataset_id):
        found = await transaction.fetchval("lock_dataset", dataset_id=dataset_id)
    else:
        found = await transaction.fetchval("lock_input_file", file_id=dataset_id)
    if not found:
        raise DatasetNotFound(dataset_id=dataset_id)
