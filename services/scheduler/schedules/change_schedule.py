"""The life of a schedule: added, paused, resumed, deleted."""

from dataclasses import dataclass, replace
from uuid import uuid4

from proctor.values.generation import Problem
from proctor.values.names.run_labels import RunLabels
from proctor.values.names.suite_name import base_name
from proctor.values.names.user import Caller
from proctor.values.priority import Priority
from proctor.values.run import RunId
from services.common.checked_fields import invalid_field, refuse
from services.common.clock import Clock
from services.common.requests.request_fields import check_owner
from services.scheduler.audit.audit_record import Author
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.run_labels import tidy
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.schedules.cron_times import CronTimes, times_problem
from services.scheduler.schedules.ports import ScheduleStore
from services.scheduler.schedules.schedule import Schedule, ScheduleGate, ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSchedule:
    """The id is the same in each repetition of a call."""

    schedule_id: ScheduleId
    times: CronTimes
    order: RunOrder
    user: str
    labels: RunLabels
    gate: ScheduleGate | None = None


@dataclass(frozen=True, slots=True)
class ChangeSchedule:
    """Each call can be repeated. All but `add` raise `ScheduleNotFound` and `BelongsToAnother`."""

    schedules: ScheduleStore
    runs: RunStore
    submit: SubmitRun
    clock: Clock

    async def add(self, wanted: WantedSchedule) -> Schedule:
        """Raises what ordering now would raise, but for the limits of this moment; `TooManySchedules`."""
        now, times = self.clock.now(), wanted.times
        refuse(times_problem(times, now) or _name_problem(wanted.labels))
        # Background work that nobody waits for.
        order = replace(wanted.order, priority=Priority.LOW)
        submission = Submission(RunId(str(uuid4())), order, wanted.user, labels=wanted.labels)
        run = (await self.submit.runs_of(submission))[0]
        if wanted.gate:
            await self._check_gate(wanted.gate, run)
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

    async def _check_gate(self, gate: ScheduleGate, run: Run) -> None:
        """Raises `InvalidParameter`, and `RunNotFound` for a base that the caller may not read."""
        refuse(gate.problem)
        if run.order.until_decided:
            raise invalid_field("gate", "is given, but the runs are decided between already: leave one out")
        if not gate.base_run_id:
            return
        base = await self.runs.get(RunId(gate.base_run_id))
        # Whoever reads the schedule reads what is said of the base, too.
        if base.order.project_id != run.order.project_id:
            raise invalid_field("gate.base_run_id", f"is in another project: {base.run_id}")
        if base_name(base.order.benchmark) != base_name(run.order.benchmark):
            over = f"{base.order.benchmark}, not over {run.order.benchmark}"
            raise invalid_field("gate.base_run_id", f"is a run over {over}")

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
