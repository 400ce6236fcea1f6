"""Metrics of a process: served by a thread beside the event loop, with the labels of the process."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from proctor.stack.supervision.addresses import choose_addresses
from tests.fakes.eventually import eventually

PROGRAM = """
import asyncio
from contextlib import asynccontextmanager
from services.common.process import start_process
from services.worker.settings import WorkerSettings
from services.worker.metrics import FIRST_TOKEN_SECONDS, SAMPLES

class Service:
    async def set_ready(self, is_ready): pass
    async def wait_failed(self): await asyncio.Event().wait()
    async def stop_taking_work(self): pass
    async def drain(self): pass

@asynccontextmanager
async def running(settings):
    SAMPLES.labels("answered").inc(3)
    FIRST_TOKEN_SECONDS.observe_all([0.011, 0.3, 0.3])
    yield Service()

labels = lambda settings: {"pool": settings.pool}
raise SystemExit(start_process("worker", WorkerSettings, running, metrics_labels=labels))
"""


async def figures(address: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/metrics") as response:
        text = await response.text()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def start(environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM),
        env={"PYTHONPATH": str(Path.cwd()), **environment},
        stdout=asyncio.subprocess.PIPE,
    )


async def test_metrics_have_the_labels_of_their_process_and_sums_of_batches() -> None:
    [address] = choose_addresses(1)
    process = await start({"PROCTOR_METRICS_ADDRESS": address, "PROCTOR_WORKER_POOL": "small"})
    try:

        async def counted() -> bool:
            try:
                found = await figures(address)
            except aiohttp.ClientError:
                return False
            return ("proctor_samples_total", pool | {("result", "answered")}) in found

        pool = frozenset({("pool", "small")})
        await eventually(counted, "the metrics are served")
        found = await figures(address)
        buckets = {
            bound: found["proctor_first_token_seconds_bucket", pool | {("le", bound)}]
            for bound in ("0.01", "0.025", "0.25", "0.5", "+Inf")
        }
        assert found["proctor_samples_total", pool | {("result", "answered")}] == 3
        assert buckets == {"0.01": 0, "0.025": 1, "0.25": 1, "0.5": 3, "+Inf": 3}
        assert round(found["proctor_first_token_seconds_sum", pool], 3) == 0.611
        assert any(name == "process_resident_memory_bytes" for name, _ in found)
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_taken_port_is_a_sentence_and_no_start() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        process = await start({"PROCTOR_METRICS_ADDRESS": f"127.0.0.1:{port}"})
        output, _ = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}: the port is taken" in output.decode()
