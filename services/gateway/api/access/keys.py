"""API keys, for operators: made, listed, replaced and revoked."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from proctor.v1 import key_pb2, key_service_pb2
from proctor.values.names.user import MAX_USER_CHARACTERS, Role
from proctor.wire.enums import number_of, word_of
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Cursor, RequestBody, Text
from services.gateway.http.paths import KEYS
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName, ProjectNumber

KeyId = Annotated[str, Path(max_length=64, description="Sixteen hexadecimal digits")]
PageSize = Annotated[int, Query(ge=1, le=500)]
UserName = Annotated[Text, Query(max_length=MAX_USER_CHARACTERS, description="Only keys of this user")]
Days = Annotated[int, Field(ge=1, le=1825, description="Days for which it is taken")]

router = APIRouter(prefix=KEYS, tags=["keys"])


class KeyShown(BaseModel):
    key_id: str
    user: str = Field(description="Whose calls it proves")
    role: str = Field(description="viewer, runner, maintainer or operator")
    note: str
    prefix: str = Field(description="The begin of the key")
    created_by: str
    created_at: datetime
    expires_at: datetime = Field(description="From then on it is refused")
    last_used_at: datetime | None = Field(description="To the minute; null if it was never used")
    revoked_at: datetime | None = Field(description="Null if nobody has revoked it")
    project_id: int = Field(description="It reaches nothing outside of this project; 0: all of the user's")
    project_name: ProjectName


class KeyPage(BaseModel):
    keys: list[KeyShown] = Field(description="Latest first; also those that ended, for a year")
    next_cursor: str | None


class KeyOrder(RequestBody):
    user: Annotated[Text, Field(max_length=MAX_USER_CHARACTERS, description="Whose calls it proves")]
    role: Role = Field(default=Role.RUNNER, description="What it allows")
    days: Days = 90
    note: Annotated[Text, Field(max_length=200, description="What it is for")] = ""
    project_id: ProjectNumber = Field(
        default=0, description="A declared project outside of which it reaches nothing; 0: all of the user's"
    )


class KeyRotation(RequestBody):
    overlap_hours: int = Field(
        default=24, ge=0, le=720, description="Hours for which the replaced key is still taken"
    )
    days: Days = 90


class KeyMade(BaseModel):
    key: KeyShown
    secret: str = Field(description="The whole key, as calls send it. Shown here only")


@router.get("", responses=problems(400, 422, 503), summary="API keys, latest first")
async def list_keys(
    scheduler: SchedulerCalls, limit: PageSize = 100, cursor: Cursor = "", user: UserName = ""
) -> KeyPage:
    request = key_service_pb2.ListKeysRequest(page_size=limit, page_token=cursor, user=user)
    page = await scheduler.keys.ListKeys(request)
    return KeyPage(keys=[key_shown(key) for key in page.keys], next_cursor=page.next_page_token or None)


@router.post("", status_code=201, responses=problems(404, 409, 422, 503), summary="Make an API key")
async def create_key(scheduler: SchedulerCalls, request_id: RequestId, order: KeyOrder) -> KeyMade:
    request = key_service_pb2.CreateKeyRequest(
        user=order.user,
        role=number_of(order.role),
        days=order.days,
        note=order.note,
        request_id=request_id,
        project_id=order.project_id,
    )
    return _made(await scheduler.keys.CreateKey(request))


@router.post(
    "/{key_id}/rotate", status_code=201, responses=problems(404, 409, 422, 503), summary="Replace an API key"
)
async def rotate_key(
    scheduler: SchedulerCalls, request_id: RequestId, key_id: KeyId, rotation: KeyRotation
) -> KeyMade:
    request = key_service_pb2.RotateKeyRequest(
        key_id=key_id, days=rotation.days, overlap_hours=rotation.overlap_hours, request_id=request_id
    )
    return _made(await scheduler.keys.RotateKey(request))


@router.delete(
    "/{key_id}",
    responses=problems(404, 422, 503),
    summary="Revoke an API key: every replica refuses it within a second",
)
async def revoke_key(scheduler: SchedulerCalls, key_id: KeyId) -> KeyShown:
    return key_shown((await scheduler.keys.RevokeKey(key_service_pb2.RevokeKeyRequest(key_id=key_id))).key)


def key_shown(key: key_pb2.ApiKey) -> KeyShown:
    return present(KeyShown, key, role=word_of(key_pb2.Role, key.role))


def _made(made: key_service_pb2.CreateKeyResponse | key_service_pb2.RotateKeyResponse) -> KeyMade:
    return KeyMade(key=key_shown(made.key), secret=made.secret)
