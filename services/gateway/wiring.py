"""Constructs and connects all parts of the gateway, and closes them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from services.common.clock import SystemClock
from services.common.grpc.client import open_channel
from services.common.grpc.server import GrpcServer, ServerLimits, reflecting, serve_grpc
from services.common.lifecycle import BackgroundLoops, every
from services.common.tls.certificate_files import CertificateFiles
from services.gateway.auth.admission import Admission, CallSlots, RequestLimit
from services.gateway.auth.identity import Identity
from services.gateway.backends.calls import RESULTS, SCHEDULER, SENT_ONCE, Results, Scheduler
from services.gateway.backends.health import BackendHealth, is_ready
from services.gateway.grpc_proxy.forwarded_services import ForwardedService, public_services
from services.gateway.grpc_proxy.message_reads import MAX_MESSAGE_BYTES, UNREAD_BYTES
from services.gateway.http.paths import (
    DATASETS_PAGE,
    FILES,
    PUBLIC_FORMS,
    ROLLOUT_TASKS,
    ROLLOUTS,
    SUITE_PAGES,
    SUITES,
    UPLOADS,
)
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.html import Html
from services.gateway.pages.rollouts.live import LiveGrids
from services.gateway.pages.runs.live import LiveRuns
from services.gateway.server.app import HttpParts, PageParts, http_app
from services.gateway.server.http_server import HttpServer
from services.gateway.server.middleware import BodyLimit
from services.gateway.server.trusted_sources import TrustedNames
from services.gateway.settings import GatewaySettings

# How late the gateway's own health follows that of a backend; a check is two small calls.
_HEALTH_SECONDS = 0.5
# Connections are few, and no key is needed to open one; a client connects again with its next call.
_GRPC_IDLE_SECONDS = 30.0
# A key, or the name of a theme and a path.
_PUBLIC_FORM_BYTES = 4 * 1024


class RunningGateway:
    """The HTTP and the gRPC server. SERVING while the gateway takes requests and both backends respond."""

    def __init__(
        self, *, http: HttpServer, grpc_server: GrpcServer, health: BackendHealth, drain_seconds: int
    ) -> None:
        self.http = http
        self.grpc = grpc_server
        self._health = health
        self._drain_seconds = drain_seconds
        self._is_ready = False
        self._loops = BackgroundLoops(
            loops={
                "http server": http.wait_failed(),
                "backend health": every(_HEALTH_SECONDS, self.check_backends, name="backend health"),
            }
        )

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        self._is_ready = is_ready
        await self.check_backends()

    async def check_backends(self) -> None:
        ready = self._is_ready and is_ready(await self._health.check())
        # Read again: the gateway may have begun to stop during the check.
        await self.grpc.set_serving(ready and self._is_ready)

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        await asyncio.gather(self.http.stop(), self.grpc.stop(self._drain_seconds))

    async def drain(self) -> None:
        """Both servers stopped after their last call, so nothing is left to drain."""

    async def close(self) -> None:
        await self._loops.cancel()


@asynccontextmanager
async def running_gateway(settings: GatewaySettings) -> AsyncIterator[RunningGateway]:
    tls = CertificateFiles.of(settings)
    async with (
        open_channel(settings.scheduler_address, sent_once=SENT_ONCE, tls=tls) as scheduler_channel,
        open_channel(settings.results_address, tls=tls) as results_channel,
        AsyncExitStack() as opened,
    ):
        timeout_seconds = settings.call_timeout_seconds
        scheduler = Scheduler(channel=scheduler_channel, timeout_seconds=timeout_seconds)
        results = Results(channel=results_channel, timeout_seconds=timeout_seconds)
        health = BackendHealth(channels={SCHEDULER: scheduler_channel, RESULTS: results_channel})
        admission = Admission(
            identity=Identity(api_keys=settings.api_keys, operators=settings.operators),
            limit=RequestLimit(scheduler=scheduler, clock=SystemClock()),
            slots=_call_slots(settings),
        )
        services = public_services(scheduler_channel, results_channel, admission)
        drain_seconds = settings.drain_seconds
        grpc_server = await _open_grpc(settings, services)
        opened.push_async_callback(grpc_server.stop, drain_seconds)
        pages = _page_parts(scheduler, results)
        opened.push_async_callback(pages.live_runs.stop)
        opened.push_async_callback(pages.live_grids.stop)
        parts = HttpParts(
            scheduler=scheduler,
            results=results,
            health=health,
            admission=admission,
            body_limit=_body_limit(settings),
            sockets=replace(admission, slots=_socket_slots(settings)),
            # Those without a key take no slots of users.
            public_forms=replace(admission, slots=_call_slots(settings)),
            pages=pages,
            trusted=TrustedNames(hosts=settings.allowed_hosts, origins=settings.allowed_origins),
            clock=SystemClock(),
        )
        address = settings.http_address
        http = await HttpServer.start(
            address,
            http_app(parts),
            drain_seconds=drain_seconds,
            max_connections=settings.max_connections,
        )
        opened.push_async_callback(http.stop)
        gateway = RunningGateway(
            http=http, grpc_server=grpc_server, health=health, drain_seconds=drain_seconds
        )
        opened.push_async_callback(gateway.close)
        yield gateway


def _call_slots(settings: GatewaySettings) -> CallSlots:
    return CallSlots(
        max_calls=settings.max_calls,
        max_calls_per_user=settings.max_calls_per_user,
        max_bytes=settings.max_bytes,
        max_bytes_per_user=settings.max_bytes_per_user,
    )


def _page_parts(scheduler: Scheduler, results: Results) -> PageParts:
    assets = Assets.load()
    html = Html(assets=assets)
    render = html.renderer("runs/live_part")
    live_runs = LiveRuns(scheduler=scheduler, results=results, clock=SystemClock(), render=render)
    render_grid = html.renderer("rollouts/grid_part")
    live_grids = LiveGrids(scheduler=scheduler, clock=SystemClock(), render=render_grid)
    return PageParts(assets=assets, html=html, live_runs=live_runs, live_grids=live_grids)


def _socket_slots(settings: GatewaySettings) -> CallSlots:
    """Sockets have no bodies."""
    most, most_per_user = settings.max_live_pages, settings.max_live_pages_per_user
    return CallSlots(max_calls=most, max_calls_per_user=most_per_user, max_bytes=0, max_bytes_per_user=0)


def _body_limit(settings: GatewaySettings) -> BodyLimit:
    by_path = {
        SUITES: settings.max_suite_body_bytes,
        ROLLOUTS: settings.max_suite_body_bytes,
        ROLLOUT_TASKS: settings.max_file_bytes,
        **dict.fromkeys(SUITE_PAGES, settings.max_suite_body_bytes),
        UPLOADS: settings.max_upload_bytes,
        DATASETS_PAGE: settings.max_upload_bytes,
        FILES: settings.max_file_bytes,
        **dict.fromkeys(PUBLIC_FORMS, _PUBLIC_FORM_BYTES),
    }
    return BodyLimit(
        max_bytes=settings.max_body_bytes,
        by_path=by_path,
        streamed=(UPLOADS, DATASETS_PAGE, FILES, ROLLOUT_TASKS),
    )


async def _open_grpc(settings: GatewaySettings, services: Sequence[ForwardedService]) -> GrpcServer:
    names = [each.service.full_name for each in services]
    described = [reflecting(names)] if settings.grpc_reflection else []
    return await serve_grpc(
        settings.grpc_address,
        [*(each.register for each in services), *described],
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
