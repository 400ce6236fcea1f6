"""A channel whose certificate is renewed: gRPC reads that of a client once, when its channel is made.

So another channel takes the calls that begin after a renewal. Those in progress end on the one they began on.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

import grpc

from services.common.tls.certificate_files import CertificateFiles, Certificates

MakeChannel = Callable[[Certificates], grpc.aio.Channel]


class _OneChannel:
    """A channel with one certificate, and how many of its calls are in progress."""

    def __init__(self, certificates: Certificates, channel: grpc.aio.Channel) -> None:
        self.certificates = certificates
        self.channel = channel
        self.calls = 0
        # Making a method anew for each call would cost as much as a small call.
        self._methods: dict[tuple[object, ...], Any] = {}

    def method(self, form: str, path: str, codec: Mapping[str, Any]) -> Any:
        """The gateway calls a path with messages, and forwards it in bytes: the codec is of the key too."""
        key = form, path, *codec.items()
        made = self._methods.get(key)
        if made is None:
            made = self._methods[key] = getattr(self.channel, form)(path, **codec)
        return made


class RenewedChannel:
    """Has what stubs, and their callers, use of a channel."""

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
