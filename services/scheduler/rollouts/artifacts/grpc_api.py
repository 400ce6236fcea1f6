"""ArtifactService: converts, reads, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass
from uuid import UUID

import grpc

from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.values.run import RunId
from proctor.wire.convert import Codec
from services.common.grpc.server import RpcContext
from services.scheduler.rollouts.artifacts.artifact import Artifact, ArtifactPart
from services.scheduler.rollouts.artifacts.show_artifacts import ArtifactNotFound, ShowArtifacts

SERVICE_NAME = artifact_pb2.DESCRIPTOR.services_by_name["ArtifactService"].full_name
_ARTIFACT = Codec(Artifact, artifact_pb2.Artifact)


@dataclass(frozen=True, kw_only=True)
class GrpcArtifactApi(artifact_grpc.ArtifactServiceServicer):
    show_artifacts: ShowArtifacts

    def register(self, server: grpc.aio.Server) -> None:
        artifact_grpc.add_ArtifactServiceServicer_to_server(self, server)

    async def ListArtifacts(
        self, request: artifact_pb2.ListArtifactsRequest, context: RpcContext
    ) -> artifact_pb2.ListArtifactsResponse:
        run_id = _run_id(request.run_id, "")
        found = await self.show_artifacts.list_of_rollout(run_id, request.sample, request.rollout)
        return artifact_pb2.ListArtifactsResponse(artifacts=[_ARTIFACT.to_proto(each) for each in found])

    async def ReadArtifact(
        self, request: artifact_pb2.ReadArtifactRequest, context: RpcContext
    ) -> artifact_pb2.ReadArtifactResponse:
        part = ArtifactPart(
            run_id=_run_id(request.run_id, request.name),
            sample=request.sample,
            rollout=request.rollout,
            execution=request.execution,
            name=request.name,
            part=request.part,
        )
        artifact, content = await self.show_artifacts.show_part(part)
        return artifact_pb2.ReadArtifactResponse(content=content, artifact=_ARTIFACT.to_proto(artifact))


def _run_id(text: str, name: str) -> RunId:
    """Raises `ArtifactNotFound` for a text that is not a UUID."""
    try:
        return RunId(str(UUID(text)))
    except ValueError as error:
        raise ArtifactNotFound(run_id=text[:64], name=name[:40]) from error
