"""mTLS between services: each side shows a certificate, and a server may name those that call it."""

from dataclasses import dataclass
from typing import Any

import grpc

from services.common.errors import ClientNotAllowed
from services.common.tls.certificate_files import CertificateFiles, Certificates

# gRPC's key for the DNS names among the subject alternative names of a verified certificate.
_NAMES = "peer_dns"


def channel_credentials(certificates: Certificates) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        certificates.authorities, private_key=certificates.key, certificate_chain=certificates.chain
    )


def server_credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    """Takes clients with a certificate. The files are looked at before each handshake."""
    used = files.current()

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        """Returns None while the files are unchanged."""
        nonlocal used
        if (found := files.current()) is used:
            return None
        used = found
        return _configuration(found)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(used),
        renewed,  # type: ignore[arg-type]  # its types lack None
        require_client_authentication=True,
    )


def _configuration(certificates: Certificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificates.key, certificates.chain)], root_certificates=certificates.authorities
    )


@dataclass(frozen=True, slots=True)
class AllowedClients:
    """Checks that the certificate of a client has one of the names."""

    names: frozenset[str]

    def check(self, context: Any) -> None:  # that of any handler
        """Raises ClientNotAllowed."""
        shown = [name.decode(errors="replace") for name in context.auth_context().get(_NAMES, ())]
        if self.names.isdisjoint(shown):
            raise ClientNotAllowed(client=", ".join(shown) or "A certificate without a DNS name")


@dataclass(frozen=True, slots=True)
class ServerTls:
    """`clients` is None where each certificate of the authorities may call."""

    files: CertificateFiles
    clients: AllowedClients | None = None
