"""Parts of artifacts from workers over NATS, each with the proof that its rollout was dispatched to them."""

from typing import NoReturn

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.wire.proofs import dispatch_of, run_of
from proctor.wire.subjects import ARTIFACTS
from services.common.bounded_messages import read_message
from services.common.nats.worker_requests import WorkerRequests
from services.scheduler.rollouts.artifacts.artifact import ArtifactPart
from services.scheduler.rollouts.artifacts.store_artifact import ArtifactRefused, StoreArtifact


class NatsArtifacts:
    def __init__(self, connection: Client, store_artifact: StoreArtifact, dispatch_proof_key: str) -> None:
        self._requests = WorkerRequests(connection, ARTIFACTS.subject)
        self._store_artifact = store_artifact
        self._dispatch_proof_key = dispatch_proof_key

    async def answer(self) -> NoReturn:
        await self._requests.answer(self)

    async def respond(self, data: bytes) -> work_messages_pb2.PutArtifactResponse:
        sent = read_message(ARTIFACTS.kind, data, ARTIFACTS.max_bytes)
        await self._store_artifact.store(self._part(sent), sent.epoch, sent.content)
        return work_messages_pb2.PutArtifactResponse()

    def refuse(self, problem: str, error: Exception) -> work_messages_pb2.PutArtifactResponse:
        is_refused = isinstance(error, ArtifactRefused | DecodeError)
        return work_messages_pb2.PutArtifactResponse(problem=problem, is_refused=is_refused)

    def _part(self, sent: work_messages_pb2.PutArtifactRequest) -> ArtifactPart:
        """Raises `ArtifactRefused` where the worker was not sent the rollout, DecodeError for no run's id."""
        dispatch = dispatch_of(sent, self._dispatch_proof_key)
        if dispatch is None:
            raise ArtifactRefused(problem="the worker was not sent this rollout.")
        return ArtifactPart(run_of(sent), sent.sample, dispatch.rollout, sent.execution, sent.name, sent.part)
