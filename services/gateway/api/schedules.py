"""Schedules: orders that are repeated at the times of a cron expression."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field, model_validator

from proctor.v1 import run_pb2
from proctor.v1 import schedule_service_pb2 as schedule_pb2
from proctor.values.comparison import (
    DEFAULT_GATE_ALPHA,
    DEFAULT_MARGIN_POINTS,
    MAX_ALPHA,
    MAX_MARGIN_POINTS,
)
from proctor.values.names.user import MAX_USER_CHARACTERS
from services.gateway.api.dataset_runs.requests import DatasetRunRequest
from services.gateway.api.runs.repeat import repeating_body
from services.gateway.api.runs.requests import RunRequest
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Cursor, ProjectFilter, RequestBody, Text
from services.gateway.http.paths import SCHEDULES
from services.gateway.http.presentation import Done, benchmark_of, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName

Id = Annotated[Text, Path(max_length=64, description="A schedule")]
PageSize = Annotated[int, Query(ge=1, le=500)]
UserFilter = Annotated[Text, Query(max_length=MAX_USER_CHARACTERS, description="Only those of this user")]

router = APIRouter(prefix=SCHEDULES, tags=["schedules"])


class ScheduleGate(RequestBody):
    """Each run is gated over all tasks once it has ended; notices tell of a failed gate and of a drop."""

    base_run_id: uuid.UUID | None = Field(
        default=None,
        description="The run it is compared to; null: that of the latest earlier time that has completed",
    )
    margin_points: float = Field(
        default=DEFAULT_MARGIN_POINTS,
        ge=0,
        le=MAX_MARGIN_POINTS,
        description="Accepted drop in points: hundredths of a share",
    )
    alpha: float = Field(
        default=DEFAULT_GATE_ALPHA,
        gt=0,
        lt=MAX_ALPHA,
        description="Chance of a wrong decision in any task",
    )

    def to_proto(self) -> schedule_pb2.ScheduleGate:
        return schedule_pb2.ScheduleGate(
            base_run_id=str(self.base_run_id or ""), margin_points=self.margin_points, alpha=self.alpha
        )


class ScheduleOrder(RequestBody):
    """When and what; `run` or `dataset_run` has the name of the schedule, and its priority is low."""

    cron: Text = Field(
        min_length=1, max_length=100, examples=["0 3 * * MON"], description="minute hour day month weekday"
    )
    time_zone: Text = Field(default="UTC", max_length=64, examples=["Europe/Vienna"])
    run: RunRequest | None = Field(default=None, description="What is ordered each time: a suite")
    dataset_run: DatasetRunRequest | None = Field(default=None, description="Or a data set")
    gate: ScheduleGate | None = Field(default=None, description="Null: its runs are not gated")

    @model_validator(mode="after")
    def one_order(self) -> Self:
        if (self.run is None) == (self.dataset_run is None):
            raise ValueError("give one of run and dataset_run")
        return self

    def to_proto(self, user: str, request_id: str) -> schedule_pb2.AddScheduleRequest:
        ordered = self.run or self.dataset_run
        assert ordered
        return schedule_pb2.AddScheduleRequest(
            cron=self.cron,
            time_zone=self.time_zone,
            order=ordered.to_order(),
            labels=ordered.labels(),
            user=user,
            request_id=request_id,
            gate=self.gate.to_proto() if self.gate else None,
        )


class FiringShown(BaseModel):
    due_at: datetime = Field(description="The latest time, if earlier ones were missed")
    fired_at: datetime
    run_ids: list[str] = Field(description="Two of an order until decided; none of one that was refused")
    problem: str | None = Field(description="Why the order was refused")
    verdict: str | None = Field(description="Of the gate: pass, fail or inconclusive; null until then")
    base_run_id: str | None = Field(description="The run it was compared to")
    gate_text: str | None = Field(description="The decision, or why there is none")


class ScheduleGateShown(BaseModel):
    base_run_id: str | None
    margin_points: float
    alpha: float


class ScheduleShown(BaseModel):
    schedule_id: str
    name: str
    user: str
    project_id: int
    project_name: ProjectName
    model: str
    benchmark: str = Field(description="The suite, or the id of the data set")
    cron: str
    time_zone: str
    created_at: datetime
    next_due_at: datetime | None = Field(description="In the past while a firing waits; null while paused")
    paused_at: datetime | None
    problem: str | None = Field(description="Why the firing that is due waits")
    last_firing: FiringShown | None
    gate: ScheduleGateShown | None
    run: dict[str, Any] | None = Field(description="What is ordered each time of a suite")
    dataset_run: dict[str, Any] | None = Field(description="What is ordered each time of a data set")


class ScheduleDetail(ScheduleShown):
    firings: list[FiringShown] = Field(description="The latest 100, latest first")


class SchedulePage(BaseModel):
    schedules: list[ScheduleShown] = Field(description="Newest first")
    next_cursor: str | None


@router.get("", responses=problems(400, 404, 422, 503), summary="Schedules")
async def list_schedules(
    scheduler: SchedulerCalls,
    user: UserFilter = "",
    project_id: ProjectFilter = None,
    limit: PageSize = 100,
    cursor: Cursor = "",
) -> SchedulePage:
    request = schedule_pb2.ListSchedulesRequest(
        page_size=limit, page_token=cursor, user=user, project_id=project_id
    )
    page = await scheduler.schedules.ListSchedules(request)
    return SchedulePage(
        schedules=[schedule_shown(each) for each in page.schedules], next_cursor=page.next_page_token or None
    )


@router.post(
    "",
    status_code=201,
    responses=problems(400, 404, 409, 422, 503),
    summary="Repeat an order at the times of a cron expression",
)
async def add_schedule(
    scheduler: SchedulerCalls, user: User, request_id: RequestId, body: ScheduleOrder
) -> ScheduleShown:
    added = await scheduler.schedules.AddSchedule(body.to_proto(user, request_id))
    return schedule_shown(added.schedule)


@router.get("/{schedule_id}", responses=problems(404, 422, 503), summary="A schedule with its firings")
async def get_schedule(scheduler: SchedulerCalls, schedule_id: Id) -> ScheduleDetail:
    request = schedule_pb2.GetScheduleRequest(schedule_id=schedule_id)
    found = await scheduler.schedules.GetSchedule(request)
    firings = [present(FiringShown, each) for each in found.firings]
    return ScheduleDetail(**schedule_shown(found.schedule).model_dump(), firings=firings)


@router.post(
    "/{schedule_id}/pause",
    responses=problems(404, 422, 503),
    summary="Pause a schedule: times until it is resumed are not made up for",
)
async def pause_schedule(scheduler: SchedulerCalls, schedule_id: Id) -> ScheduleShown:
    request = schedule_pb2.PauseScheduleRequest(schedule_id=schedule_id)
    return schedule_shown((await scheduler.schedules.PauseSchedule(request)).schedule)


@router.post("/{schedule_id}/resume", responses=problems(404, 422, 503), summary="Resume a paused schedule")
async def resume_schedule(scheduler: SchedulerCalls, schedule_id: Id) -> ScheduleShown:
    request = schedule_pb2.ResumeScheduleRequest(schedule_id=schedule_id)
    return schedule_shown((await scheduler.schedules.ResumeSchedule(request)).schedule)


@router.delete(
    "/{schedule_id}", responses=problems(404, 422, 503), summary="Delete a schedule; its runs stay"
)
async def delete_schedule(scheduler: SchedulerCalls, schedule_id: Id) -> Done:
    await scheduler.schedules.DeleteSchedule(schedule_pb2.DeleteScheduleRequest(schedule_id=schedule_id))
    return Done(message=f"Schedule {schedule_id} deleted")


def schedule_shown(schedule: schedule_pb2.Schedule) -> ScheduleShown:
    order = schedule.order
    body = repeating_body(run_pb2.Run(order=order)) | _labels(schedule.labels)
    return present(
        ScheduleShown,
        schedule,
        order,
        name=schedule.labels.name,
        benchmark=benchmark_of(order),
        run=body if order.suite else None,
        dataset_run=body if order.dataset_id else None,
    )


def _labels(labels: run_pb2.RunLabels) -> dict[str, Any]:
    given: dict[str, Any] = {"name": labels.name, "tags": [*labels.tags], "note": labels.note}
    return {name: value for name, value in given.items() if value}
