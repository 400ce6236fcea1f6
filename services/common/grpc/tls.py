"""mTLS between services: each side shows a certificate, and a server may name those that call it."""

from collections.abc import Mapping
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
    """Checks by the DNS names in the certificate of a client which services it may call.

    `services` has those of a name; none where it may call all.
    """

    services: Mapping[str, frozenset[str]]

    @classmethod
    def parse(cls, text: str) -> "AllowedClients | None":
        """Reads `name, name=package.Service`; None where the text names nobody."""
        services: dict[str, frozenset[str]] = {}
        for entry in filter(None, (each.strip() for each in text.split(","))):
            name, _, service = entry.partition("=")
            named = services.get(name.strip(), frozenset())
            services[name.strip()] = named | {service.strip()} if service else frozenset()
        return cls(services) if services else None

    def check(self, service: str, context: Any) -> None:  # that of any handler
        """Raises ClientNotAllowed."""
        shown = [name.decode(errors="replace") for name in context.auth_context().get(_NAMES, ())]
        allowed = [self.services[name] for name in shown if name in self.services]
        if not any(not named or service in named for named in allowed):
            raise ClientNotAllowed(
                client=", ".join(shown) or "A certificate without a DNS name", service=service
            )
