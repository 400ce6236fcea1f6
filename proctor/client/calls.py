"""Streams of pieces that go up to a server: the client's to the gateway, the gateway's to a service.
Calls of a gateway: patient with one that restarts, failures as exceptions of `client_errors`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TypeVar

import grpc

from proctor.client import errors as client_errors

Q = TypeVar("Q")
A = TypeVar("A")


async def answer_to(call: grpc.aio.StreamUnaryCall[Q, A], pieces: AsyncIterable[Q]) -> A:
    """Sends pieces as they are taken. An early answer ends it; pieces that fail cancel the call."""
    sending = asyncio.create_task(_send(call, pieces), name="send pieces")

    def stop_sending(_: object) -> None:
        """A write that fails because the call is over puts its failure in the place of the answer."""
        sending.cancel()

    call.add_done_callback(stop_sending)
    try:
        await asyncio.wait((sending,))
        if not sending.cancelled():
            sending.result()
        return await call
    finally:
        call.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send(call: grpc.aio.StreamUnaryCall[Q, A], pieces: AsyncIterable[Q]) -> None:
    async for piece in pieces:
        try:
            await call.write(piece)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # The call is over, and its answer says why.
    await call.done_writing()


# A gateway that restarts is back within these pauses.
_RETRY_PAUSES_SECONDS = (0.2, 0.5, 1.0)
_CHANNEL_OPTIONS = (
    # A proxy of the environment is for the web, not for a gateway that was named.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)
_USER_KEY = "x-proctor-user"

log = logging.getLogger(__name__)


class GatewayCalls:
    """A channel to a gateway, and how it is asked."""

    def __init__(self, address: str, timeout_seconds: float, user: str = "") -> None:
        self.address = address
        self._metadata = _named(user)
        self.channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self._timeout_seconds = timeout_seconds

    async def close(self) -> None:
        await self.channel.close()

    async def call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Q, A],
        request: Q,
        timeout_seconds: float | None = None,
    ) -> A:
        """Tries again where nobody answered; where the gateway did, it has tried for us."""
        for pause_seconds in _RETRY_PAUSES_SECONDS:
            try:
                return await self.call_once(method, request, timeout_seconds)
            except client_errors.Unreachable as outage:
                if outage.reason:
                    raise
                log.info("call found no gateway: %s", outage)
            await asyncio.sleep(pause_seconds)
        return await self.call_once(method, request, timeout_seconds)

    async def call_once(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Q, A],
        request: Q,
        timeout_seconds: float | None = None,
    ) -> A:
        """For what would be refused the second time, where only the answer to the first was lost."""
        try:
            seconds = timeout_seconds or self._timeout_seconds
            return await method(request, timeout=seconds, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise client_errors.client_error(error, self.address) from error

    async def stream(self, method: grpc.aio.UnaryStreamMultiCallable[Q, A], request: Q) -> AsyncGenerator[A]:
        """As fast as it is taken; who stops taking ends it on the other side."""
        call = method(request, metadata=self._metadata)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise self._stream_failure(error) from error
        finally:
            call.cancel()

    async def give(self, method: grpc.aio.StreamUnaryMultiCallable[Q, A], pieces: AsyncIterable[Q]) -> A:
        """As fast as they are taken and as long as it lasts; pieces that fail end it on the other side."""
        try:
            return await answer_to(method(metadata=self._metadata), pieces)
        except grpc.aio.AioRpcError as error:
            raise self._stream_failure(error) from error

    def _stream_failure(self, error: grpc.aio.AioRpcError) -> client_errors.ClientError:
        """A stream that a stopping gateway cut is an outage as well."""
        failure = client_errors.client_error(error, self.address)
        if error.code() == grpc.StatusCode.CANCELLED:
            return client_errors.Unreachable(failure.message, failure.reason, failure.facts)
        return failure


def _named(user: str) -> tuple[tuple[str, str | bytes], ...]:
    """Metadata holds text of ASCII only, and bytes under a name of their own."""
    if not user:
        return ()
    is_plain = user.isascii() and user.isprintable()
    return ((_USER_KEY, user),) if is_plain else ((f"{_USER_KEY}-bin", user.encode()),)
