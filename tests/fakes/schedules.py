"""Schedules in Postgres, whose orders are checked against the suites and pools of the harness."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import uuid4

import asyncpg

from proctor.values.names.run_labels import RunLabels
from services.common.postgres import PostgresSession
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.schedules.change_schedule import ChangeSchedule, WantedSchedule
from services.scheduler.schedules.cron_times import CronTimes
from services.scheduler.schedules.postgres import PostgresLedSchedules, PostgresSchedules
from services.scheduler.schedules.schedule import Schedule, ScheduleId
from services.scheduler.schedules.submit_due import SubmitDue
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler_rules import queue_limits

MINUTELY = "* * * * *"


@dataclass
class ScheduleHarness:
    """`scheduler` has the clock, the suites and what was announced."""

    pool: asyncpg.Pool
    max_pending: int = 10
    scheduler: SchedulerHarness = field(default_factory=SchedulerHarness)

    def __post_init__(self) -> None:
        session = PostgresSession(self.pool, QUERIES)
        limits = PostgresLimits(session, queue_limits(max_pending_runs_per_user=self.max_pending))
        self.runs = PostgresRuns(session, limits)
        self.store = PostgresSchedules(session)
        self.led = PostgresLedSchedules(session, self.runs)
        submit = replace(self.scheduler.submitting, runs=self.runs)
        self.change = ChangeSchedule(self.store, submit, self.scheduler.clock)
        self.due = SubmitDue(
            self.led, self.scheduler.submitting, self.scheduler.controls, self.scheduler.clock
        )

    async def add(
        self,
        cron: str = MINUTELY,
        user: str = "ann",
        order: RunOrder | None = None,
        name: str = "nightly",
        *,
        gate: RunGate | None = None,
    ) -> Schedule:
        wanted = WantedSchedule(
            schedule_id=ScheduleId(str(uuid4())),
            times=CronTimes(cron, "UTC"),
            order=order or toy_order(),
            user=user,
            labels=RunLabels(name),
            gate=gate,
        )
        return await self.change.add(wanted)

    def go_on(self, **duration: float) -> None:
        self.scheduler.clock.seconds += timedelta(**duration).total_seconds()

    async def begin_term(self) -> FencingToken:
        return FencingToken(await PostgresSession(self.pool, QUERIES).fetchval("begin_term"))

    async def fire(self) -> None:
        await self.due.submit_all(await self.begin_term())

    async def stored_runs(self) -> list[Run]:
        ids = await self.pool.fetch("SELECT run_id FROM runs ORDER BY created_at")
        return [await self.runs.get(row["run_id"]) for row in ids]


async def empty_schedules(pool: asyncpg.Pool, max_pending: int = 10) -> ScheduleHarness:
    await pool.execute("TRUNCATE schedules CASCADE; TRUNCATE runs CASCADE; TRUNCATE user_priorities")
    await pool.execute("DELETE FROM limits; INSERT INTO limits DEFAULT VALUES")
    return ScheduleHarness(pool, max_pending)
