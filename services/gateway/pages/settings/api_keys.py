"""API keys of users, for operators. Only the page that answers the making of a key shows it whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from proctor.v1 import key_service_pb2
from proctor.values.names.user import Role
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.access.keys import (
    KeyId,
    KeyMade,
    KeyOrder,
    KeyShown,
    create_key,
    key_shown,
    rotate_key,
)
from services.gateway.api.access.keys import KeyRotation as Rotation
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.form_sentences import form_sentence
from services.gateway.http.parameters import Cursor
from services.gateway.pages.page import Notice, PageOf
from services.gateway.pages.text import entered

_PAGE = "/settings/keys"
_SHOWN = 50

router = APIRouter(prefix=_PAGE, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class KeyListView:
    """`ask` is the id of the key that is to be revoked, `made` one that was just made."""

    keys: Sequence[KeyShown]
    following: str
    now: datetime
    ask: str = ""
    made: KeyMade | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    def fault(self, name: str) -> str:
        return self.faults.get(name, "")

    @property
    def asked(self) -> KeyShown | None:
        return next((key for key in self.keys if key.key_id == self.ask and not self.end_of(key)), None)

    @property
    def roles(self) -> Sequence[Role]:
        return list(Role)

    def end_of(self, key: KeyShown) -> str:
        """ "revoked" or "over"; "" for a key that is taken."""
        if key.revoked_at:
            return "revoked"
        return "over" if key.expires_at <= self.now else ""


@router.get("")
async def show_keys(
    page: PageOf, scheduler: SchedulerCalls, now: Now, cursor: Cursor = "", ask: str = ""
) -> Response:
    return page.show("settings/api_keys", await _view(scheduler, now, cursor, ask=ask))


@router.post("")
async def make_key(request: Request, page: PageOf, scheduler: SchedulerCalls, now: Now) -> Response:
    form = {name: str(value).strip() for name, value in (await request.form()).items()}
    given = {name: form[name] for name in KeyOrder.model_fields if form.get(name)}
    entries = {
        name: entered(text) if name in ("days", "project_id") else text for name, text in given.items()
    }
    faults: Mapping[str, str]
    try:
        made = await create_key(scheduler, str(uuid4()), KeyOrder.model_validate(entries))
    except ValidationError as error:
        faults = {str(fault["loc"][0]): form_sentence(fault) for fault in error.errors()}
    except DomainError as error:
        if error.kind not in (ErrorKind.INVALID, ErrorKind.CONFLICT, ErrorKind.NOT_FOUND):
            raise
        faults = {str(error.facts.get("field", "")): error.message}
    else:
        return page.show("settings/api_keys", await _view(scheduler, now, made=made), status=201)
    view = await _view(scheduler, now, faults=faults, given=given)
    return page.show("settings/api_keys", view, status=422)


@router.post("/{key_id}/rotate")
async def replace_key(page: PageOf, scheduler: SchedulerCalls, now: Now, key_id: KeyId) -> Response:
    made = await rotate_key(scheduler, str(uuid4()), key_id, Rotation())
    return page.show("settings/api_keys", await _view(scheduler, now, made=made), status=201)


@router.post("/{key_id}/revoke")
async def revoke_key(page: PageOf, scheduler: SchedulerCalls, key_id: KeyId) -> Response:
    key = (await scheduler.keys.RevokeKey(key_service_pb2.RevokeKeyRequest(key_id=key_id))).key
    return page.go(_PAGE, Notice(f"{key.prefix}… of {key.user} is refused from now on, by all replicas."))


async def _view(scheduler: Scheduler, now: datetime, cursor: str = "", **shown: object) -> KeyListView:
    request = key_service_pb2.ListKeysRequest(page_size=_SHOWN, page_token=cursor)
    listed = await scheduler.keys.ListKeys(request)
    keys = [key_shown(key) for key in listed.keys]
    return KeyListView(keys, listed.next_page_token, now, **shown)  # type: ignore[arg-type]  # its other fields
