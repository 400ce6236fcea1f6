"""The queue in Postgres: reading it, and assigning slots in its order."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg

from proctor.values.priority import Priority
from proctor.values.run import RunId, RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.common.sql.row_scope import seeing_all
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.leadership.postgres import run_as_leader, write_as_leader
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_estimate import CompletedRun, PastRuns
from services.scheduler.runs.admission.run_queue import PendingRun, QueueDepth, QueuedRuns, UserRunCounts
from services.scheduler.runs.admission.run_slots import RunSlot, SlotChanges, SlotRequest, assign_slots
from services.scheduler.runs.lifecycle.postgres_rows import run_from_row, run_ids_from_rows


class PostgresQueue:
    """Reads running, pending and paused runs, and completed ones for estimates."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def queue(self, limit: int) -> QueuedRuns:
        async def read(transaction: PostgresTransaction) -> QueuedRuns:
            # Five statements: without it a run could be both running and pending, or neither.
            await transaction.execute("read_one_snapshot")
            running = await transaction.fetch("list_running_runs")
            order = await transaction.fetch("list_queue_positions", run_ids=None, limit=limit)
            pending = await transaction.fetch("list_pending_runs", run_ids=[row["run_id"] for row in order])
            paused = await transaction.fetch("list_paused_runs", limit=limit)
            users = [UserRunCounts(*row) for row in await transaction.fetch("count_runs_by_user")]
            return QueuedRuns(
                running=[run_from_row(row) for row in running],
                pending=[PendingRun(run_from_row(row), row["queued_at"]) for row in pending],
                pending_total=sum(user.pending for user in users),
                users=users,
                paused=[run_from_row(row) for row in paused],
            )

        return await self._session.run(read)

    async def depths(self) -> Sequence[QueueDepth]:
        """Pending and running runs; what has none is left out."""
        return [
            QueueDepth(
                state=RunState(row["state"]),
                priority=Priority.of_number(row["priority"]),
                runs=row["runs"],
                oldest=row["oldest"],
            )
            for row in await self._session.fetch("count_pending_and_running_runs")
        ]

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        with seeing_all():
            rows = await self._session.fetch("list_queue_positions", run_ids=list(runs), limit=len(runs))
        return {RunId(str(row["run_id"])): row["position"] for row in rows}

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> PastRuns:
        benchmarks, models = [benchmark for benchmark, _ in wanted], [model for _, model in wanted]
        found: dict[tuple[str, str], list[CompletedRun]] = defaultdict(list)
        with seeing_all():
            rows = await self._session.fetch("list_past_runs", benchmarks=benchmarks, models=models)
        for row in rows:
            found[row["benchmark"], row["model"]].append(past_run_from_row(row))
        return found

    async def planned_rows(self, benchmarks: Collection[str]) -> Mapping[str, Sequence[PlannedRows]]:
        found: dict[str, list[PlannedRows]] = defaultdict(list)
        with seeing_all():
            rows = await self._session.fetch("list_planned_rows", benchmarks=list(benchmarks))
        for row in rows:
            tasks, limit = json.loads(row["tasks"]), row["row_limit"]
            planned = PlannedRows(tuple(tasks), limit, json.loads(row["samples"]))
            found[row["benchmark"]].append(planned)
        return found


class PostgresSlots:
    """Assigns slots in transactions of the leader, one after the other."""

    def __init__(self, session: PostgresSession, limits: PostgresLimits) -> None:
        self._session = session
        self._limits = limits

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
        # In most rounds none waits: one statement instead of a transaction of nine.
        found = await self._session.fetchrow("read_admission_need", fencing_token=token)
        if found is None:
            raise LeadershipLost
        if not found["is_needed"]:
            return SlotChanges([], [])

        async def admit(transaction: PostgresTransaction) -> SlotChanges:
            await transaction.execute("lock_admission")
            limits = await self._limits.locked_limits(transaction)
            slots = [_slot_from_row(row) for row in await transaction.fetch("lock_slots")]
            # No more than that can start at once, and each preemption needs a running run.
            pending = await transaction.fetch(
                "list_queue_positions", run_ids=None, limit=limits.max_running_runs
            )
            slot_requests = [_slot_request_from_row(row) for row in pending]
            changes = assign_slots(slots, slot_requests, limits, now)
            return await _apply(transaction, changes, limits, now)

        return await run_as_leader(self._session, token, admit)

    async def delete_admissions(self, token: FencingToken, before: datetime) -> None:
        await write_as_leader(self._session, token, "delete_admissions", admitted_before=before)


async def _apply(
    transaction: PostgresTransaction, changes: SlotChanges, limits: QueueLimits, now: datetime
) -> SlotChanges:
    """Leaves out pending runs that were stopped meanwhile. Running runs are locked and stay running."""
    # A preemption is always for a run that is admitted.
    if not changes.admitted:
        return changes
    preempted = await transaction.fetch("preempt_runs", run_ids=list(changes.preempted), queued_at=now)
    seconds = limits.run_time_limit.total_seconds()
    # Preempted first, started second: no moment of the transaction has more running runs than the limit.
    admitted = await transaction.fetch(
        "start_runs", run_ids=list(changes.admitted), admitted_at=now, seconds=seconds
    )
    waits = [(Priority.of_number(row["priority"]), row["waited_seconds"]) for row in admitted]
    return SlotChanges(run_ids_from_rows(admitted), run_ids_from_rows(preempted), waits)


def past_run_from_row(row: asyncpg.Record) -> CompletedRun:
    order: dict[str, Any] = json.loads(row["ordered"])
    return CompletedRun(
        tuple(order["tasks"]), order["limit"], order["rollouts"], row["total"], row["seconds"]
    )


def _slot_from_row(row: asyncpg.Record) -> RunSlot:
    return RunSlot(
        run_id=RunId(str(row["run_id"])),
        user=row["username"],
        priority=Priority.of_number(row["priority"]),
        admitted_at=row["admitted_at"],
        is_planned=row["is_planned"],
    )


def _slot_request_from_row(row: asyncpg.Record) -> SlotRequest:
    return SlotRequest(RunId(str(row["run_id"])), row["username"], Priority.of_number(row["priority"]))
