"""The caller and what it may do, and the storage of users: use and quota of each kind."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from proctor.v1 import storage_service_pb2 as storage_pb2
from services.gateway.auth.identity import CallerOf
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Text
from services.gateway.http.paths import ME, STORAGE
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

UserName = Annotated[Text, Query(max_length=128, description="Name of a user; left out: the caller")]

router = APIRouter(tags=["users"])


class Me(BaseModel):
    user: str
    role: str = Field(
        description="viewer: reads; runner: orders, uploads and changes what is its own; maintainer: changes "
        "what is others'; operator: sets limits and gives out keys"
    )
    is_operator: bool = Field(description="Whether the role is operator")
    has_key: bool = Field(description="An API key proves the name; false where the gateway needs none")


@router.get(ME, summary="The caller, and what it may do")
async def me(caller: CallerOf) -> Me:
    return Me(user=caller.name, role=caller.role, is_operator=caller.is_operator, has_key=caller.is_verified)


class StorageAmount(BaseModel):
    bytes: int = Field(description="As stored: rows are compressed")
    files: int = Field(
        description="Data sets, files, batch outputs, versions of suites, sets of tasks and runs "
        "with artifacts"
    )
    rows: int = Field(description="Rows of data sets and files")


class StorageShare(BaseModel):
    kind: str = Field(description="datasets, files, batch_output, suites, tasks or artifacts")
    used: StorageAmount


class StorageShown(BaseModel):
    user: str
    used: StorageAmount
    limit: StorageAmount = Field(description="The most that a user may store; operators change it")
    shares: list[StorageShare] = Field(description="By kind, without those of which nothing is stored")


@router.get(STORAGE, responses=problems(422, 503), summary="What a user stores, and may store")
async def show_storage(scheduler: SchedulerCalls, user: UserName = "") -> StorageShown:
    stored = await scheduler.storage.GetStorage(storage_pb2.GetStorageRequest(user=user))
    return present(StorageShown, stored)
