"""A Ctrl-C without a terminal: an option says what becomes of the run."""

import asyncio
import os
import signal

from proctor.cli.gateway import Session
from proctor.cli.render.terminal import Terminal
from proctor.cli.runs.follow import cancel
from proctor.cli.runs.run import submit_and_follow
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.v1 import run_pb2
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import gateway_harness


async def test_run_that_would_not_go_on_is_cancelled() -> None:
    order = run_pb2.RunOrder(suite="glue", model="vllm/starter")
    async with gateway_harness() as harness, ProctorClient(harness.grpc) as client:
        following = asyncio.create_task(
            submit_and_follow(Session(client, Terminal(is_json=True)), order, on_interrupt=cancel)
        )
        await eventually(lambda: harness.scheduler.watches_open > 0, "the run is watched")
        os.kill(os.getpid(), signal.SIGINT)
        async with asyncio.timeout(20):
            assert await following is ExitCode.CANCELLED
        (run,) = harness.scheduler.runs.values()
        assert run.state == run_pb2.RUN_STATE_CANCELLED
