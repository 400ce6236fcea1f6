"""The only module that knows all concrete parts of the gateway: makes them, joins them, closes them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from services.common.clock import SystemClock
from services.common.grpc_client import open_channel
from services.common.grpc_server import GrpcServer, serve_grpc
from services.common.lifecycle import every
from services.gateway.auth.identity import Identity
from services.gateway.auth.rate_limit import RequestCounts
from services.gateway.backends.calls import RESULTS, SCHEDULER, SENT_ONCE
from services.gateway.backends.health import BackendHealth, is_ready
from services.gateway.backends.results import ResultsBackend
from services.gateway.backends.scheduler import (
    BatchBackend,
    DatasetBackend,
    FileBackend,
    QueueBackend,
    SchedulerBackend,
)
from services.gateway.grpc_proxy.proxy import Doorkeeping, Forwarded, public_services
from services.gateway.server.app import HttpParts, http_app
from services.gateway.server.http_server import HttpServer
from services.gateway.settings import GatewaySettings

_HEALTH_SECONDS = 0.5


class RunningGateway:
    """Both doors, open. SERVING while the gateway wants work and both backends answer."""

    def __init__(
        self, http: HttpServer, grpc_server: GrpcServer, health: BackendHealth, drain_seconds: int
    ) -> None:
        self.http = http
        self.grpc = grpc_server
        self._health = health
        self._drain_seconds = drain_seconds
        self._is_ready = False

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        self._is_ready = is_ready
        await self.check_backends()

    async def check_backends(self) -> None:
        ready = self._is_ready and is_ready(await self._health.check())
        # Asked again: the gateway may have begun to stop while the backends were asked.
        await self.grpc.set_serving(ready and self._is_ready)

    async def wait_failed(self) -> None:
        await self.http.wait_failed()

    async def stop_taking_work(self) -> None:
        await asyncio.gather(self.http.stop(), self.grpc.stop(self._drain_seconds))

    async def drain(self) -> None:
        """Nothing is left: both doors closed after their last call."""


@asynccontextmanager
async def running_gateway(settings: GatewaySettings) -> AsyncIterator[RunningGateway]:
    async with (
        open_channel(settings.scheduler_address, sent_once=SENT_ONCE) as scheduler,
        open_channel(settings.results_address) as results,
        AsyncExitStack() as opened,
    ):
        health = BackendHealth({SCHEDULER: scheduler, RESULTS: results})
        drain_seconds = settings.drain_seconds
        doorkeeping = Doorkeeping(Identity(settings.api_keys), RequestCounts(scheduler))
        grpc_server = await _open_grpc(settings, public_services(scheduler, results, doorkeeping))
        opened.push_async_callback(grpc_server.stop, drain_seconds)
        parts = HttpParts(
            scheduler=SchedulerBackend(scheduler, timeout_seconds=settings.call_timeout_seconds),
            results=ResultsBackend(results, timeout_seconds=settings.call_timeout_seconds),
            health=health,
            queue=QueueBackend(scheduler, timeout_seconds=settings.call_timeout_seconds),
            datasets=DatasetBackend(scheduler, timeout_seconds=settings.call_timeout_seconds),
            files=FileBackend(scheduler, timeout_seconds=settings.call_timeout_seconds),
            batches=BatchBackend(scheduler, timeout_seconds=settings.call_timeout_seconds),
            request_counts=doorkeeping.counts,
            identity=doorkeeping.identity,
            clock=SystemClock(),
            max_body_bytes=settings.max_body_bytes,
            max_suite_body_bytes=settings.max_suite_body_bytes,
            max_upload_bytes=settings.max_upload_bytes,
            max_file_bytes=settings.max_file_bytes,
        )
        address = settings.http_address
        http = await HttpServer.start(address, http_app(parts), drain_seconds=drain_seconds)
        opened.push_async_callback(http.stop)
        gateway = RunningGateway(http, grpc_server, health, drain_seconds)
        watch = asyncio.create_task(every(_HEALTH_SECONDS, gateway.check_backends, name="backend health"))
        opened.callback(watch.cancel)
        yield gateway


async def _open_grpc(settings: GatewaySettings, forwarded: Sequence[Forwarded]) -> GrpcServer:
    return await serve_grpc(
        settings.grpc_address,
        [each.register for each in forwarded],
        [each.service.full_name for each in forwarded],
    )
