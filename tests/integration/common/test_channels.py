"""Channels over several replicas of a service, whose name is served by a small name server."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common.grpc.client import open_channel
from tests.fakes.eventually import eventually
from tests.fakes.name_server import name_server

# Far below the 30 s that gRPC waits by default before it asks for a name again.
SOON_SECONDS = 10.0


class Replica(health_pb2_grpc.HealthServicer):
    """Counts the calls that reach it."""

    def __init__(self) -> None:
        self.calls = 0

    async def Check(self, *_: object) -> health_pb2.HealthCheckResponse:  # noqa: N802  # the contract's name
        self.calls += 1
        return health_pb2.HealthCheckResponse()

    async def start(self, address: str) -> grpc.aio.Server:
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        health_pb2_grpc.add_HealthServicer_to_server(self, server)
        server.add_insecure_port(address)
        await server.start()
        return server


@asynccontextmanager
async def running(*addresses: str) -> AsyncIterator[list[Replica]]:
    replicas = [Replica() for _ in addresses]
    async with AsyncExitStack() as stopping:
        for replica, address in zip(replicas, addresses, strict=True):
            server = await replica.start(address)
            stopping.push_async_callback(server.stop, 0)
        yield replicas


def check_of(channel: grpc.aio.Channel) -> Callable[..., Awaitable[health_pb2.HealthCheckResponse]]:
    call: Callable[..., Awaitable[health_pb2.HealthCheckResponse]] = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return call


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_calls_go_to_all_replicas_of_a_name_one_after_another() -> None:
    port = free_port()
    addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    async with running(*(f"{host}:{port}" for host in addresses)) as replicas, name_server() as (names, dns):
        names.addresses["results.test"] = addresses
        async with open_channel(f"dns://127.0.0.1:{dns}/results.test:{port}") as channel:
            check = check_of(channel)

            async def all_were_called() -> bool:
                await check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=10)
                return all(replica.calls for replica in replicas)

            await eventually(all_were_called, "a call at each replica")
            before = [replica.calls for replica in replicas]
            for _ in range(9):
                await check(health_pb2.HealthCheckRequest())
            assert [replica.calls - was for replica, was in zip(replicas, before, strict=True)] == [3, 3, 3]


async def test_replica_at_a_new_address_is_found_soon_after_the_old_one_ends() -> None:
    port = free_port()
    async with (
        name_server() as (names, dns),
        open_channel(f"dns://127.0.0.1:{dns}/results.test:{port}") as channel,
    ):
        names.addresses["results.test"] = ["127.0.0.1"]
        check = check_of(channel)
        async with running(f"127.0.0.1:{port}") as [old]:
            await check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=10)
        async with running(f"127.0.0.2:{port}") as [new]:
            names.addresses["results.test"] = ["127.0.0.2"]
            await check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=SOON_SECONDS)
            assert (old.calls, new.calls) == (1, 1)
