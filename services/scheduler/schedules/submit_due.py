"""Orders what is due. The leader fires, in the transaction that stores the runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind, ProjectNotFound
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.runs.lifecycle.ports import RunControls
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.schedules.ports import LedSchedules
from services.scheduler.schedules.schedule import Firing, Schedule

# Times are minutes: an order is late by so much at most.
EVERY_SECONDS = 2.0
# What another attempt may change: room in the queue, a service that is away.
_PASSING = frozenset({ErrorKind.EXHAUSTED, ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL})
# What was thrown stands in the log only: it may name what no user should see.
_FAULT = "The order could not be given, and is tried again; the log of the scheduler says why."
_NO_USER = "The last API key of {user} was revoked, so it is paused; resume it if it should go on."

log = get_logger()


@dataclass(frozen=True, slots=True)
class SubmitDue:
    schedules: LedSchedules
    submit: SubmitRun
    controls: RunControls
    clock: Clock

    async def lead(self, token: FencingToken) -> NoReturn:
        """Leads until cancelled."""

        async def step() -> None:
            await self.submit_all(token)

        await every(EVERY_SECONDS, step, name="fire schedules")

    async def submit_all(self, token: FencingToken) -> None:
        """Raises `LeadershipLost`."""
        now = self.clock.now()
        for schedule in await self.schedules.due(now):
            try:
                await self._submit(token, schedule, now)
            except LeadershipLost:
                raise
            except Exception:  # of a loop: one schedule must not hold up the others
                log.exception("schedule failed", schedule_id=schedule.schedule_id)
                await self.schedules.wait(token, schedule, _FAULT, now)

    async def _submit(self, token: FencingToken, schedule: Schedule, now: datetime) -> None:
        due_at = schedule.due_at(now)
        if await self.schedules.is_without_user(schedule, now):
            sentence = _NO_USER.format(user=schedule.user)
            await self.schedules.stop(token, schedule, Firing(due_at=due_at, fired_at=now, problem=sentence))
            return
        try:
            runs = await self._runs(schedule, due_at)
            ids = tuple(run.run_id for run in runs)
            firing = Firing(due_at=due_at, fired_at=now, run_ids=ids)
            if not await self.schedules.fire(token, schedule, firing, runs):
                return
        except LeadershipLost:
            raise
        except DomainError as error:
            log.info("schedule not fired", schedule_id=schedule.schedule_id, error=error.message)
            if error.kind in _PASSING:
                await self.schedules.wait(token, schedule, error.message, now)
                return
            refused = Firing(due_at=due_at, fired_at=now, problem=error.message)
            await self.schedules.fire(token, schedule, refused, ())
            return
        for run in runs:
            await self.controls.announce(run)

    async def _runs(self, schedule: Schedule, due_at: datetime) -> Sequence[Run]:
        """Raises `ProjectNotFound` where what it is over is in another project by now."""
        submission = Submission(
            schedule.run_id_at(due_at), schedule.order, schedule.user, labels=schedule.labels
        )
        runs = await self.submit.runs_of(submission)
        if any(run.order.project_id != schedule.order.project_id for run in runs):
            raise ProjectNotFound
        return runs
