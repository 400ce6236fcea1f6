"""The connection to a gateway: its address, TLS, and what is not sent without it."""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import grpc

from proctor.client.errors import Refused

# PEM certificates of the authorities that are trusted, as for other programs; unset: those that gRPC has.
CA_VARIABLE = "SSL_CERT_FILE"
PLAINTEXT_VARIABLE = "PROCTOR_ALLOW_PLAINTEXT_KEY"
_YES = frozenset({"1", "true", "yes"})
_PORTS = {"https": 443, "http": 80}


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
    return Refused(f"The gateway {shown} is no address: write host:port, or https://host:port for TLS.")
