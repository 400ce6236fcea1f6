"""Files of tasks from the scheduler and artifacts to it, over NATS: a worker reaches no object store."""

import asyncio

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.wire.dispatch_proofs import ranges_to_proto
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.worker.execution.shard import Shard
from services.worker.rollouts.artifacts import ArtifactNotStored
from services.worker.rollouts.fetch_files import FilesNotFetched

log = get_logger()

_ANSWER_SECONDS = 20.0
# A scheduler that restarts is back by then.
_TRIES, _PAUSE_SECONDS = 6, 2.0
# Artifacts are worth less than a slot of a worker.
_PUT_TRIES, _PUT_SECONDS = 3, 10.0


class NatsArtifactSink:
    """Stores artifacts of one execution of a rollout, with the proof that came with its shard."""

    def __init__(self, connection: Client, pool: str, shard: Shard, sample: int, execution: str) -> None:
        self._connection = connection
        self._subject = messaging.artifact_subject(pool)
        self._shard = shard
        self._sample = sample
        self.execution = execution

    async def put(self, name: str, part: int, content: bytes) -> None:
        shard = self._shard
        request = work_messages_pb2.PutArtifactRequest(
            run_id=shard.run_id,
            epoch=shard.epoch,
            proof=work_messages_pb2.DispatchProof(
                shard=shard.number,
                attempt=shard.attempt,
                dispatch_proof=shard.dispatch_proof,
                rollout=shard.rollout,
                samples=ranges_to_proto(shard.dispatched_samples),
            ),
            sample=self._sample,
            execution=self.execution,
            name=name,
            part=part,
            content=content,
        )
        problem = ""
        for tries in range(_PUT_TRIES):
            if tries:
                await asyncio.sleep(_PAUSE_SECONDS)
            try:
                reply = await self._connection.request(
                    self._subject, request.SerializeToString(), timeout=_PUT_SECONDS
                )
                response = work_messages_pb2.PutArtifactResponse.FromString(reply.data)
            except DecodeError:
                problem = "the scheduler's answer cannot be read."
            except TRANSIENT_NATS as error:
                problem = f"the scheduler does not answer ({type(error).__name__})."
            else:
                if not response.problem:
                    return
                problem = response.problem
                if response.is_refused:
                    raise ArtifactNotStored(problem, is_final=True)
        log.info("artifact not stored", run_id=shard.run_id, name=name, problem=problem)
        raise ArtifactNotStored(problem, is_final=False)


class NatsBundles:
    def __init__(self, connection: Client, pool: str) -> None:
        self._connection = connection
        self._subject = messaging.bundle_subject(pool)

    async def part(self, digest: str, first_byte: int) -> bytes:
        wanted = work_messages_pb2.ReadBundleRequest(digest=digest, first_byte=first_byte)
        problem = ""
        for tries in range(_TRIES):
            if tries:
                await asyncio.sleep(_PAUSE_SECONDS)
            try:
                reply = await self._connection.request(
                    self._subject, wanted.SerializeToString(), timeout=_ANSWER_SECONDS
                )
                response = work_messages_pb2.ReadBundleResponse.FromString(reply.data)
            except DecodeError:
                problem = "the scheduler's answer cannot be read. Update this worker."
            except TRANSIENT_NATS as error:
                problem = f"the scheduler does not answer ({type(error).__name__})."
            else:
                if not response.problem:
                    return response.content
                problem = response.problem
                if response.is_missing:
                    break
            log.info("files of a task not fetched yet", problem=problem)
        raise FilesNotFetched(problem=problem)
