"""A real gateway on free ports, between fake backends and whatever a test calls it with."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from services.common.grpc.server import GrpcServer
from services.gateway.settings import GatewaySettings
from services.gateway.wiring import RunningGateway, running_gateway
from tests.fakes.callers import CALLER_KEY
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler, results_server, scheduler_server


@dataclass
class GatewayHarness:
    """Addresses of the two doors, and what stands behind them."""

    scheduler: FakeScheduler = field(default_factory=FakeScheduler)
    results: FakeResults = field(default_factory=FakeResults)
    backends: AsyncExitStack = field(default_factory=AsyncExitStack)
    gateway: RunningGateway | None = None
    scheduler_server: GrpcServer | None = None

    @property
    def http(self) -> str:
        assert self.gateway
        return f"http://127.0.0.1:{self.gateway.http.port}"

    @property
    def grpc(self) -> str:
        assert self.gateway
        return f"127.0.0.1:{self.gateway.grpc.port}"

    async def stop_backends(self) -> None:
        await self.backends.aclose()


@asynccontextmanager
async def gateway_harness(**settings: object) -> AsyncIterator[GatewayHarness]:
    harness = GatewayHarness()
    async with harness.backends:
        scheduler = await harness.backends.enter_async_context(scheduler_server(harness.scheduler))
        harness.scheduler_server = scheduler
        results = await harness.backends.enter_async_context(results_server(harness.results))
        values = {
            "http_address": "127.0.0.1:0",
            "grpc_address": "127.0.0.1:0",
            "scheduler_address": f"127.0.0.1:{scheduler.port}",
            "results_address": f"127.0.0.1:{results.port}",
            "caller_key": CALLER_KEY,
            "drain_seconds": 1,
        }
        async with running_gateway(GatewaySettings.model_validate({**values, **settings})) as harness.gateway:
            await harness.gateway.set_ready(True)
            yield harness
