"""What the HTTP door asks of the queue."""

from typing import TYPE_CHECKING

import grpc

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from services.gateway.grpc_calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.queue_service_pb2_grpc import QueueServiceAsyncStub


class QueueBackend:
    """The queue behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._stub: QueueServiceAsyncStub = queue_grpc.QueueServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def get_queue(self, size: int) -> queue_pb2.GetQueueResponse:
        return await self._calls.ask(self._stub.GetQueue, queue_pb2.GetQueueRequest(page_size=size))

    async def get_limits(self) -> queue_pb2.QueueLimits:
        return (await self._calls.ask(self._stub.GetLimits, queue_pb2.GetLimitsRequest())).limits

    async def set_limits(self, request: queue_pb2.SetLimitsRequest) -> queue_pb2.QueueLimits:
        return (await self._calls.ask(self._stub.SetLimits, request)).limits
