"""Makes the gateway: opens its channels, connects its topics, and runs its two servers.

It closes them in reverse order.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from proctor.wire.stubs import SENT_ONCE
from services.common.grpc.client import open_channel
from services.common.grpc.server import GrpcServer, ServerLimits, reflecting, serve_grpc
from services.common.grpc.signatures import Signer
from services.common.lifecycle import BackgroundLoops, every, working_seconds
from services.common.process import usable_caller_key
from services.common.tls.certificate_files import CertificateFiles
from services.gateway.auth.audit_trail import AuditTrail
from services.gateway.auth.follow_keys import FollowKeys
from services.gateway.backends.health import BackendHealth, is_ready
from services.gateway.grpc_proxy.message_reads import MAX_MESSAGE_BYTES, UNREAD_BYTES
from services.gateway.server.app import http_app
from services.gateway.server.http_server import HttpServer
from services.gateway.settings import GatewaySettings
from services.gateway.topics import Connections, Topics, make_topics

# How late the gateway's own health follows that of a backend that goes away, and of one that comes back. A
# check is two small calls.
_HEALTH_SECONDS = 2.0
_AWAY_SECONDS = 0.25
# Connections are few, and no key is needed to open one; a client connects again with its next call.
_GRPC_IDLE_SECONDS = 30.0


class RunningGateway:
    """The HTTP and the gRPC server. SERVING while the gateway takes requests and both backends respond."""

    def __init__(
        self,
        *,
        http: HttpServer,
        grpc_server: GrpcServer,
        health: BackendHealth,
        keys: FollowKeys,
        trail: AuditTrail,
        drain_seconds: float,
    ) -> None:
        self.http = http
        self.grpc = grpc_server
        self._health = health
        self._trail = trail
        self._drain_seconds = drain_seconds
        self._is_ready = False
        self._is_serving = False
        self._loops = BackgroundLoops(
            loops={
                "http server": http.wait_failed(),
                "follow keys": keys.run(),
                "send audit records": trail.run(),
                "backend health": every(self._health_pause, self.check_backends, name="backend health"),
            }
        )

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        self._is_ready = is_ready
        await self.check_backends()

    async def check_backends(self) -> None:
        ready = self._is_ready and is_ready(await self._health.check())
        # Read again: the gateway may have begun to stop during the check.
        self._is_serving = ready and self._is_ready
        await self.grpc.set_serving(self._is_serving)

    def _health_pause(self) -> float:
        return _HEALTH_SECONDS if self._is_serving else _AWAY_SECONDS

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        await asyncio.gather(self.http.stop(), self.grpc.stop(self._drain_seconds))

    async def drain(self) -> None:
        """Both servers stopped after their last call; the refusals of the last second are left."""
        await self._trail.flush()

    async def close(self) -> None:
        await self._loops.cancel()


@asynccontextmanager
async def running_gateway(settings: GatewaySettings) -> AsyncIterator[RunningGateway]:
    tls = CertificateFiles.of(settings)
    signer = Signer(key=usable_caller_key(settings.caller_key))
    async with (
        open_channel(settings.scheduler_address, sent_once=SENT_ONCE, tls=tls, signer=signer) as scheduler,
        open_channel(settings.results_address, tls=tls, signer=signer) as results,
        AsyncExitStack() as opened,
    ):
        topics = make_topics(settings, Connections(scheduler=scheduler, results=results))
        keys = topics.http.admission.keys
        # Before the first call comes; where the scheduler is away, keys are read later.
        await keys.refresh()
        drain_seconds = working_seconds(settings.drain_seconds)
        grpc_server = await _open_grpc(settings, topics)
        opened.push_async_callback(grpc_server.stop, drain_seconds)
        for stop in topics.stops():
            opened.push_async_callback(stop)
        http = await HttpServer.start(
            settings.http_address,
            http_app(topics.http),
            drain_seconds=drain_seconds,
            max_connections=settings.max_connections,
        )
        opened.push_async_callback(http.stop)
        gateway = RunningGateway(
            http=http,
            grpc_server=grpc_server,
            health=topics.health,
            keys=keys,
            trail=topics.http.admission.trail,
            drain_seconds=drain_seconds,
        )
        opened.push_async_callback(gateway.close)
        yield gateway


async def _open_grpc(settings: GatewaySettings, topics: Topics) -> GrpcServer:
    names = [each.service.full_name for each in topics.forwarded]
    described = [reflecting(names)] if settings.grpc_reflection else []
    return await serve_grpc(
        settings.grpc_address,
        [*(each.register for each in topics.forwarded), *described],
        names,
        ServerLimits(
            # With room for health checks when all slots are taken.
            calls=2 * settings.max_calls,
            message_bytes=MAX_MESSAGE_BYTES,
            connections=settings.max_grpc_connections,
            unread_bytes=UNREAD_BYTES,
            idle_seconds=_GRPC_IDLE_SECONDS,
        ),
    )
