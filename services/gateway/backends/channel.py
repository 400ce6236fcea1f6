"""Channels to the services behind the gateway: calls have a time limit and fail with domain errors."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from proctor.client.calls import send_chunks
from services.common.errors import DependencyUnavailable, DomainError
from services.common.grpc_errors import remote_error

SCHEDULER = "scheduler"
RESULTS = "results"

# Calls that are not idempotent: after a lost response, a second attempt would fail or count twice.
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
    # gRPC aborts the process when it retries a client stream during a write.
    "proctor.v1.DatasetService/UploadDataset",
    "proctor.v1.FileService/UploadFile",
)


def backend_error(error: grpc.aio.AioRpcError, backend: str) -> DomainError:
    """The error that the backend reported, or `DependencyUnavailable` when it did not respond."""
    reported = remote_error(error)
    is_away = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return DependencyUnavailable(dependency=backend) if is_away and not reported.facts else reported


class BackendChannel:
    """A gRPC channel as generated stubs need it; see the module for what it adds.

    `timeout` of a call replaces the limit of the channel. A streamed response has the limit for each chunk;
    an upload has none, because it lasts as long as its caller sends.
    """

    def __init__(self, channel: grpc.aio.Channel, backend: str, *, timeout_seconds: float) -> None:
        self._channel = channel
        self._backend = backend
        self._timeout = timeout_seconds

    # The stubs declare the types of requests and responses, hence Any.
    def unary_unary(self, path: str, **codec: Any) -> Any:
        method: grpc.aio.UnaryUnaryMultiCallable[Any, Any] = self._channel.unary_unary(path, **codec)

        async def call(request: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109  # gRPC's own
            with self._domain_errors():
                return await method(request, timeout=timeout or self._timeout)

        return call

    def stream_unary(self, path: str, **codec: Any) -> Any:
        method: grpc.aio.StreamUnaryMultiCallable[Any, Any] = self._channel.stream_unary(path, **codec)

        async def upload(chunks: AsyncIterable[Any]) -> Any:
            with self._domain_errors():
                return await send_chunks(method(), chunks)

        return upload

    def unary_stream(self, path: str, **codec: Any) -> Any:
        """The response is an async generator; closing it cancels the call."""
        method: grpc.aio.UnaryStreamMultiCallable[Any, Any] = self._channel.unary_stream(path, **codec)

        async def download(request: Any, timeout: float | None = None) -> AsyncGenerator[Any]:  # noqa: ASYNC109
            call = method(request)
            try:
                with self._domain_errors():
                    while (chunk := await self._next(call, timeout or self._timeout)) is not None:
                        yield chunk
            finally:
                call.cancel()

        return download

    async def _next(self, call: grpc.aio.UnaryStreamCall[Any, Any], timeout_seconds: float) -> Any:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await anext(aiter(call), None)
        except TimeoutError as error:
            raise DependencyUnavailable(dependency=self._backend) from error

    @contextmanager
    def _domain_errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise backend_error(error, self._backend) from error
