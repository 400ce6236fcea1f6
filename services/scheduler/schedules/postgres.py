"""Schedules in Postgres: as users change and read them, and as the leader fires them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

import asyncpg

from proctor.values.comparison import GateVerdict
from proctor.values.names.notices import NoticeEvent
from proctor.values.names.project import is_declared
from proctor.values.priority import Priority
from services.common.errors import ProjectNotFound
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader, write_as_leader
from services.scheduler.notices.notice import Event
from services.scheduler.notices.postgres import record_event
from services.scheduler.runs.lifecycle.postgres import PostgresRuns, lock_user
from services.scheduler.runs.lifecycle.postgres_rows import labels_from_row, order_from_json, order_to_json
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_gate import gate_from_json
from services.scheduler.schedules.errors import ScheduleNotFound, TooManySchedules
from services.scheduler.schedules.schedule import Firing, Schedule, ScheduleId, SchedulePage

MAX_OF_USER = 100
# Of each schedule: every minute for most of a day.
_KEPT_FIRINGS = 1000
_SHOWN_FIRINGS = 100
# A firing that waits is tried again after this.
_PAUSE = timedelta(seconds=15)


class PostgresSchedules:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def add(self, schedule: Schedule, author: Author) -> None:
        labels, order = schedule.labels, schedule.order

        async def add(transaction: PostgresTransaction) -> None:
            # One after the other: two calls at once would both count one too few.
            await lock_user(transaction, schedule.user)
            added = await transaction.fetchval(
                "add_schedule",
                schedule_id=schedule.schedule_id,
                username=schedule.user,
                project_id=order.project_id,
                cron=schedule.cron,
                time_zone=schedule.time_zone,
                ordered=order_to_json(order),
                name=labels.name,
                tags=list(labels.tags),
                note=labels.note,
                created_at=schedule.created_at,
                next_due_at=schedule.next_due_at,
                gate=json.dumps(asdict(schedule.gate)) if schedule.gate else None,
            )
            if added is None:
                return
            if await transaction.fetchval("count_schedules", username=schedule.user) > MAX_OF_USER:
                raise TooManySchedules(user=schedule.user, limit=MAX_OF_USER)
            await record_change(transaction, _change(schedule, Action.CREATE, author))

        await self._session.run(add)

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        row = await self._session.fetchrow("find_schedule", schedule_id=schedule_id)
        if row is None:
            raise ScheduleNotFound(schedule_id=schedule_id)
        return _schedule_from_row(row)

    async def page(self, size: int, before: int | None, user: str, project_id: int | None) -> SchedulePage:
        # One more than is shown: then there is a next page.
        rows = await self._session.fetch(
            "list_schedules",
            before_schedule_number=before,
            username=user,
            project_id=project_id,
            limit=size + 1,
        )
        last = rows[size - 1]["schedule_number"] if len(rows) > size else None
        return SchedulePage([_schedule_from_row(row) for row in rows[:size]], last)

    async def firings(self, schedule_id: ScheduleId) -> Sequence[Firing]:
        rows = await self._session.fetch("list_firings", schedule_id=schedule_id, limit=_SHOWN_FIRINGS)
        return [_firing_from_row(row, row["problem"]) for row in rows]

    async def pause(self, schedule: Schedule, author: Author) -> None:
        values = {"schedule_id": schedule.schedule_id, "paused_at": author.at}
        await self._change(schedule, Action.PAUSE, author, "pause_schedule", **values)

    async def resume(self, schedule: Schedule, next_due_at: datetime, author: Author) -> None:
        values = {
            "schedule_id": schedule.schedule_id,
            "next_due_at": next_due_at,
            "resumed_at": author.at,
        }
        await self._change(schedule, Action.RESUME, author, "resume_schedule", **values)

    async def delete(self, schedule: Schedule, author: Author) -> None:
        values = {"schedule_id": schedule.schedule_id}
        await self._change(schedule, Action.DELETE, author, "delete_schedule", **values)

    async def _change(
        self, schedule: Schedule, action: Action, author: Author, query: str, /, **values: object
    ) -> None:
        async def change(transaction: PostgresTransaction) -> None:
            if await transaction.fetchval(query, **values) is not None:
                await record_change(transaction, _change(schedule, action, author))

        await self._session.run(change)


class PostgresLedSchedules:
    """The leader's side of the schedules."""

    def __init__(self, session: PostgresSession, runs: PostgresRuns) -> None:
        self._session = session
        self._runs = runs

    async def due(self, now: datetime) -> Sequence[Schedule]:
        rows = await self._session.fetch("list_due_schedules", now=now, tried_before=now - _PAUSE)
        return [_schedule_from_row(row) for row in rows]

    async def fire(
        self, token: FencingToken, schedule: Schedule, firing: Firing, runs: Sequence[Run]
    ) -> bool:
        async def fire(transaction: PostgresTransaction) -> bool:
            schedule_id = schedule.schedule_id
            # The row stays locked until the commit: whoever pauses or deletes the schedule waits for it.
            advanced = await transaction.fetchval(
                "advance_schedule",
                schedule_id=schedule_id,
                next_due_before=schedule.next_due_at,
                next_due_at=schedule.times.next_after(max(firing.due_at, firing.fired_at)),
            )
            if advanced is None:
                # Also where this transaction is repeated, since the answer to its commit was lost.
                found = await transaction.fetchval(
                    "find_firing", schedule_id=schedule_id, due_at=firing.due_at
                )
                return found is not None
            await self._add_runs(transaction, schedule, runs)
            await transaction.execute(
                "add_firing",
                schedule_id=schedule_id,
                due_at=firing.due_at,
                fired_at=firing.fired_at,
                run_ids=list(firing.run_ids),
                problem=firing.problem,
                awaits_gate=bool(firing.run_ids and schedule.gate),
            )
            if firing.problem:
                await record_event(transaction, _refused(schedule, firing))
            await transaction.execute("delete_old_firings", schedule_id=schedule_id, kept=_KEPT_FIRINGS)
            return True

        return await run_as_leader(self._session, token, fire)

    async def is_without_user(self, schedule: Schedule, now: datetime) -> bool:
        found = await self._session.fetchval("find_keyless_user", schedule_id=schedule.schedule_id, now=now)
        return found is not None

    async def stop(self, token: FencingToken, schedule: Schedule, firing: Firing) -> None:
        async def stop(transaction: PostgresTransaction) -> None:
            stopped = await transaction.fetchval(
                "stop_schedule",
                schedule_id=schedule.schedule_id,
                next_due_before=schedule.next_due_at,
                paused_at=firing.fired_at,
                problem=firing.problem,
            )
            if stopped is not None:
                await record_event(transaction, _refused(schedule, firing))

        await run_as_leader(self._session, token, stop)

    async def wait(self, token: FencingToken, schedule: Schedule, problem: str, now: datetime) -> None:
        await write_as_leader(
            self._session,
            token,
            "set_schedule_problem",
            schedule_id=schedule.schedule_id,
            next_due_before=schedule.next_due_at,
            problem=problem,
            tried_at=now,
        )

    async def _add_runs(
        self, transaction: PostgresTransaction, schedule: Schedule, runs: Sequence[Run]
    ) -> None:
        project_id = schedule.order.project_id
        if runs and is_declared(project_id):
            is_barred = await transaction.fetchval(
                "find_barred_member", project_id=project_id, username=schedule.user
            )
            if is_barred:
                raise ProjectNotFound
        for number, run in enumerate(runs):
            await self._runs.add_in(transaction, run, "", sharing=len(runs) - number)


