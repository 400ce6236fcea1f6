"""Artifacts of rollouts: listed, and downloaded part by part."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.values.plain import INT32_MAX
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.downloads import attachment
from services.gateway.http.parameters import JSON_INT_MAX, Text
from services.gateway.http.paths import ARTIFACTS
from services.gateway.http.presentation import present
from services.gateway.http.problem import Described, problems

router = APIRouter(tags=["rollouts"])
_CONTENT: Described = {200: {"description": "The artifact", "content": {"application/octet-stream": {}}}}


@dataclass(frozen=True, slots=True)
class RolloutKey:
    """One rollout of a job."""

    job_id: Annotated[Text, Path(max_length=64)]
    sample: Annotated[int, Path(ge=0, le=JSON_INT_MAX, description="Number of the task, from 0")]
    rollout: Annotated[int, Path(ge=0, le=INT32_MAX, description="From 0")]


class ArtifactShown(BaseModel):
    execution: str = Field(
        description="Those that began anew have several; the body of the answer names the one that counts"
    )
    name: str = Field(description="trajectory.json, files.tar.gz, diff.patch or verifier.log")
    size_bytes: int
    stored_at: datetime


class ArtifactsShown(BaseModel):
    artifacts: list[ArtifactShown]


async def _listed(scheduler: SchedulerCalls, key: RolloutKey) -> list[artifact_pb2.Artifact]:
    request = artifact_pb2.ListArtifactsRequest(run_id=key.job_id, sample=key.sample, rollout=key.rollout)
    return list((await scheduler.artifacts.ListArtifacts(request)).artifacts)


@router.get(ARTIFACTS, responses=problems(404, 422, 503), summary="What a worker stored of a rollout")
async def list_artifacts(scheduler: SchedulerCalls, key: Annotated[RolloutKey, Depends()]) -> ArtifactsShown:
    found = await _listed(scheduler, key)
    return ArtifactsShown(artifacts=[present(ArtifactShown, each) for each in found])


@router.get(
    f"{ARTIFACTS}/{{execution}}/{{name}}",
    response_class=StreamingResponse,
    responses=_CONTENT | problems(404, 422, 503),
    summary="Download an artifact of a rollout",
)
async def download(
    scheduler: SchedulerCalls,
    key: Annotated[RolloutKey, Depends()],
    execution: Annotated[Text, Path(max_length=64)],
    name: Annotated[Text, Path(max_length=64)],
) -> StreamingResponse:
    request = artifact_pb2.ReadArtifactRequest(
        run_id=key.job_id,
        sample=key.sample,
        rollout=key.rollout,
        execution=execution,
        name=name,
    )
    # Before the answer begins: what is not there is a 404.
    first = await scheduler.artifacts.ReadArtifact(request)
    artifact = first.artifact

    async def parts() -> AsyncIterator[bytes]:
        yield first.content
        for part in range(1, artifact.parts):
            request.part = part
            read = await scheduler.artifacts.ReadArtifact(request)
            if read.artifact.stored_at != artifact.stored_at:
                return  # stored anew meanwhile: with too few bytes the server breaks off the response
            yield read.content

    size_bytes = artifact.size_bytes if artifact.parts > 1 else len(first.content)
    headers = {"Content-Disposition": attachment(name), "Content-Length": str(size_bytes)}
    return StreamingResponse(parts(), media_type="application/octet-stream", headers=headers)
