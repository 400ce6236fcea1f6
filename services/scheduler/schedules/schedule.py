"""A schedule: an order that is repeated at the times of a cron expression."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType
from uuid import UUID, uuid5

from proctor.values.comparison import GateVerdict
from proctor.values.names.run_labels import RunLabels
from proctor.values.run import RunId
from services.scheduler.gates.gated_run import GatedRun
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.schedules.cron_times import CronTimes

ScheduleId = NewType("ScheduleId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A time at which the order was given; with a problem it was refused, and there are no runs.

    `gate_text` is the decision of the gate against the base, or why there is none; empty until then.
    """

    due_at: datetime
    fired_at: datetime
    run_ids: tuple[str, ...] = ()
    problem: str = ""
    verdict: GateVerdict | None = None
    base_run_id: str = ""
    gate_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedFiring(GatedRun):
    """A firing whose run is over."""

    schedule_id: ScheduleId
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """`problem` says why the firing that is due waits, or why it was stopped. `labels` are its runs'."""

    schedule_id: ScheduleId
    user: str
    cron: str
    time_zone: str
    order: RunOrder
    created_at: datetime
    next_due_at: datetime
    labels: RunLabels = field(default_factory=RunLabels)
    paused_at: datetime | None = None
    problem: str = ""
    last_firing: Firing | None = None
    gate: RunGate | None = None

    @property
    def times(self) -> CronTimes:
        return CronTimes(self.cron, self.time_zone)

    def due_at(self, now: datetime) -> datetime:
        """The time that is fired for: the latest one, so that any number of missed times is one firing."""
        return self.times.latest_from(self.next_due_at, now)

    def run_id_at(self, due_at: datetime) -> RunId:
        """The same one at each attempt, of whichever leader."""
        return RunId(str(uuid5(UUID(self.schedule_id), due_at.isoformat())))


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Latest first. `last` is the number of the last one; None on the last page."""

    schedules: Sequence[Schedule]
    last: int | None
