"""What the HTTP door asks of batches."""

from typing import TYPE_CHECKING

import grpc

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from services.gateway.grpc_calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.batch_service_pb2_grpc import BatchServiceAsyncStub


class BatchBackend:
    """Batches behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._stub: BatchServiceAsyncStub = batch_grpc.BatchServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=timeout_seconds)

    async def create(self, request: batch_pb2.CreateBatchRequest) -> batch_pb2.Batch:
        return (await self._calls.ask(self._stub.CreateBatch, request)).batch

    async def get(self, batch_id: str) -> batch_pb2.Batch:
        request = batch_pb2.GetBatchRequest(batch_id=batch_id)
        return (await self._calls.ask(self._stub.GetBatch, request)).batch

    async def list_page(self, size: int, after: str) -> batch_pb2.ListBatchesResponse:
        request = batch_pb2.ListBatchesRequest(page_size=size, after_batch_id=after)
        return await self._calls.ask(self._stub.ListBatches, request)

    async def cancel(self, batch_id: str) -> batch_pb2.Batch:
        request = batch_pb2.CancelBatchRequest(batch_id=batch_id)
        return (await self._calls.ask(self._stub.CancelBatch, request)).batch
