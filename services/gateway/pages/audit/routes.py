"""The audit, for operators: who did what, from where, narrowed by the fields above the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway.api.audit import (
    AuditParameters,
    AuditRecordShown,
    OutcomeName,
    moment_in_utc,
    record_shown,
)
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Text
from services.gateway.http.paths import AUDIT
from services.gateway.pages.addresses import FilteredPage, address
from services.gateway.pages.page import PageOf

_PAGE = "/audit"
_SHOWN = 50
_FIELD_CHARACTERS = 512

router = APIRouter(prefix=_PAGE, include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView(FilteredPage):
    records: Sequence[AuditRecordShown]
    following: str
    now: datetime

    @property
    def outcomes(self) -> Sequence[str]:
        return get_args(OutcomeName)

    @property
    def file(self) -> str:
        """The address of all of them as JSON lines."""
        return address(f"{AUDIT}/export", {**self.filters, "after": ""})


@router.get("")
async def show_audit(
    *,
    page: PageOf,
    scheduler: SchedulerCalls,
    now: Now,
    user: Text = "",
    action: Text = "",
    object_id: Text = "",
    outcome: Text = "",
    since: Text = "",
    after: Text = "",
) -> Response:
    """A time or an outcome that is none is ignored."""
    at = _time(since)
    named = next((each for each in get_args(OutcomeName) if each == outcome), None)
    texts = {"user": user, "action": action, "object_id": object_id}
    given = {name: text.strip()[:_FIELD_CHARACTERS] for name, text in texts.items()}
    request = AuditParameters(**given, outcome=named, since=at).request(_SHOWN, after)
    found = await scheduler.audit.ListAuditRecords(request)
    shown = {**given, "outcome": named or "", "since": at.date().isoformat() if at else "", "after": after}
    view = AuditView(
        path=_PAGE,
        filters={name: text for name, text in shown.items() if text},
        records=[record_shown(record) for record in found.records],
        following=found.next_page_token,
        now=now,
    )
    return page.show("audit/audit", view)


def _time(text: str) -> datetime | None:
    try:
        return moment_in_utc(datetime.fromisoformat(text))
    except ValueError:
        return None
