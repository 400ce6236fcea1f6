"""The changes of users: who cancelled, paused, retried or deleted something, or set the limits."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from proctor.v1 import change_pb2, change_service_pb2, run_pb2
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Text
from services.gateway.http.paths import CHANGES
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

PageSize = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[Text, Query(description="next_cursor of the previous page")]
ObjectId = Annotated[Text, Query(max_length=255, description="Of a run, data set, file or suite@version")]


class ChangeShown(BaseModel):
    user: str = Field(description="Who made it")
    action: str = Field(description="cancel, pause, resume, retry, delete, set or label")
    kind: str = Field(description="run, dataset, file, suite or limits")
    object_id: str = Field(description="Empty for the limits")
    changed_at: datetime
    detail: str = Field(description="Name of what was deleted, or the limits or labels that were set")


class ChangePage(BaseModel):
    changes: list[ChangeShown] = Field(description="Latest first")
    next_cursor: str | None


router = APIRouter(tags=["users"])


@router.get(CHANGES, responses=problems(400, 422, 503), summary="Who changed what, latest first")
async def list_changes(
    scheduler: SchedulerCalls, limit: PageSize = 100, cursor: Cursor = "", object_id: ObjectId = ""
) -> ChangePage:
    request = change_service_pb2.ListChangesRequest(page_size=limit, page_token=cursor, object_id=object_id)
    page = await scheduler.changes.ListChanges(request)
    return ChangePage(
        changes=[change_shown(change) for change in page.changes], next_cursor=page.next_page_token or None
    )


def change_shown(change: change_pb2.Change) -> ChangeShown:
    return present(ChangeShown, change)


def changes_of(run: run_pb2.Run) -> list[ChangeShown]:
    return [change_shown(change) for change in run.changes]
