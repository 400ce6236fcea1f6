"""Orders of rollouts, and artifacts, in the place of the scheduler's: those that were put there."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contract

from dataclasses import dataclass, field
from typing import Any

import grpc

from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.v1 import rollout_service_pb2
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc
from services.common.errors import ErrorKind
from tests.fakes.refusals import refused


@dataclass
class FakeRollouts(rollout_grpc.RolloutServiceServicer):
    """`orders` are the newest first; a suite with a version is looked for as such."""

    orders: list[rollout_service_pb2.RolloutsOrder] = field(default_factory=list)
    listed: list[rollout_service_pb2.ListRolloutsOrdersRequest] = field(default_factory=list)

    def register(self, server: grpc.aio.Server) -> None:
        rollout_grpc.add_RolloutServiceServicer_to_server(self, server)

    async def GetRolloutsOrder(
        self, request: rollout_service_pb2.GetRolloutsOrderRequest, context: Any
    ) -> rollout_service_pb2.GetRolloutsOrderResponse:
        for order in self.orders:
            own = [run.run_id for run in order.runs]
            if request.run_id in own if request.run_id else order.order_id == request.order_id:
                return rollout_service_pb2.GetRolloutsOrderResponse(order=order)
        sentence = f"There is no order of rollouts {request.order_id}."
        raise refused(ErrorKind.NOT_FOUND, "ROLLOUTS_ORDER_NOT_FOUND", sentence, order_id=request.order_id)

    async def ListRolloutsOrders(
        self, request: rollout_service_pb2.ListRolloutsOrdersRequest, context: Any
    ) -> rollout_service_pb2.ListRolloutsOrdersResponse:
        self.listed.append(request)
        found = [
            order
            for order in self.orders
            if request.suite in ("", order.suite, f"{order.suite}@{order.suite_version}")
        ]
        first = int(request.page_token or 0)
        last = first + (request.page_size or 20)
        more = str(last) if last < len(found) else ""
        return rollout_service_pb2.ListRolloutsOrdersResponse(
            orders=found[first:last], next_page_token=more, total=len(found)
        )


@dataclass
class FakeArtifacts(artifact_grpc.ArtifactServiceServicer):
    """Every rollout has an artifact of each name, with these parts."""

    parts: tuple[bytes, ...] = (b"first ", b"second")
    read: list[artifact_pb2.ReadArtifactRequest] = field(default_factory=list)

    def register(self, server: grpc.aio.Server) -> None:
        artifact_grpc.add_ArtifactServiceServicer_to_server(self, server)

    async def ReadArtifact(
        self, request: artifact_pb2.ReadArtifactRequest, context: Any
    ) -> artifact_pb2.ReadArtifactResponse:
        self.read.append(request)
        artifact = artifact_pb2.Artifact(
            execution=request.execution,
            name=request.name,
            size_bytes=sum(map(len, self.parts)),
            parts=len(self.parts),
        )
        return artifact_pb2.ReadArtifactResponse(content=self.parts[request.part], artifact=artifact)
