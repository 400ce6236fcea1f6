"""Probes of the children: whether a child answers, not only whether its process runs."""

import asyncio
import contextlib

import asyncpg
import grpc
import nats
import nats.errors
from grpc_health.v1 import health_pb2
from nats.aio.client import Client as NatsClient

from proctor.stack.supervision.addresses import UNIX, split_address

# A server under load answers within this; one that hangs must not hold up the next probe.
PROBE_TIMEOUT_SECONDS = 2.0
CONNECTION_ERRORS = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
# Channels to the same address otherwise share one connection, and with it the back-off after a refused one.
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


async def postgres_answers(dsn: str) -> bool:
    """Raises InvalidCatalogNameError for a database that does not exist yet."""
    try:
        connection = await asyncpg.connect(dsn, timeout=PROBE_TIMEOUT_SECONDS)
    except asyncpg.InvalidCatalogNameError:
        raise
    except CONNECTION_ERRORS:
        return False
    try:
        return bool(await connection.fetchval("SELECT 1", timeout=PROBE_TIMEOUT_SECONDS) == 1)
    except CONNECTION_ERRORS:
        return False
    finally:
        await _close(connection)


async def _close(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    with contextlib.suppress(*CONNECTION_ERRORS):
        await connection.close(timeout=PROBE_TIMEOUT_SECONDS)


async def nats_answers(url: str) -> bool:
    """JetStream too: it opens its store after the port."""
    if not await port_answers(url.rpartition("@")[2].removeprefix("nats://")):
        return False
    client = NatsClient()
    try:
        await client.connect(url, allow_reconnect=False, connect_timeout=2, error_cb=_ignore)
        await client.jetstream(timeout=PROBE_TIMEOUT_SECONDS).account_info()
    except (OSError, TimeoutError, nats.errors.Error):
        return False
    finally:
        await client.close()
    return True


async def grpc_serves(address: str) -> bool:
    return await grpc_health(address) == health_pb2.HealthCheckResponse.SERVING


async def grpc_denies(address: str, service: str) -> bool:
    """Whether it answers that the service is not in order, and not only that it is away or unknown."""
    return await grpc_health(address, service) == health_pb2.HealthCheckResponse.NOT_SERVING


async def grpc_health(address: str, service: str = "") -> int | None:
    """A status of `HealthCheckResponse`; None without an answer."""
    # A refused port is cheap to see; a gRPC channel to it would back off first.
    if not await port_answers(address):
        return None
    async with grpc.aio.insecure_channel(address, options=OWN_CONNECTION) as channel:
        check = channel.unary_unary(
            HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = await check(
                health_pb2.HealthCheckRequest(service=service), timeout=PROBE_TIMEOUT_SECONDS
            )
        except grpc.aio.AioRpcError:
            return None
    return answer.status


async def http_is_ready(address: str) -> bool:
    """Whether the gateway does its work with all that it needs."""
    return await _http_answers(address, "/readyz")


async def http_is_alive(address: str) -> bool:
    return await _http_answers(address, "/healthz")


async def _http_answers(address: str, path: str) -> bool:
    request = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
    host, port = split_address(address)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request)
                status_line = await reader.readline()
            finally:
                writer.close()
    except OSError:
        return False
    return status_line.split(b" ")[1:2] == [b"200"]


async def port_answers(address: str) -> bool:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
            if address.startswith(UNIX):
                _, writer = await asyncio.open_unix_connection(address.removeprefix(UNIX))
            else:
                _, writer = await asyncio.open_connection(*split_address(address))
    except OSError:
        return False
    writer.close()
    return True


async def _ignore(_: Exception) -> None:
    """A refused connection is an expected answer of a probe, so it is not logged."""
