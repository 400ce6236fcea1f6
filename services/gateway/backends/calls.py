"""How the gateway asks what is behind it: within a time, with failures as domain errors."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TypeVar

import grpc

from proctor.client.calls import send_chunks
from services.common.errors import DependencyUnavailable, DomainError
from services.common.grpc_errors import remote_error

SCHEDULER = "scheduler"
RESULTS = "results"

# Where the answer to the first was lost, a second would be refused: it is cancelled, waits, is gone already;
# or counted twice.
SENT_ONCE = (
    "proctor.v1.SchedulerService/CancelRun",
    "proctor.v1.SchedulerService/RetryRun",
    "proctor.v1.SchedulerService/ResumeRun",
    "proctor.v1.SchedulerService/DeleteRun",
    "proctor.v1.RequestCountService/CountRequest",
    "proctor.v1.SuiteService/DeleteSuite",
    "proctor.v1.DatasetService/DeleteDataset",
    "proctor.v1.FileService/DeleteFile",
    "proctor.v1.BatchService/CancelBatch",
    # gRPC ends the process when it repeats a stream while a piece of it is written.
    "proctor.v1.DatasetService/UploadDataset",
    "proctor.v1.FileService/UploadFile",
)

Q = TypeVar("Q")
A = TypeVar("A")


def backend_error(error: grpc.aio.AioRpcError, backend: str) -> DomainError:
    """What the backend said, or that it does not answer."""
    told = remote_error(error)
    is_away = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return DependencyUnavailable(dependency=backend) if is_away and not told.facts else told


class BackendCalls:
    """Calls of one backend."""

    def __init__(self, backend: str, *, timeout_seconds: float) -> None:
        self._backend = backend
        self._timeout = timeout_seconds

    async def ask(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Q, A],
        request: Q,
        timeout_seconds: float | None = None,
    ) -> A:
        try:
            return await method(request, timeout=timeout_seconds or self._timeout)
        except grpc.aio.AioRpcError as error:
            raise backend_error(error, self._backend) from error

    async def give(self, method: grpc.aio.StreamUnaryMultiCallable[Q, A], pieces: AsyncIterable[Q]) -> A:
        """Without a limit of time: it lasts as long as its pieces come."""
        try:
            return await send_chunks(method(), pieces)
        except grpc.aio.AioRpcError as error:
            raise backend_error(error, self._backend) from error

    async def pieces(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Q, A],
        request: Q,
        timeout_seconds: float | None = None,
    ) -> AsyncGenerator[A]:
        """One after the other as they are taken; who stops taking them cancels the call."""
        call = method(request)
        patience = timeout_seconds or self._timeout
        try:
            while (piece := await self._next_piece(call, patience)) is not None:
                yield piece
        except grpc.aio.AioRpcError as error:
            raise backend_error(error, self._backend) from error
        finally:
            call.cancel()

    async def _next_piece(self, call: grpc.aio.UnaryStreamCall[Q, A], timeout_seconds: float) -> A | None:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await anext(aiter(call), None)
        except TimeoutError as error:
            raise DependencyUnavailable(dependency=self._backend) from error
