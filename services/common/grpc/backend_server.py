"""The gRPC server of a service behind the gateway: signed calls, mTLS where it is set, health for probes."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol

from services.common.errors import InvalidSetting
from services.common.grpc.server import GrpcServer, Registration, serve_grpc
from services.common.grpc.signatures import SignedCalls
from services.common.grpc.tls import AllowedClients
from services.common.tls.certificate_files import CertificateFiles, TlsSettings


class BackendSettings(TlsSettings, Protocol):
    @property
    def tls_client_names(self) -> str: ...

    @property
    def health_address(self) -> str: ...


class BackendServer:
    """`health` answers health checks alone, without TLS: probes of Kubernetes show no certificate."""

    def __init__(self, server: GrpcServer, health: GrpcServer | None) -> None:
        self._server = server
        self._health = health
        self.port = server.port
        self.health_port = health.port if health else None

    async def set_serving(self, is_serving: bool) -> None:  # noqa: FBT001  # a state, not an option
        await self._server.set_serving(is_serving)
        if self._health is not None:
            await self._health.set_serving(is_serving)

    async def report(self, name: str, is_serving: bool | None) -> None:  # noqa: FBT001  # a state, not an option
        """Sets the answer of health checks that ask for `name`; None where it is not known."""
        await self._server.report(name, is_serving)

    async def stop(self, grace_seconds: float) -> None:
        """Probes are answered to the end."""
        await self._server.stop(grace_seconds)
        if self._health is not None:
            await self._health.stop(0)


async def serve_backend(
    settings: BackendSettings, address: str, apis: Mapping[str, Registration], calls: SignedCalls
) -> BackendServer:
    """Not yet SERVING. `apis` are by the names of their services. Raises InvalidSetting, CannotListen."""
    tls = CertificateFiles.of(settings)
    admit = replace(calls, clients=_clients(settings, tls)).check
    async with AsyncExitStack() as half_made:
        health = await serve_grpc(settings.health_address, (), ()) if settings.health_address else None
        if health is not None:
            half_made.push_async_callback(health.stop, 0)
        # One registration may stand for several services.
        registrations = [*dict.fromkeys(apis.values())]
        server = await serve_grpc(address, registrations, [*apis], tls=tls, admit=admit)
        half_made.pop_all()
        return BackendServer(server, health)


def _clients(settings: BackendSettings, tls: CertificateFiles | None) -> AllowedClients | None:
    clients = AllowedClients.parse(settings.tls_client_names)
    if clients is not None and tls is None:
        problem = "clients are known by their certificates; set PROCTOR_TLS_CERTIFICATE_FILE as well"
        raise InvalidSetting(setting="PROCTOR_TLS_CLIENT_NAMES", problem=problem)
    return clients
