"""Calls of a gateway: retried while it restarts, failures raised as exceptions of `errors`."""

import asyncio
import ipaddress
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import grpc

from proctor.client.errors import ClientError, Refused, Unreachable, client_error
from proctor.values.messaging import MAX_GRPC_MESSAGE_BYTES, RELEASE_KEY

# PEM certificates of the authorities that are trusted, as for other programs; unset: those that gRPC has.
CA_VARIABLE = "SSL_CERT_FILE"
PLAINTEXT_VARIABLE = "PROCTOR_ALLOW_PLAINTEXT_KEY"
_YES = frozenset({"1", "true", "yes"})
_PORTS = {"https": 443, "http": 80}
# A gateway that restarts is back within these pauses.
_BACKOFF_SECONDS = (0.2, 0.5, 1.0)
_CHANNEL_OPTIONS = (
    # A proxy of the environment is for the web, not for a gateway that was named.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # gRPC waits a minute by default, and so would a call to a gateway that hangs or has vanished.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", MAX_GRPC_MESSAGE_BYTES),
)
_USER_KEY = "x-proctor-user"

Q = TypeVar("Q")
A = TypeVar("A")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """`target` is `host:port`, as gRPC takes it."""

    target: str
    is_secure: bool

    @classmethod
    def parse(cls, text: str) -> "GatewayAddress":
        """Reads `host:port`, `http://host:port` or, with TLS, `https://host[:port]`. Raises `Refused`."""
        if "://" not in text:
            return cls(text, is_secure=False)
        try:
            parts = urlsplit(text)
            default_port = _PORTS[parts.scheme]
            port = parts.port or default_port
        except (ValueError, KeyError) as error:
            raise _not_an_address(text) from error
        if not parts.hostname or parts.username or parts.path.strip("/") or parts.query:
            raise _not_an_address(text)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return cls(f"{host}:{port}", is_secure=parts.scheme == "https")

    @property
    def is_of_this_machine(self) -> bool:
        if self.target.startswith("unix:"):
            return True
        host = self.target.rpartition(":")[0].strip("[]") or "127.0.0.1"
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def open_channel(
    text: str,
    options: Sequence[tuple[str, int]],
    *,
    has_key: bool,
    environ: Mapping[str, str] = os.environ,
) -> grpc.aio.Channel:
    """Raises `Refused` for what is not an address, and for a key that others on the way could read."""
    address = GatewayAddress.parse(text)
    if address.is_secure:
        credentials = grpc.ssl_channel_credentials(root_certificates=_authorities(environ))
        return grpc.aio.secure_channel(address.target, credentials, options=options)
    is_allowed = environ.get(PLAINTEXT_VARIABLE, "").lower() in _YES
    if has_key and not (address.is_of_this_machine or is_allowed):
        raise Refused(
            f"The API key is not sent to {address.target}: without TLS others on the way can read it. "
            f"Name the gateway as https://…, or set {PLAINTEXT_VARIABLE}=true where the network is trusted."
        )
    return grpc.aio.insecure_channel(address.target, options=options)


def _authorities(environ: Mapping[str, str]) -> bytes | None:
    named = environ.get(CA_VARIABLE)
    if not named:
        return None
    try:
        return Path(named).read_bytes()
    except OSError as error:
        raise Refused(f"{CA_VARIABLE}: {named} cannot be read: {error.strerror}.") from error


def _not_an_address(text: str) -> Refused:
    # A user and password in it are not repeated.
    shown = text.rpartition("@")[2]
    return Refused(f"The gateway {shown} is not an address: write host:port, or https://host:port for TLS.")


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
        for pause_seconds in _BACKOFF_SECONDS:
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
        """Never retries: if only the answer was lost, a second request would be refused."""
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
        return str(found.get(RELEASE_KEY, ""))

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
