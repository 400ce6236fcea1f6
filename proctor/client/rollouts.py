"""Rollouts: tasks, orders and their list. Their runs are followed, cancelled and retried like any other."""

import uuid
from collections.abc import AsyncIterator, Sequence

from proctor.client.calls import GatewayCalls
from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.v1 import rollout_service_pb2
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc

_CHUNK_BYTES = 1024 * 1024


class RolloutClient:
    """`client.rollouts`."""

    def __init__(self, calls: GatewayCalls, user: str) -> None:
        self._calls = calls
        self._user = user
        self._stub = rollout_grpc.RolloutServiceStub(calls.channel)
        self._artifacts = artifact_grpc.ArtifactServiceStub(calls.channel)

    async def upload(
        self, tasks: rollout_service_pb2.TasksHeader, archive: bytes
    ) -> rollout_service_pb2.UploadTasksResponse:
        """Stores task folders, a .tar.gz, for orders that name them by `tasks_digest` within a day."""
        return await self._calls.upload(self._stub.UploadTasks, self._chunks(tasks, archive))

    async def _chunks(
        self, tasks: rollout_service_pb2.TasksHeader, archive: bytes
    ) -> AsyncIterator[rollout_service_pb2.UploadTasksRequest]:
        header = rollout_service_pb2.TasksHeader(
            name=tasks.name, user=tasks.user or self._user, overrides_json=tasks.overrides_json
        )
        yield rollout_service_pb2.UploadTasksRequest(header=header)
        for start in range(0, len(archive), _CHUNK_BYTES):
            yield rollout_service_pb2.UploadTasksRequest(content=archive[start : start + _CHUNK_BYTES])
        yield rollout_service_pb2.UploadTasksRequest(end=rollout_service_pb2.TasksEnd())

    async def order(
        self, request: rollout_service_pb2.SubmitRolloutsRequest
    ) -> rollout_service_pb2.SubmitRolloutsResponse:
        """One run per model. Without a request id a new one is set, so that a retried call orders once."""
        sent = rollout_service_pb2.SubmitRolloutsRequest()
        sent.CopyFrom(request)
        sent.user = sent.user or self._user
        sent.request_id = sent.request_id or str(uuid.uuid4())
        return await self._calls.call(self._stub.SubmitRollouts, sent)

    async def get(self, order_id: str) -> rollout_service_pb2.RolloutsOrder:
        """Raises NotFound."""
        request = rollout_service_pb2.GetRolloutsOrderRequest(order_id=order_id)
        return (await self._calls.call(self._stub.GetRolloutsOrder, request)).order

    async def artifacts(self, run_id: str, sample: int, rollout: int) -> Sequence[artifact_pb2.Artifact]:
        """Stored artifacts of a rollout, by execution and name."""
        request = artifact_pb2.ListArtifactsRequest(run_id=run_id, sample=sample, rollout=rollout)
        return (await self._calls.call(self._artifacts.ListArtifacts, request)).artifacts

    async def artifact_part(
        self, request: artifact_pb2.ReadArtifactRequest
    ) -> artifact_pb2.ReadArtifactResponse:
        """A part of at most 1 MiB. Raises NotFound."""
        return await self._calls.call(self._artifacts.ReadArtifact, request)

    async def list(
        self, request: rollout_service_pb2.ListRolloutsOrdersRequest | None = None
    ) -> rollout_service_pb2.ListRolloutsOrdersResponse:
        """A page of orders, newest first."""
        return await self._calls.call(
            self._stub.ListRolloutsOrders, request or rollout_service_pb2.ListRolloutsOrdersRequest()
        )
