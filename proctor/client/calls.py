"""Calls of a gateway: retried while it restarts, failures raised as exceptions of `errors`."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TypeVar

import grpc

from proctor.client.connection import open_channel
from proctor.client.errors import ClientError, Refused, Unreachable, client_error

# A gateway that restarts is back within these pauses.
_RETRY_PAUSES_SECONDS = (0.2, 0.5, 1.0)
_CHANNEL_OPTIONS = (
    # A proxy of the environment is for the web, not for a gateway that was named.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # By default a minute: a gateway that hangs or vanished would keep a call for as long.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)
_USER_KEY = "x-proctor-user"
_RELEASE_KEY = "x-proctor-release"

Q = TypeVar("Q")
A = TypeVar("A")

log = logging.getLogger(__name__)


class GatewayCalls:
    """A channel to a gateway, and the ways to call it."""

    def __init__(self, address: str, timeout_seconds: float, *, user: str = "", api_key: str = "") -> None:
        self.address = address
        self._metadata = (*_user_metadata(user), *_key_metadata(api_key))
        self.channel = open_channel(address, _CHANNEL_OPTIONS, has_key=bool(api_key))
        self._timeout_seconds = timeout_seconds

    async def close(self) -> None:
        await self.channel.close()

    async def call(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q, timeout_seconds: float | None = None
    ) -> A:
        """Retries while no gateway answers. An outage behind the gateway has been retried by the gateway."""
        for pause_seconds in _RETRY_PAUSES_SECONDS:
            try:
                return await self.call_once(method, request, timeout_seconds)
            except Unreachable as outage:
                if outage.reason:
                    raise
                log.info("call found no gateway: %s", outage)
            await asyncio.sleep(pause_seconds)
        return await self.call_once(method, request, timeout_seconds)

    async def call_once(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q, timeout_seconds: float | None = None
    ) -> A:
        """Sends requests that are rejected when they come twice, although only the first answer was lost."""
        try:
            seconds = timeout_seconds or self._timeout_seconds
            return await method(request, timeout=seconds, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise client_error(error, self.address) from error

    async def release(self, method: grpc.aio.UnaryUnaryMultiCallable[Q, A], request: Q) -> str:
        """The release that the gateway sends with an answer; empty for none."""
        call = method(request, timeout=self._timeout_seconds, metadata=self._metadata)
        try:
            await call
        except grpc.aio.AioRpcError as error:
            raise client_error(error, self.address) from error
        found = dict(await call.trailing_metadata())
        return str(found.get(_RELEASE_KEY, ""))

    async def stream(self, method: grpc.aio.UnaryStreamMultiCallable[Q, A], request: Q) -> AsyncGenerator[A]:
        """Closing the generator cancels the call."""
        call = method(request, metadata=self._metadata)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise self._stream_error(error) from error
        finally:
            call.cancel()

    async def upload(self, method: grpc.aio.StreamUnaryMultiCallable[Q, A], chunks: AsyncIterable[Q]) -> A:
        """Uploads without a timeout. An error of `chunks` cancels the call."""
        try:
            return await send_chunks(method(metadata=self._metadata), chunks)
        except grpc.aio.AioRpcError as error:
            raise self._stream_error(error) from error

    def _stream_error(self, error: grpc.aio.AioRpcError) -> ClientError:
        """A gateway that stops cancels its streams: an outage as well."""
        failure = client_error(error, self.address)
        if error.code() == grpc.StatusCode.CANCELLED:
            return Unreachable(failure.message, failure.reason, failure.facts)
        return failure


async def send_chunks(call: grpc.aio.StreamUnaryCall[Q, A], chunks: AsyncIterable[Q]) -> A:
    """An early answer stops the sending; an error of `chunks` cancels the call."""
    sending = asyncio.create_task(_send(call, chunks), name="send chunks")

    def stop_sending(_: object) -> None:
        """Otherwise a write to the ended call would fail and hide the answer."""
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


async def _send(call: grpc.aio.StreamUnaryCall[Q, A], chunks: AsyncIterable[Q]) -> None:
    async for chunk in chunks:
        try:
            await call.write(chunk)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # The call has ended, and its answer says why.
    await call.done_writing()


def _key_metadata(api_key: str) -> tuple[tuple[str, str | bytes], ...]:
    """Raises `Refused` for a text that no header can hold; the message does not repeat it."""
    if not api_key:
        return ()
    if not (api_key.isascii() and api_key.isprintable()):
        raise Refused("The API key holds characters that no key has; check PROCTOR_API_KEY.")
    return (("authorization", f"Bearer {api_key}"),)


def _user_metadata(user: str) -> tuple[tuple[str, str | bytes], ...]:
    """gRPC metadata holds ASCII text, and bytes only under a name that ends with -bin."""
    if not user:
        return ()
    is_plain = user.isascii() and user.isprintable()
    return ((_USER_KEY, user),) if is_plain else ((f"{_USER_KEY}-bin", user.encode()),)
