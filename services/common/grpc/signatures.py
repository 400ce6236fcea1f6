"""Signatures of calls between services: whom a call is made for, by which method, and until when.

Whoever reaches the port of a service could name any caller otherwise, an operator too.
"""

import hmac
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import grpc

from services.common.errors import CallNotSigned, CallSignedWrongly
from services.common.grpc.caller import PREFIX, serve_caller, signed_caller
from services.common.grpc.permissions import Permission, check_role, method_permission
from services.common.grpc.tls import AllowedClients

SIGNATURE = f"{PREFIX}signature-bin"
# So far may the clocks of two machines differ, and so long does a call that waits for a restart try again.
LIFETIME_SECONDS = 300
_TIME_BYTES = 8
# Reads are open to every role.
_BY_ROLE = frozenset({Permission.OPERATOR, Permission.OWNER, Permission.CHANGE})

Metadata = Iterable[tuple[str, str | bytes]]
# Seconds since 1970.
Now = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs calls with a key that both sides have."""

    key: bytes = field(repr=False)
    now: Now = time.time

    def signed(self, method: str, metadata: Metadata) -> tuple[tuple[str, str | bytes], ...]:
        """The metadata of a call with the signature of its caller; `method` is "/package.Service/Method"."""
        given = tuple(metadata)
        ends = int(self.now() + LIFETIME_SECONDS).to_bytes(_TIME_BYTES, "big")
        return (*given, (SIGNATURE, ends + _code(self.key, method, ends, dict(given))))

    def has_signed(self, method: str, found: Mapping[str, str | bytes], signature: bytes) -> bool:
        """Whether the signature is of this key, and neither over nor of a clock far ahead."""
        ends, code = signature[:_TIME_BYTES], signature[_TIME_BYTES:]
        left = int.from_bytes(ends, "big") - self.now()
        is_valid = 0 < left <= 2 * LIFETIME_SECONDS
        return is_valid and hmac.compare_digest(code, _code(self.key, method, ends, found))


def _code(key: bytes, method: str, ends: bytes, found: Mapping[str, str | bytes]) -> bytes:
    """The caller comes last: only its name may contain any byte."""
    return hmac.digest(
        key, b"\n".join((method.encode(), ends.hex().encode(), signed_caller(found))), "sha256"
    )


class SignedChannel:
    """The part of a channel that stubs and their callers use; each call is signed."""

    def __init__(self, channel: grpc.aio.Channel, signer: Signer) -> None:
        self._channel = channel
        self._signer = signer

    async def __aenter__(self) -> grpc.aio.Channel:
        return cast("grpc.aio.Channel", self)

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        await self._channel.close(grace)

    def unary_unary(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._signed(path, self._channel.unary_unary(path, *codec, **named))

    def unary_stream(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._signed(path, self._channel.unary_stream(path, *codec, **named))

    def stream_unary(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._signed(path, self._channel.stream_unary(path, *codec, **named))

    def stream_stream(self, path: str, *codec: Any, **named: Any) -> Any:
        return self._signed(path, self._channel.stream_stream(path, *codec, **named))

    def _signed(self, path: str, method: Any) -> Any:
        def begin(*arguments: Any, metadata: Metadata | None = None, **options: Any) -> Any:
            return method(*arguments, metadata=self._signer.signed(path, metadata or ()), **options)

        return begin


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCalls:
    """Checks who calls a service behind the gateway, before anything of a request is read.

    `public` have signed calls of methods that users may call, `internal` those of all others. The services in
    `unsigned` are called by programs that are not ours, which certificates tell apart.
    """

    public: tuple[Signer, ...]
    internal: Signer
    unsigned: frozenset[str] = frozenset()
    clients: AllowedClients | None = None

    def check(self, method: str, context: Any) -> None:  # that of any handler
        """Raises `ClientNotAllowed`, `CallNotSigned`, `CallSignedWrongly`, or what `check_role` does."""
        service, _, name = method.removeprefix("/").rpartition("/")
        if self.clients is not None:
            self.clients.check(service, context)
        if service in self.unsigned:
            return
        found = dict(context.invocation_metadata() or ())
        signature = found.get(SIGNATURE)
        if not isinstance(signature, bytes):
            raise CallNotSigned(method=name)
        permission = method_permission(name)
        signers = (self.internal,) if permission is Permission.INTERNAL else self.public
        if not any(signer.has_signed(method, found, signature) for signer in signers):
            raise CallSignedWrongly(method=name, seconds=LIFETIME_SECONDS)
        caller = serve_caller(found)
        if permission in _BY_ROLE:
            check_role(permission, caller)
