"""Parts of artifacts from workers over NATS, each with the proof that its rollout was dispatched to them."""

from typing import NoReturn
from uuid import UUID

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.run import RunId
from proctor.wire.dispatch_proofs import is_dispatched
from services.common.errors import DomainError
from services.common.nats.answers import WorkerRequests
from services.common.structured_logs import get_logger
from services.scheduler.rollouts.artifacts.artifact import ArtifactPart
from services.scheduler.rollouts.artifacts.errors import ArtifactRefused
from services.scheduler.rollouts.artifacts.store_artifact import StoreArtifact

log = get_logger()

_QUEUE = "scheduler"


class NatsArtifacts:
    """Accepts every proof where the scheduler has no key, as in tests of one service."""

    def __init__(self, connection: Client, storing: StoreArtifact, shard_key: str) -> None:
        self._requests = WorkerRequests(connection, messaging.ALL_ARTIFACTS, _QUEUE)
        self._storing = storing
        self._shard_key = shard_key

    async def answer(self) -> NoReturn:
        await self._requests.answer(self._respond)

    async def _respond(self, data: bytes) -> bytes:
        try:
            sent = work_messages_pb2.PutArtifactRequest.FromString(data)
            await self._storing.store(self._part(sent), sent.epoch, sent.content)
            response = work_messages_pb2.PutArtifactResponse()
        except (DecodeError, ValueError):
            problem = "The request cannot be read."
            response = work_messages_pb2.PutArtifactResponse(problem=problem, is_refused=True)
        except DomainError as error:
            is_refused = isinstance(error, ArtifactRefused)
            response = work_messages_pb2.PutArtifactResponse(problem=str(error), is_refused=is_refused)
        except Exception:  # an edge: one request that fails ends no other
            log.exception("an artifact cannot be stored")
            response = work_messages_pb2.PutArtifactResponse(
                problem="The scheduler failed; its log says why."
            )
        return response.SerializeToString()

    def _part(self, sent: work_messages_pb2.PutArtifactRequest) -> ArtifactPart:
        """Raises `ArtifactRefused` where the worker was not sent the rollout, ValueError for no run's id."""
        if not is_dispatched(sent, self._shard_key):
            raise ArtifactRefused(problem="the worker was not sent this rollout.")
        run_id = RunId(str(UUID(sent.run_id)))
        return ArtifactPart(run_id, sent.sample, sent.proof.rollout, sent.execution, sent.name, sent.part)
