"""Calls of a gateway: retried while it restarts, failures raised as exceptions of `errors`."""

import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import grpc

from proctor.client.errors import ClientError, Refused, Unreachable, client_error
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.values.messaging import MAX_GRPC_MESSAGE_BYTES, RELEASE_KEY
from proctor.wire.stubs import CallFailed, Metadata, StubChannel

# PEM certificates of the authorities that are trusted, as for other programs; unset: those that gRPC has.
CA_VARIABLE = "SSL_CERT_FILE"
PLAINTEXT_VARIABLE = "PROCTOR_ALLOW_PLAINTEXT_KEY"
_YES = frozenset({"1", "true", "yes"})
_PORTS = {"https": 443, "http": 80}
# A gateway that restarts is back within these pauses.
_PAUSES_SECONDS = (0.2, 0.5, 1.0)
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
# A key, or what gives the one of each call: a token of a sign-in ends before a long run does.
ApiKey: TypeAlias = str | Callable[[], str]


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


class GatewayChannel(StubChannel):
    """Sends the key or the user of its client, and repeats calls while a gateway restarts."""

    def __init__(self, address: str, timeout_seconds: float, *, user: str = "", api_key: ApiKey = "") -> None:
        self._address = address
        self._user = _user_metadata(user)
        has_key = bool(_key_metadata(_asked(api_key)))
        # A key that comes later would go over a connection that was opened for none.
        self._api_key = api_key if has_key else ""
        self._connection = open_channel(address, _CHANNEL_OPTIONS, has_key=has_key)
        super().__init__(self._connection, timeout_seconds, pauses=_PAUSES_SECONDS)

    async def close(self) -> None:
        await self._connection.close()

    def metadata(self) -> Metadata:
        return (*self._user, *_key_metadata(_asked(self._api_key)))

    def failure(self, error: CallFailed) -> ClientError:
        return client_error(error, self._address)

    def is_retried(self, failure: Exception) -> bool:
        """An outage behind the gateway has a reason, and the gateway has retried it."""
        return isinstance(failure, Unreachable) and not failure.reason

    async def release(self) -> str:
        """The release that the gateway sends with an answer; empty for none. The call is not repeated."""
        limits = queue_grpc.QueueServiceStub(self._connection).GetLimits
        call = limits(queue_pb2.GetLimitsRequest(), timeout=self._timeout, metadata=self.metadata())
        try:
            await call
        except grpc.aio.AioRpcError as error:
            raise self.failure(error) from error
        return str(dict(await call.trailing_metadata()).get(RELEASE_KEY, ""))


def _asked(api_key: ApiKey) -> str:
    return api_key() if callable(api_key) else api_key


def _key_metadata(api_key: str) -> Metadata:
    """Raises `Refused` for a text that no header can hold; the message does not repeat it."""
    if not api_key:
        return ()
    if not (api_key.isascii() and api_key.isprintable()):
        raise Refused("The API key holds characters that no key has; check PROCTOR_API_KEY.")
    return (("authorization", f"Bearer {api_key}"),)


def _user_metadata(user: str) -> Metadata:
    """gRPC metadata holds ASCII text, and bytes only under a name that ends with -bin."""
    if not user:
        return ()
    is_plain = user.isascii() and user.isprintable()
    return ((_USER_KEY, user),) if is_plain else ((f"{_USER_KEY}-bin", user.encode()),)
