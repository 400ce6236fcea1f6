"""The queue of runs and its limits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.client.calls import GatewayCalls
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc

if TYPE_CHECKING:
    from proctor.v1.queue_service_pb2_grpc import QueueServiceAsyncStub


class QueueClient:
    """`client.queue`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub: QueueServiceAsyncStub = queue_grpc.QueueServiceStub(calls.channel)

    async def show(self, size: int = 100) -> queue_pb2.GetQueueResponse:
        """`size` limits the waiting runs, and the paused runs."""
        return await self._calls.call(self._stub.GetQueue, queue_pb2.GetQueueRequest(page_size=size))

    async def limits(self) -> queue_pb2.QueueLimits:
        return (await self._calls.call(self._stub.GetLimits, queue_pb2.GetLimitsRequest())).limits

    async def change_limits(
        self, limits: queue_pb2.QueueLimits, reset: Sequence[str] = ()
    ) -> queue_pb2.QueueLimits:
        """Sets the given limits, reverts those named in `reset` to the settings, and returns all limits."""
        request = queue_pb2.SetLimitsRequest(limits=limits, reset=reset)
        return (await self._calls.call(self._stub.SetLimits, request)).limits
