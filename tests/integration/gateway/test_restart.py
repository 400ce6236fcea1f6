"""A killed gateway comes back and watches continue. SIGTERM stops it in order."""

import asyncio
import os
import signal
import sys

from proctor.client.proctor_client import ProctorClient, Reconnect
from proctor.v1 import run_pb2
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeScheduler
from tests.fakes.gateway.gateway_process import gateway_process
from tests.harness.processes import bound, output_of


async def test_watch_goes_on_after_the_gateway_was_killed_and_restarted() -> None:
    scheduler = FakeScheduler()
    run = run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_RUNNING)
    scheduler.put(run)
    lost: list[bool] = []
    policy = Reconnect(pause_seconds=0.05, on_lost=lambda: lost.append(True))
    async with gateway_process(scheduler) as gateway, ProctorClient(gateway.grpc) as client:
        watch = client.watch_run("r1", policy)
        assert (await anext(watch)).state == run_pb2.RUN_STATE_RUNNING
        await gateway.end(signal.SIGKILL)
        rest = asyncio.create_task(anext(watch))
        await eventually(lambda: bool(lost), "the watcher noticed")
        run.state = run_pb2.RUN_STATE_COMPLETED
        scheduler.put(run)
        await gateway.start()
        async with asyncio.timeout(20):
            assert (await rest).state == run_pb2.RUN_STATE_COMPLETED
            assert [later async for later in watch] == []
    assert lost == [True]


async def test_gateway_that_is_stopped_ends_with_code_0_during_a_watch() -> None:
    scheduler = FakeScheduler()
    scheduler.put(run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_RUNNING))
    async with gateway_process(scheduler) as gateway, ProctorClient(gateway.grpc) as client:
        watch = client.watch_run("r1", Reconnect(give_up_seconds=0))
        await anext(watch)
        assert await gateway.end(signal.SIGTERM) == 0
        await watch.aclose()


async def test_port_that_is_taken_is_one_sentence() -> None:
    async with gateway_process(FakeScheduler()) as gateway:
        second = await asyncio.create_subprocess_exec(
            *bound(sys.executable, "-m", "services.gateway"),
            env={**os.environ, **gateway.environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await output_of(second, 20)
    assert second.returncode == 1
    assert b"the port is taken" in out
    assert b"Traceback" not in out
