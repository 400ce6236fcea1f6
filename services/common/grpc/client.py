"""Channels to other services: over all replicas, with retries for restarts and with the limits of servers."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

import grpc

from proctor.values.messaging import MAX_GRPC_MESSAGE_BYTES
from services.common.grpc.signatures import SignedChannel, Signer
from services.common.grpc.tls import channel_credentials
from services.common.tls.certificate_files import CertificateFiles, Certificates
from services.common.traces import TRACEPARENT, current_trace, is_tracing

MakeChannel = Callable[[Certificates], grpc.aio.Channel]
_RETRY_UNAVAILABLE = {
    "name": [{}],
    "retryPolicy": {
        # gRPC takes no more than 5, and treats a larger number as 5.
        "maxAttempts": 5,
        "initialBackoff": "0.1s",
        # Four pauses of at most 0.1 to 0.8 s: the caller's own deadline still decides.
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    },
}


class _OneChannel:
    """A channel with one certificate, and how many of its calls are in progress."""

    def __init__(self, certificates: Certificates, channel: grpc.aio.Channel) -> None:
        self.certificates = certificates
        self.channel = channel
        self.calls = 0
        # Making a method anew for each call would cost as much as a small call.
        self._methods: dict[tuple[object, ...], Any] = {}

    def method(self, form: str, path: str, codec: Mapping[str, Any]) -> Any:
        """The key includes the codec: the gateway calls a path with messages, and forwards it in bytes."""
        key = form, path, *codec.items()
        made = self._methods.get(key)
        if made is None:
            made = self._methods[key] = getattr(self.channel, form)(path, **codec)
        return made


class RenewedChannel:
    """The part of a channel that stubs and their callers use.

    gRPC reads the certificate of a client once, when its channel is made. So another channel takes the calls
    that begin after a renewal. Those in progress end on the one they began on.
    """

    def __init__(self, files: CertificateFiles, make: MakeChannel) -> None:
        self._files = files
        self._make = make
        self._current = self._made()
        self._open = {self._current}
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        for each in tuple(self._open):
            await each.channel.close(grace)
        await asyncio.gather(*self._closing)

    def unary_unary(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._method("unary_unary", path, codec, named)

    def unary_stream(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._method("unary_stream", path, codec, named)

    def stream_unary(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._method("stream_unary", path, codec, named)

    def stream_stream(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._method("stream_stream", path, codec, named)

    def _method(self, form: str, path: str, codec: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        whole = {**dict(zip(("request_serializer", "response_deserializer"), codec, strict=False)), **named}

        def begin(*arguments: Any, **options: Any) -> Any:
            one = self._now()
            call = one.method(form, path, whole)(*arguments, **options)
            one.calls += 1
            call.add_done_callback(lambda _: self._ended(one))
            return call

        return begin

    def _made(self) -> _OneChannel:
        certificates = self._files.current()
        return _OneChannel(certificates, self._make(certificates))

    def _now(self) -> _OneChannel:
        if self._files.current() is not self._current.certificates:
            before, self._current = self._current, self._made()
            self._open.add(self._current)
            self._close_unused(before)
        return self._current

    def _ended(self, one: _OneChannel) -> None:
        one.calls -= 1
        if one is not self._current:
            self._close_unused(one)

    def _close_unused(self, one: _OneChannel) -> None:
        if one.calls or one not in self._open:
            return
        self._open.discard(one)
        closing = asyncio.get_running_loop().create_task(one.channel.close(), name="close a channel")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _traced(details: Any) -> Any:  # those of the library
    """The details of a call with the trace context, where there is one."""
    trace = current_trace()
    if not trace:
        return details
    return details._replace(metadata=grpc.aio.Metadata(*(details.metadata or ()), (TRACEPARENT, trace)))


class _TracedCalls(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await continuation(_traced(client_call_details), request)


class _TracedAnswers(grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await continuation(_traced(client_call_details), request)


class _TracedUploads(grpc.aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await continuation(_traced(client_call_details), request_iterator)


class _TracedStreams(grpc.aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await continuation(_traced(client_call_details), request_iterator)


def _tracing() -> list[grpc.aio.ClientInterceptor]:
    """One for each form of a call: the library uses an interceptor for one form only."""
    return [_TracedCalls(), _TracedAnswers(), _TracedUploads(), _TracedStreams()]


def open_channel(
    address: str,
    *,
    sent_once: Sequence[str] = (),
    tls: CertificateFiles | None = None,
    signer: Signer | None = None,
) -> grpc.aio.Channel:
    """A channel to `host:port` that retries UNAVAILABLE, which may mean that only the answer was lost.

    The addresses of a name are called in turn. When a connection ends, the name is resolved again.

    `sent_once` are calls, as "package.Service/Method", that must not be sent a second time. With `tls` both
    sides show certificates, and that of the server has the name in the address. With `signer` it signs its
    calls.
    """
    channel = _unsigned_channel(address, _options(sent_once), tls)
    return channel if signer is None else cast("grpc.aio.Channel", SignedChannel(channel, signer))


def _unsigned_channel(
    address: str, options: list[tuple[str, Any]], tls: CertificateFiles | None
) -> grpc.aio.Channel:
    if tls is None:
        return grpc.aio.insecure_channel(address, interceptors=_interceptors(), options=options)

    def make(certificates: Certificates) -> grpc.aio.Channel:
        credentials = channel_credentials(certificates)
        return grpc.aio.secure_channel(address, credentials, interceptors=_interceptors(), options=options)

    return cast("grpc.aio.Channel", RenewedChannel(tls, make))


def _interceptors() -> list[grpc.aio.ClientInterceptor] | None:
    return _tracing() if is_tracing() else None


def _options(sent_once: Sequence[str]) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", MAX_GRPC_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_GRPC_MESSAGE_BYTES),
        # gRPC waits for 30 s by default, and a rolling update replaces all replicas within that time.
        ("grpc.dns_min_time_between_resolutions_ms", 1000),
        # A local stack and a rolling update are back within a second; the default backoff grows to minutes.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A machine that vanishes or hangs ends no connection. Its calls fail after some 10 s, and go to
        # other replicas. By default gRPC waits a minute for the answer to a ping.
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.ping_timeout_ms", 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.service_config", json.dumps(_service_config(sent_once))),
    ]


def _service_config(sent_once: Sequence[str]) -> dict[str, object]:
    # The most specific name counts, and a method without a policy is not retried.
    names = [dict(zip(("service", "method"), call.split("/"), strict=True)) for call in sent_once]
    once = [{"name": names}] if names else []
    return {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [*once, _RETRY_UNAVAILABLE]}