def _refused(schedule: Schedule, firing: Firing) -> Event:
    name, order = schedule.labels.name, schedule.order
    return Event(
        kinds=(NoticeEvent.SCHEDULE_REFUSED,),
        key=f"schedule {schedule.schedule_id} {firing.due_at.isoformat()}",
        user=schedule.user,
        project_id=order.project_id,
        text=f"Schedule {name} ordered nothing: {firing.problem}",
        at=firing.fired_at,
        facts={
            "schedule_id": schedule.schedule_id,
            "name": name,
            "user": schedule.user,
            "model": order.model,
        },
    )


def _change(schedule: Schedule, action: Action, author: Author) -> Change:
    project_id, name = schedule.order.project_id, schedule.labels.name
    return Change(author, action, ObjectKind.SCHEDULE, schedule.schedule_id, name, project_id)


def _schedule_from_row(row: asyncpg.Record) -> Schedule:
    return Schedule(
        schedule_id=ScheduleId(str(row["schedule_id"])),
        user=row["username"],
        cron=row["cron"],
        time_zone=row["time_zone"],
        order=order_from_json(row["ordered"], Priority.LOW),
        labels=labels_from_row(row),
        created_at=row["created_at"],
        next_due_at=row["next_due_at"],
        paused_at=row["paused_at"],
        problem=row["problem"],
        last_firing=_last_firing(row),
        gate=gate_from_json(row["gate"]),
    )


def _last_firing(row: asyncpg.Record) -> Firing | None:
    return None if row["due_at"] is None else _firing_from_row(row, row["firing_problem"])


def _firing_from_row(row: asyncpg.Record, problem: str) -> Firing:
    return Firing(
        due_at=row["due_at"],
        fired_at=row["fired_at"],
        run_ids=tuple(map(str, row["run_ids"])),
        problem=problem,
        verdict=GateVerdict(row["verdict"]) if row["verdict"] else None,
        base_run_id=str(row["base_run_id"] or ""),
        gate_text=row["gate_text"],
    )
