"""The audit, for operators: who did what, when and from where; a page, or all of it as JSON lines."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, Field

from proctor.v1 import audit_pb2, audit_service_pb2
from proctor.values.names.user import MAX_USER_CHARACTERS
from proctor.values.plain import with_line_feeds_only
from proctor.wire.enums import value_of, word_of
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.downloads import attachment
from services.gateway.http.parameters import Cursor, Text
from services.gateway.http.paths import AUDIT
from services.gateway.http.presentation import present
from services.gateway.http.problem import Described, problems

PageSize = Annotated[int, Query(ge=1, le=500)]
OutcomeName = Literal["done", "admitted", "refused"]
_FILE: Described = {200: {"description": "JSON lines", "content": {"application/jsonl": {}}}}
# A page of the file: few calls, and a small part of a message.
_FILE_PAGE = 500

router = APIRouter(prefix=AUDIT, tags=["audit"])


def moment_in_utc(at: datetime) -> datetime:
    """A time without a zone is in UTC. Raises ValueError for one that no record has."""
    if not 2000 <= at.year < 9999:  # years
        raise ValueError("it must be between the years 2000 and 9998")
    return at.replace(tzinfo=at.tzinfo or UTC)


class AuditRecordShown(BaseModel):
    recorded_at: datetime
    user: str = Field(description="Empty for an unknown key")
    key_id: str = Field(description="Empty for a key in the settings of the gateway, and without keys")
    address: str = Field(description="That the gateway was called from")
    action: str = Field(description="A verb, such as submit, cancel, upload, export, read, sign in or revoke")
    kind: str = Field(description="Of the object, such as run, dataset, file, suite, limits or key")
    object_id: str = Field(description="Empty where there is none")
    detail: str = Field(description="Such as the name of what was deleted, or the limits that were set")
    outcome: str = Field(
        description="done: stored with the change; admitted: stored before the call went on; refused"
    )
    times: int = Field(description="Number of equal refusals of a minute, which share a record; else 1")


class AuditPage(BaseModel):
    records: list[AuditRecordShown] = Field(description="Latest first")
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class AuditParameters:
    """What a record has to have."""

    user: Annotated[Text, Query(max_length=MAX_USER_CHARACTERS, description="Only what this user did")] = ""
    action: Annotated[Text, Query(max_length=64, description="Only this verb")] = ""
    object_id: Annotated[Text, Query(max_length=1024, description="Only what was done to this")] = ""
    outcome: Annotated[OutcomeName | None, Query(description="Only records of this outcome")] = None
    since: Annotated[
        datetime | None, AfterValidator(moment_in_utc), Query(description="Only records since this time")
    ] = None

    def request(self, size: int, cursor: str = "") -> audit_service_pb2.ListAuditRecordsRequest:
        request = audit_service_pb2.ListAuditRecordsRequest(
            page_size=size,
            page_token=cursor,
            user=self.user,
            action=self.action,
            object_id=self.object_id,
        )
        if self.outcome:
            request.outcome = value_of(audit_pb2.AuditOutcome, self.outcome)
        if self.since:
            request.since.FromDatetime(self.since)
        return request


Parameters = Annotated[AuditParameters, Depends()]


@router.get("", responses=problems(400, 422, 503), summary="Who did what, latest first")
async def list_records(
    scheduler: SchedulerCalls, wanted: Parameters, limit: PageSize = 100, cursor: Cursor = ""
) -> AuditPage:
    page = await scheduler.audit.ListAuditRecords(wanted.request(limit, cursor))
    records = [record_shown(record) for record in page.records]
    return AuditPage(records=records, next_cursor=page.next_page_token or None)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses=_FILE | problems(422, 503),
    summary="Who did what, as a file of JSON lines, latest first",
)
async def export_records(scheduler: SchedulerCalls, wanted: Parameters) -> Response:
    pages = _pages(scheduler, wanted)
    # Once the response has begun, its status can no longer say what went wrong.
    first = await anext(pages, b"")

    async def content() -> AsyncGenerator[bytes]:
        async with aclosing(pages):
            yield first
            async for page in pages:
                yield page

    headers = {"Content-Disposition": attachment("audit.jsonl", is_ascii=True)}
    return StreamingResponse(content(), media_type="application/jsonl", headers=headers)


async def _pages(scheduler: Scheduler, wanted: AuditParameters) -> AsyncGenerator[bytes]:
    """Pages of lines."""
    cursor, is_last = "", False
    while not is_last:
        page = await scheduler.audit.ListAuditRecords(wanted.request(_FILE_PAGE, cursor))
        cursor, is_last = page.next_page_token, not page.next_page_token
        lines = "".join(f"{record_shown(record).model_dump_json()}\n" for record in page.records)
        yield with_line_feeds_only(lines.encode())


def record_shown(record: audit_pb2.AuditRecord) -> AuditRecordShown:
    return present(AuditRecordShown, record, outcome=word_of(audit_pb2.AuditOutcome, record.outcome))
