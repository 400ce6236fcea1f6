"""Schedules: a list, and each one with its firings. The form of an order adds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter
from starlette.responses import Response

from proctor.v1 import schedule_service_pb2 as schedule_pb2
from services.gateway.api.schedules import (
    Id,
    ScheduleDetail,
    ScheduleShown,
    delete_schedule,
    get_schedule,
    pause_schedule,
    resume_schedule,
    schedule_shown,
)
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Cursor
from services.gateway.pages.page import Notice, PageOf

_PAGE = "/schedules"
_SHOWN = 50

router = APIRouter(prefix=_PAGE, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ScheduleListView:
    schedules: Sequence[ScheduleShown]
    following: str
    now: datetime


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """`is_asked`: whether it is to be deleted."""

    schedule: ScheduleDetail
    is_asked: bool
    now: datetime


@router.get("")
async def show_schedules(page: PageOf, scheduler: SchedulerCalls, now: Now, cursor: Cursor = "") -> Response:
    request = schedule_pb2.ListSchedulesRequest(page_size=_SHOWN, page_token=cursor)
    listed = await scheduler.schedules.ListSchedules(request)
    shown = [schedule_shown(each) for each in listed.schedules]
    return page.show("schedules/schedules", ScheduleListView(shown, listed.next_page_token, now))


@router.get("/{schedule_id}")
async def show_schedule(
    page: PageOf, scheduler: SchedulerCalls, now: Now, schedule_id: Id, ask: str = ""
) -> Response:
    schedule = await get_schedule(scheduler, schedule_id)
    return page.show("schedules/schedule", ScheduleView(schedule, ask == "delete", now))


@router.post("/{schedule_id}/pause")
async def pause(page: PageOf, scheduler: SchedulerCalls, schedule_id: Id) -> Response:
    paused = await pause_schedule(scheduler, schedule_id)
    undo = f"{_PAGE}/{schedule_id}/resume"
    return page.go(
        f"{_PAGE}/{schedule_id}", Notice(f"{paused.name} is paused.", undo=undo, undo_name="Resume")
    )


@router.post("/{schedule_id}/resume")
async def resume(page: PageOf, scheduler: SchedulerCalls, schedule_id: Id) -> Response:
    resumed = await resume_schedule(scheduler, schedule_id)
    return page.go(f"{_PAGE}/{schedule_id}", Notice(f"{resumed.name} goes on."))


@router.post("/{schedule_id}/delete")
async def delete(page: PageOf, scheduler: SchedulerCalls, schedule_id: Id) -> Response:
    await delete_schedule(scheduler, schedule_id)
    return page.go(_PAGE, Notice("The schedule is deleted. Its runs stay."))
