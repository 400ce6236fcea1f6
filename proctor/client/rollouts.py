"""Rollouts: orders and their list. Their runs are followed, cancelled and retried like any other."""

import uuid

from proctor.client.calls import GatewayCalls
from proctor.v1 import rollout_service_pb2 as rollout_pb2
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc


class RolloutClient:
    """`client.rollouts`."""

    def __init__(self, calls: GatewayCalls, user: str) -> None:
        self._calls = calls
        self._user = user
        self._stub = rollout_grpc.RolloutServiceStub(calls.channel)

    async def order(self, request: rollout_pb2.OrderRolloutsRequest) -> rollout_pb2.OrderRolloutsResponse:
        """One run per model. Without a request id a new one is set, so that a retried call orders once."""
        sent = rollout_pb2.OrderRolloutsRequest()
        sent.CopyFrom(request)
        sent.user = sent.user or self._user
        sent.request_id = sent.request_id or str(uuid.uuid4())
        return await self._calls.call(self._stub.OrderRollouts, sent)

    async def get(self, order_id: str) -> rollout_pb2.RolloutsOrder:
        """Raises NotFound."""
        request = rollout_pb2.GetRolloutsRequest(order_id=order_id)
        return (await self._calls.call(self._stub.GetRollouts, request)).order

    async def list(
        self, request: rollout_pb2.ListRolloutsRequest | None = None
    ) -> rollout_pb2.ListRolloutsResponse:
        """A page of orders, newest first."""
        return await self._calls.call(self._stub.ListRollouts, request or rollout_pb2.ListRolloutsRequest())
