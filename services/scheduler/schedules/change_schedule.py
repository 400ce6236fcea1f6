"""The life of a schedule: added, paused, resumed, deleted."""

from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

from proctor.values.generation import Problem
from proctor.values.names.run_labels import RunLabels
from proctor.values.names.user import Caller
from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.common.checked_fields import refuse
from services.common.clock import Clock
from services.common.requests.request_fields import check_owner
from services.scheduler.audit.audit_record import Author
from services.scheduler.runs.lifecycle.run_labels import tidy
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.schedules.cron_times import CronTimes, times_problem
from services.scheduler.schedules.errors import ScheduleNotFound
from services.scheduler.schedules.ports import ScheduleStore
from services.scheduler.schedules.schedule import Schedule, ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSchedule:
    """The id is the same in each repetition of a call."""

    schedule_id: ScheduleId
    times: CronTimes
    order: RunOrder
    user: str
    labels: RunLabels
    gate: RunGate | None = None


@dataclass(frozen=True, slots=True)
class ChangeSchedule:
    """Each call can be repeated. All but `add` raise `ScheduleNotFound` and `BelongsToAnother`."""

    schedules: ScheduleStore
    submit: SubmitRun
    clock: Clock

    async def add(self, wanted: WantedSchedule) -> Schedule:
        """Raises what ordering now would raise, but for the limits of this moment; `TooManySchedules`."""
        with suppress(ScheduleNotFound):
            # Of a repeated call, also where it would be refused by now.
            return await self.schedules.get(wanted.schedule_id)
        now, times = self.clock.now(), wanted.times
        refuse(times_problem(times, now) or _name_problem(wanted.labels))
        # Background work that nobody waits for.
        order = replace(wanted.order, priority=Priority.LOW)
        submission = Submission(RunId(str(uuid4())), order, wanted.user, labels=wanted.labels)
        run = (await self.submit.runs_of(submission))[0]
        if wanted.gate:
            await self.submit.check_gate(wanted.gate, run)
        schedule = Schedule(
            schedule_id=wanted.schedule_id,
            user=wanted.user,
            cron=" ".join(times.cron.split()),
            time_zone=times.time_zone,
            # As ordered, in the project of what it is over: versions of suites are found each time.
            order=replace(order, project_id=run.order.project_id, rollouts=run.order.rollouts),
            labels=run.labels,
            created_at=now,
            next_due_at=times.next_after(now),
            gate=wanted.gate,
        )
        await self.schedules.add(schedule, Author(wanted.user, now))
        return await self.schedules.get(wanted.schedule_id)

    async def pause(self, schedule_id: ScheduleId, caller: Caller) -> Schedule:
        schedule = await self._owned(schedule_id, caller)
        await self.schedules.pause(schedule, self._author(caller))
        return await self.schedules.get(schedule_id)

    async def resume(self, schedule_id: ScheduleId, caller: Caller) -> Schedule:
        schedule, author = await self._owned(schedule_id, caller), self._author(caller)
        await self.schedules.resume(schedule, schedule.times.next_after(author.at), author)
        return await self.schedules.get(schedule_id)

    async def delete(self, schedule_id: ScheduleId, caller: Caller) -> None:
        await self.schedules.delete(await self._owned(schedule_id, caller), self._author(caller))

    async def _owned(self, schedule_id: ScheduleId, caller: Caller) -> Schedule:
        schedule = await self.schedules.get(schedule_id)
        check_owner(caller, schedule.user, f"Schedule {schedule_id}", schedule.order.project_id)
        return schedule

    def _author(self, caller: Caller) -> Author:
        return Author(caller.name, self.clock.now())


def _name_problem(labels: RunLabels) -> Problem | None:
    if tidy(labels).name:
        return None
    return Problem("labels.name", "name is empty, but must say what the schedule is. Give it one.")
