"""Imports: logs of other tools become jobs that are completed."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from proctor.v1 import import_service_pb2 as import_pb2
from proctor.v1 import run_pb2
from proctor.values.row_fields import MAX_UPLOAD_NAME_CHARACTERS
from proctor.wire.uploads import upload_messages
from services.gateway.api.runs.job import job_listed
from services.gateway.api.runs.schemas import JobListed
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import ProjectQuery, Text
from services.gateway.http.paths import IMPORTS
from services.gateway.http.problem import problems
from services.gateway.http.uploads import body_chunks, media_type_of

router = APIRouter(tags=["benchmarks"])

# A page can send any other type to a server without asking it first.
_TYPES = ("application/octet-stream", "application/zip", "application/jsonl")
# FastAPI cannot derive the description of a streamed body.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            _TYPES[0]: {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "The file, or a zip archive of the folder, whatever its type",
                }
            }
        },
    }
}


@dataclass(frozen=True, slots=True)
class ImportParameters:
    """What the log need not tell."""

    name: Annotated[
        Text, Query(max_length=MAX_UPLOAD_NAME_CHARACTERS, description="Name of the file, kept with the job")
    ] = "log.zip"
    suite: Annotated[
        Text, Query(max_length=200, description="Suite that it is of, so that it pairs with jobs of it")
    ] = ""
    model: Annotated[
        Text,
        Query(
            max_length=512,
            description="provider/name; the one that the log names",
            json_schema_extra={"pattern": r"^([^/]+/.*\S.*)?$"},
        ),
    ] = ""
    task: Annotated[
        Text, Query(max_length=200, description="Task of one file of samples whose name does not tell it")
    ] = ""
    project_id: ProjectQuery = 0

    def to_proto(self, user: str, request_id: str) -> import_pb2.ImportHeader:
        return import_pb2.ImportHeader(
            name=self.name,
            user=user,
            suite=self.suite,
            model=self.model,
            task=self.task,
            project_id=self.project_id,
            labels=run_pb2.RunLabels(),
            request_id=request_id,
        )


class ImportedJob(BaseModel):
    job: JobListed
    notes: list[str] = Field(description="What the log has that the job has not, a sentence each")


async def _parts(
    request: Request, header: import_pb2.ImportHeader
) -> AsyncGenerator[import_pb2.ImportHeader | bytes]:
    if media_type_of(request.headers.get("Content-Type", "")) not in _TYPES:
        raise HTTPException(415, "Name the content of the file: Content-Type: application/octet-stream.")
    yield header
    async with aclosing(body_chunks(request)) as body:
        async for chunk in body:
            yield chunk


@router.post(
    IMPORTS,
    status_code=201,
    responses=problems(400, 404, 408, 409, 413, 415, 422, 503),
    openapi_extra=_BODY,
    summary="Import a log of lm-eval, Inspect, HELM, Harbor or Every Eval Ever as a completed job",
)
async def import_log(
    scheduler: SchedulerCalls,
    user: User,
    request: Request,
    request_id: RequestId,
    parameters: Annotated[ImportParameters, Depends()],
) -> ImportedJob:
    parts = _parts(request, parameters.to_proto(user, request_id))
    async with aclosing(upload_messages(import_pb2.ImportRunRequest, parts)) as messages:
        imported = await scheduler.imports.ImportRun(messages)
    return ImportedJob(job=job_listed(imported.run), notes=list(imported.notes))
