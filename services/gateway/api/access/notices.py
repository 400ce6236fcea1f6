"""Notices: where a user wants to be told of what, and what was sent."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from proctor.v1 import notice_service_pb2 as notice_pb2
from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from proctor.wire.enums import number_of, word_of
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Cursor, RequestBody, Text
from services.gateway.http.paths import NOTICES
from services.gateway.http.presentation import Done, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName, ProjectNumber

TargetId = Annotated[Text, Path(max_length=64, description="A target of notices")]
TargetFilter = Annotated[Text, Query(max_length=64, description="Only those to this target")]
PageSize = Annotated[int, Query(ge=1, le=500)]

router = APIRouter(prefix=NOTICES, tags=["notices"])


class NoticeTargetOrder(RequestBody):
    channel: NoticeChannel = Field(description="webhook, slack or email")
    address: Text = Field(min_length=1, max_length=2048, description="URL, or mail address")
    events: list[NoticeEvent] = Field(
        min_length=1, max_length=len(NoticeEvent), description="What is told", examples=[["run_ended"]]
    )
    scope: NoticeScope = Field(
        default=NoticeScope.OWN, description="Of whose runs: own, all of a project, or all (for operators)"
    )
    project_id: ProjectNumber = Field(default=0, description="The project of the scope project")

    def to_proto(self, request_id: str) -> notice_pb2.AddNoticeTargetRequest:
        return notice_pb2.AddNoticeTargetRequest(
            channel=number_of(self.channel),
            address=self.address,
            events=[number_of(event) for event in self.events],
            scope=number_of(self.scope),
            project_id=self.project_id,
            request_id=request_id,
        )


class NoticeTargetShown(BaseModel):
    target_id: str
    channel: str
    address: str = Field(description="Of a URL only its host: the rest may be a secret")
    events: list[str]
    scope: str
    project_id: int
    project_name: ProjectName
    created_at: datetime


class NoticeTargetAdded(NoticeTargetShown):
    secret: str | None = Field(description="Signs what goes to a webhook; shown here only")


class NoticeTargetList(BaseModel):
    targets: list[NoticeTargetShown] = Field(description="The caller's, newest first")


class NoticeShown(BaseModel):
    notice_id: str = Field(description="The same in each attempt, so that a receiver can drop doubles")
    target_id: str
    event: str
    text: str
    created_at: datetime
    attempts: int
    delivered_at: datetime | None
    next_try_at: datetime | None = Field(description="Null once it is delivered or given up")
    problem: str | None = Field(description="Why the last attempt failed")


class NoticePage(BaseModel):
    notices: list[NoticeShown] = Field(description="To the caller's targets, newest first")
    next_cursor: str | None


@router.get("", responses=problems(400, 422, 503), summary="Notices: sent, waiting and given up")
async def list_notices(
    scheduler: SchedulerCalls, target_id: TargetFilter = "", limit: PageSize = 100, cursor: Cursor = ""
) -> NoticePage:
    request = notice_pb2.ListNoticesRequest(page_size=limit, page_token=cursor, target_id=target_id)
    page = await scheduler.notices.ListNotices(request)
    notices = [present(NoticeShown, each) for each in page.notices]
    return NoticePage(notices=notices, next_cursor=page.next_page_token or None)


@router.get("/targets", responses=problems(422, 503), summary="Where the caller is told of what")
async def list_targets(scheduler: SchedulerCalls) -> NoticeTargetList:
    listed = await scheduler.notices.ListNoticeTargets(notice_pb2.ListNoticeTargetsRequest())
    return NoticeTargetList(targets=[target_shown(each) for each in listed.targets])


@router.post(
    "/targets",
    status_code=201,
    responses=problems(403, 404, 409, 422, 503),
    summary="Be told of runs by webhook, Slack or e-mail",
)
async def add_target(
    scheduler: SchedulerCalls, request_id: RequestId, body: NoticeTargetOrder
) -> NoticeTargetAdded:
    added = await scheduler.notices.AddNoticeTarget(body.to_proto(request_id))
    return NoticeTargetAdded(**target_shown(added.target).model_dump(), secret=added.secret or None)


@router.post(
    "/targets/{target_id}/test",
    status_code=202,
    responses=problems(404, 422, 429, 503),
    summary="Send a notice to a target, on the way of all others",
)
async def test_target(scheduler: SchedulerCalls, target_id: TargetId) -> NoticeShown:
    sent = await scheduler.notices.TestNoticeTarget(notice_pb2.TestNoticeTargetRequest(target_id=target_id))
    return present(NoticeShown, sent.notice)


@router.delete("/targets/{target_id}", responses=problems(404, 422, 503), summary="Delete a target")
async def delete_target(scheduler: SchedulerCalls, target_id: TargetId) -> Done:
    await scheduler.notices.DeleteNoticeTarget(notice_pb2.DeleteNoticeTargetRequest(target_id=target_id))
    return Done(message=f"Target {target_id} deleted")


def target_shown(target: notice_pb2.NoticeTarget) -> NoticeTargetShown:
    events = [word_of(notice_pb2.NoticeEvent, event) for event in target.events]
    return present(NoticeTargetShown, target, events=events)
