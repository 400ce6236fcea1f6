"""A client whose idle connection is ended by the gateway says nothing about it."""

import os
import subprocess
import sys

import pytest

from tests.harness.processes import bound

LIMIT_SECONDS = 30
# A server that ends idle connections, as the gateway does, and a client that waits until its connection is.
IDLE_CLIENT = """
import asyncio
from proctor.client.calls import open_channel
import grpc

async def echo(request, context):
    return request

async def main():
    server = grpc.aio.server(options=[("grpc.max_connection_idle_ms", 100)])
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", [], has_key=False) as channel:
        await channel.unary_unary("/test.Test/Echo")(b"x")
        while (state := channel.get_state()) is grpc.ChannelConnectivity.READY:
            await channel.wait_for_state_change(state)
    await server.stop(0)
    print("ended")

asyncio.run(main())
"""


@pytest.mark.parametrize(("chosen", "says_something"), [({}, False), ({"GRPC_VERBOSITY": "INFO"}, True)])
def test_grpc_writes_nothing_of_its_own_unless_the_user_asks_for_it(
    chosen: dict[str, str], *, says_something: bool
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"} | chosen
    ended = subprocess.run(
        bound(sys.executable, "-c", IDLE_CLIENT),
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    assert ended.stdout == "ended\n"
    assert ("Got goaway" in ended.stderr) is says_something, ended.stderr
    assert says_something or not ended.stderr
