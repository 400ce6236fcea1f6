"""Task folders of rollouts, uploaded before an order names them by their digest."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from proctor.v1 import rollout_service_pb2
from proctor.values.row_fields import MAX_UPLOAD_NAME_CHARACTERS
from proctor.wire.uploads import upload_messages
from services.gateway.auth.identity import User
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Text
from services.gateway.http.paths import ROLLOUT_TASKS
from services.gateway.http.problem import problems
from services.gateway.http.uploads import body_chunks, media_type_of

router = APIRouter(tags=["rollouts"])

# A page can send any other type to a server without asking it first.
_TYPES = ("application/octet-stream", "application/gzip")
# FastAPI cannot derive the description of a streamed body.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            _TYPES[0]: {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "Task folders as .tar.gz; application/gzip names the same content",
                }
            }
        },
    }
}


class TasksUploaded(BaseModel):
    tasks_digest: str = Field(description="SHA-256 of the tasks with their files, for orders")
    task_ids: list[str] = Field(description="Sorted by their folders")
    stored_bytes: int


async def _parts(
    request: Request, user: str, name: str
) -> AsyncGenerator[rollout_service_pb2.TasksHeader | bytes]:
    if media_type_of(request.headers.get("Content-Type", "")) not in _TYPES:
        raise HTTPException(415, "Name the content of the file: Content-Type: application/gzip.")
    yield rollout_service_pb2.TasksHeader(name=name, user=user)
    async with aclosing(body_chunks(request)) as body:
        async for chunk in body:
            yield chunk


@router.post(
    ROLLOUT_TASKS,
    status_code=201,
    responses=problems(400, 408, 413, 415, 422, 503),
    openapi_extra=_BODY,
    summary="Upload tasks for rollouts; those that no order uses are deleted after a day",
)
async def upload(
    scheduler: SchedulerCalls,
    user: User,
    request: Request,
    name: Annotated[
        Text, Query(max_length=MAX_UPLOAD_NAME_CHARACTERS, description="For messages")
    ] = "tasks.tar.gz",
) -> TasksUploaded:
    parts = _parts(request, user, name)
    async with aclosing(upload_messages(rollout_service_pb2.UploadTasksRequest, parts)) as messages:
        stored = await scheduler.rollouts.UploadTasks(messages)
    return TasksUploaded(
        tasks_digest=stored.tasks_digest, task_ids=list(stored.task_ids), stored_bytes=stored.stored_bytes
    )
