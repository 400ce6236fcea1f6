"""A gateway as a process of its own between fake backends: to be killed, restarted, weighed."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.process import Program, RunningProcess
from tests.fakes.callers import CALLER_KEY
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeResults, FakeScheduler, results_server, scheduler_server
from tests.harness.forks.services import start_warm


@dataclass
class GatewayProcess:
    environment: dict[str, str]
    process: RunningProcess = field(init=False)

    @property
    def grpc(self) -> str:
        return self.environment["PROCTOR_GATEWAY_GRPC_ADDRESS"]

    @property
    def http(self) -> str:
        return f"http://{self.environment['PROCTOR_GATEWAY_HTTP_ADDRESS']}"

    async def start(self) -> None:
        command = (sys.executable, "-P", "-m", "services.gateway")
        program = Program(command, {**os.environ, **self.environment})
        self.process = await start_warm(program, Path(os.devnull))
        await eventually(self._is_ready, "the gateway is ready")

    async def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        async with asyncio.timeout(20):
            return await self.process.wait()

    async def _is_ready(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.http}/readyz") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False


@asynccontextmanager
async def gateway_process(scheduler: FakeScheduler) -> AsyncIterator[GatewayProcess]:
    async with gateway_processes(1, scheduler, FakeResults()) as [gateway]:
        yield gateway


@asynccontextmanager
async def gateway_processes(
    count: int, scheduler: FakeScheduler, results: FakeResults, **environment: str
) -> AsyncIterator[list[GatewayProcess]]:
    """Replicas between the same fake backends."""
    addresses = choose_addresses(2 * count)
    async with scheduler_server(scheduler) as first, results_server(results) as second:
        shared = {
            "PROCTOR_SCHEDULER_ADDRESS": f"127.0.0.1:{first.port}",
            "PROCTOR_RESULTS_ADDRESS": f"127.0.0.1:{second.port}",
            "PROCTOR_CALLER_KEY": CALLER_KEY,
            "PROCTOR_GATEWAY_DRAIN_SECONDS": "1",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **environment,
        }
        gateways = [
            GatewayProcess(
                {"PROCTOR_GATEWAY_HTTP_ADDRESS": http, "PROCTOR_GATEWAY_GRPC_ADDRESS": grpc, **shared}
            )
            for http, grpc in zip(addresses[::2], addresses[1::2], strict=True)
        ]
        started: list[GatewayProcess] = []
        try:
            for gateway in gateways:
                started.append(gateway)
                await gateway.start()
            yield gateways
        finally:
            for gateway in started:
                # One that never ran has no process.
                process = getattr(gateway, "process", None)
                if process is not None and process.returncode is None:
                    await gateway.end(signal.SIGKILL)
