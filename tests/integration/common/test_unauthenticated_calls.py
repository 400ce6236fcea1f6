"""Health checks and reflection need no key: a peer that opens many of them leaves room for other calls."""

import asyncio
import sys
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from services.common.grpc.server import ServerLimits, reflecting, serve_grpc
from services.common.grpc.unauthenticated import MAX_CALLS_PER_PEER
from tests.fakes.eventually import eventually

CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


@pytest.fixture
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    limits = ServerLimits(calls=4 * MAX_CALLS_PER_PEER)
    server = await serve_grpc("127.0.0.1:0", [reflecting(["any.Service"])], (), limits)
    await server.set_serving(True)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as opened:
        yield opened
    await server.stop(0)


async def test_a_command_says_whether_a_server_takes_work() -> None:
    server = await serve_grpc("127.0.0.1:0", (), ())

    async def asked() -> tuple[int | None, str]:
        command = (sys.executable, "-P", "-m", "services.common.grpc.probe", f"127.0.0.1:{server.port}")
        done = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        async with asyncio.timeout(60):
            _, said = await done.communicate()
        return done.returncode, said.decode().strip()

    assert await asked() == (1, f"127.0.0.1:{server.port} takes no work: NOT_SERVING.")
    await server.set_serving(True)
    assert await asked() == (0, "")
    await server.stop(0)
    assert await asked() == (1, f"127.0.0.1:{server.port} does not answer: UNAVAILABLE.")


async def endless() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def watch(channel: grpc.aio.Channel) -> "grpc.aio.UnaryStreamCall[bytes, bytes]":
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(WATCH)
    return method(b"")


async def check(channel: grpc.aio.Channel) -> grpc.StatusCode:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(CHECK)
    try:
        await method(b"", timeout=10)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_watchers_of_one_peer_are_bounded_and_room_is_made_when_they_end(
    channel: grpc.aio.Channel,
) -> None:
    watchers = [watch(channel) for _ in range(MAX_CALLS_PER_PEER)]
    serving = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
    assert {await watcher.read() for watcher in watchers} == {serving.SerializeToString()}
    with pytest.raises(grpc.aio.AioRpcError, match="End some first") as refused:
        await watch(channel).read()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for watcher in watchers:
        watcher.cancel()

    async def is_served() -> bool:
        return await check(channel) is grpc.StatusCode.OK

    await eventually(is_served, "a check is served again")


async def test_calls_whose_request_never_comes_are_bounded_too(channel: grpc.aio.Channel) -> None:
    # The same on the wire as the method's own form, whose request comes at once.
    half_open: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(CHECK)
    calls = [half_open(endless(), timeout=60) for _ in range(2 * MAX_CALLS_PER_PEER)]

    async def are_refused() -> bool:
        ended = [call for call in calls if call.done()]
        return len(ended) == MAX_CALLS_PER_PEER

    await eventually(are_refused, "every call beyond the bound is refused")
    refused = {await call.code() for call in calls if call.done()}
    assert refused == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    for call in calls:
        call.cancel()


async def test_reflection_is_bounded_and_answers(channel: grpc.aio.Channel) -> None:
    method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(REFLECT)
    request = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
    streams = [method() for _ in range(MAX_CALLS_PER_PEER)]
    for stream in streams:
        await stream.write(request)
        received = await stream.read()
        assert isinstance(received, bytes)
        response = reflection_pb2.ServerReflectionResponse.FromString(received)
        assert "any.Service" in {each.name for each in response.list_services_response.service}
    assert await check(channel) is grpc.StatusCode.RESOURCE_EXHAUSTED
    for stream in streams:
        stream.cancel()
