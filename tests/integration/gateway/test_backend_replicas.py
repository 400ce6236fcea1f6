"""A gateway stays ready while one of several replicas of a backend stops."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from services.common.grpc.client import open_channel
from services.common.grpc.server import GrpcServer, serve_grpc
from services.gateway.backends.calls import RESULTS
from services.gateway.backends.health import BackendHealth
from tests.fakes.eventually import eventually
from tests.fakes.name_server import name_server

HOSTS = ("127.0.0.1", "127.0.0.2")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def replicated() -> AsyncIterator[tuple[list[GrpcServer], BackendHealth]]:
    port = free_port()
    async with AsyncExitStack() as opened:
        replicas = [await serve_grpc(f"{host}:{port}", (), ()) for host in HOSTS]
        for replica in replicas:
            opened.push_async_callback(replica.stop, 0)
        names, dns = await opened.enter_async_context(name_server())
        names.addresses["results.test"] = list(HOSTS)
        address = f"dns://127.0.0.1:{dns}/results.test:{port}"
        channel = await opened.enter_async_context(open_channel(address))
        yield replicas, BackendHealth({RESULTS: channel}, keeps_streams=RESULTS)


async def test_replica_that_stops_leaves_its_service_serving() -> None:
    async with replicated() as (replicas, health):
        for replica in replicas:
            await replica.set_serving(True)

        async def is_serving() -> bool:
            return (await health.check())[RESULTS] == "serving"

        await eventually(is_serving, "both replicas are connected")
        await replicas[0].set_serving(False)

        async def is_always_serving() -> bool:
            return [await is_serving() for _ in range(8)] == [True] * 8

        await eventually(is_always_serving, "the channel knows which replica stopped")


async def test_service_none_of_whose_replicas_serves_is_not_serving() -> None:
    async with replicated() as (_, health):

        async def is_found() -> bool:
            return (await health.check())[RESULTS] == "not serving"

        await eventually(is_found, "an answer of a replica")
