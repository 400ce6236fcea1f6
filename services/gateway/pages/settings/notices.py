"""Where the user is told of what, and what was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.access.notices import (
    NoticeShown,
    NoticeTargetAdded,
    NoticeTargetOrder,
    NoticeTargetShown,
    TargetId,
    add_target,
    delete_target,
    list_notices,
    list_targets,
    test_target,
)
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.form_sentences import form_sentence
from services.gateway.http.parameters import Cursor
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.text import entered

_PAGE = "/settings/notices"
_SHOWN = 50

router = APIRouter(prefix=_PAGE, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class NoticesView:
    """`added` is a target that was just added, with its secret."""

    targets: Sequence[NoticeTargetShown]
    notices: Sequence[NoticeShown]
    following: str
    now: datetime
    added: NoticeTargetAdded | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    chosen: Sequence[str] = (NoticeEvent.RUN_ENDED.value,)

    def fault(self, name: str) -> str:
        return self.faults.get(name, "")

    @property
    def elsewhere(self) -> Sequence[str]:
        """What is wrong at no field."""
        return [text for name, text in self.faults.items() if name not in NoticeTargetOrder.model_fields]

    @property
    def channels(self) -> Sequence[str]:
        return [channel.value for channel in NoticeChannel]

    @property
    def scopes(self) -> Sequence[tuple[str, str]]:
        names = {NoticeScope.OWN: "my runs", NoticeScope.PROJECT: "a project", NoticeScope.ALL: "all runs"}
        return [(scope.value, name) for scope, name in names.items()]

    @property
    def events(self) -> Sequence[tuple[str, str]]:
        names = {
            NoticeEvent.RUN_ENDED: "a run has ended",
            NoticeEvent.RUN_FAILED: "a run has failed",
            NoticeEvent.BUDGET_NEARLY_SPENT: "80 % of its budget is spent",
            NoticeEvent.QUEUE_STUCK: "it brings nothing for 30 minutes",
            NoticeEvent.SCHEDULE_REFUSED: "a schedule could not order",
            NoticeEvent.GATE_FAILED: "a gate has failed",
            NoticeEvent.DROP: "a gated run is significantly worse than its base",
        }
        return [(event.value, name) for event, name in names.items()]


@router.get("")
async def show_notices(page: PageOf, scheduler: SchedulerCalls, now: Now, cursor: Cursor = "") -> Response:
    return page.show("settings/notices", await _view(scheduler, now, cursor))


@router.post("")
async def add(request: Request, page: PageOf, scheduler: SchedulerCalls, now: Now) -> Response:
    form = await request.form()
    given = {name: str(value).strip() for name, value in form.items() if name != "events"}
    chosen = [str(value) for value in form.getlist("events")]
    entries = {name: entered(text) if name == "project_id" else text for name, text in given.items() if text}
    known = {name: value for name, value in entries.items() if name in NoticeTargetOrder.model_fields}
    faults: Mapping[str, str]
    try:
        order = NoticeTargetOrder.model_validate({**known, "events": chosen})
        added = await add_target(scheduler, str(uuid4()), order)
    except ValidationError as error:
        faults = {str(fault["loc"][0]): form_sentence(fault) for fault in error.errors()}
    except DomainError as error:
        if error.kind not in (
            ErrorKind.INVALID,
            ErrorKind.CONFLICT,
            ErrorKind.NOT_FOUND,
            ErrorKind.FORBIDDEN,
        ):
            raise
        faults = {str(error.facts.get("field", "")): error.message}
    else:
        return page.show("settings/notices", await _view(scheduler, now, added=added), status=201)
    view = await _view(scheduler, now, faults=faults, given=given, chosen=chosen)
    return page.show("settings/notices", view, status=422)


@router.post("/{target_id}/test")
async def test(page: PageOf, scheduler: SchedulerCalls, target_id: TargetId) -> Response:
    await test_target(scheduler, target_id)
    return page.go(_PAGE, Notice("A test is sent within seconds."))


@router.post("/{target_id}/delete")
async def delete(page: PageOf, scheduler: SchedulerCalls, target_id: TargetId) -> Response:
    await delete_target(scheduler, target_id)
    return page.go(_PAGE, Notice("The target is deleted."))


async def _view(scheduler: Scheduler, now: datetime, cursor: str = "", **shown: object) -> NoticesView:
    targets = (await list_targets(scheduler)).targets
    sent = await list_notices(scheduler, "", _SHOWN, cursor)
    return NoticesView(targets, sent.notices, sent.next_cursor or "", now, **shown)  # type: ignore[arg-type]  # its other fields
