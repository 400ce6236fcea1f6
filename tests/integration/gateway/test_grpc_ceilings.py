"""Ceilings of the gateway for gRPC callers: unread messages, messages in progress, connections."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from services.gateway import wiring
from services.gateway.grpc_proxy.message_reads import MAX_MESSAGE_BYTES
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import FakeScheduler
from tests.fakes.gateway.gateway_harness import gateway_harness
from tests.fakes.gateway.gateway_process import GatewayProcess, gateway_process
from tests.fakes.thorough_cases import first_cases

CHECK = "/proctor.v1.SuiteService/CheckSuite"
CALLS = 40
SUITE_BYTES = 3_900_000
# For all calls together: 160 MB are sent.
MAX_MEBIBYTES = 130
MAX_CONNECTIONS = 4
# The preface of HTTP/2, with empty settings.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
READY = grpc.ChannelConnectivity.READY


def peak_mebibytes(gateway: GatewayProcess) -> int:
    status = Path(f"/proc/{gateway.process.pid}/status").read_text(encoding="utf-8")
    [kibibytes] = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kibibytes) // 1024


async def check_suite(stub: "suite_grpc.SuiteServiceAsyncStub", size: int) -> grpc.StatusCode:
    request = suite_pb2.CheckSuiteRequest(document=suite_pb2.SuiteDocument(text="x" * size))
    try:
        await stub.CheckSuite(request, timeout=60)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@first_cases(
    1,
    ("size", "code"),
    [(SUITE_BYTES, grpc.StatusCode.OK), (2 * MAX_MESSAGE_BYTES, grpc.StatusCode.RESOURCE_EXHAUSTED)],
)
async def test_memory_is_bounded_however_many_large_messages_are_sent(
    size: int, code: grpc.StatusCode
) -> None:
    async with gateway_process(FakeScheduler()) as gateway:
        before = peak_mebibytes(gateway)
        options = [("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(gateway.grpc, options=options) as channel:
            stub: suite_grpc.SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(channel)
            codes = await asyncio.gather(*(check_suite(stub, size) for _ in range(CALLS)))
        assert codes == [code] * CALLS
        assert peak_mebibytes(gateway) - before < MAX_MEBIBYTES


async def test_caller_without_a_key_is_refused_before_anything_is_read() -> None:
    async def silent() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with gateway_harness(api_keys={"ann": "secret-key-of-ann"}) as harness:
        async with grpc.aio.insecure_channel(harness.grpc) as channel:
            # The same on the wire as the method's own form, whose message comes at once.
            call: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary(CHECK)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(silent(), timeout=10)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert harness.scheduler.suites.checked == []


async def test_further_connections_are_closed() -> None:
    async with gateway_harness(max_grpc_connections=MAX_CONNECTIONS) as harness:
        host, _, port = harness.grpc.rpartition(":")
        with ExitStack() as opened:
            sockets = [
                opened.enter_context(socket.create_connection((host, int(port)), timeout=5))
                for _ in range(3 * MAX_CONNECTIONS)
            ]
            closed = 0

            async def are_closed() -> bool:
                nonlocal closed
                closed = sum([await asyncio.to_thread(_is_closed, each) for each in sockets])
                return closed == len(sockets) - MAX_CONNECTIONS

            await eventually(are_closed, "connections beyond the limit are closed")
        async with grpc.aio.insecure_channel(harness.grpc) as channel:
            stub: suite_grpc.SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(channel)

            async def is_served() -> bool:
                return await check_suite(stub, 1) is grpc.StatusCode.OK

            await eventually(is_served, "a caller is served again")


async def test_idle_connections_make_room_for_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "_GRPC_IDLE_SECONDS", 0.5)
    async with gateway_harness(max_grpc_connections=MAX_CONNECTIONS) as harness:
        host, _, port = harness.grpc.rpartition(":")
        with ExitStack() as opened:
            for _ in range(MAX_CONNECTIONS):
                idle = socket.create_connection((host, int(port)), timeout=5)
                opened.enter_context(idle).sendall(PREFACE)
            async with grpc.aio.insecure_channel(harness.grpc) as channel:
                stub: suite_grpc.SuiteServiceAsyncStub = suite_grpc.SuiteServiceStub(channel)

                async def is_served() -> bool:
                    return await check_suite(stub, 1) is grpc.StatusCode.OK

                await eventually(is_served, "a caller is served while the idle ones stay open")
                # Its own connection ends too, and the next call makes another.
                await eventually(lambda: channel.get_state() is not READY, "the connection has been idle")
                assert await is_served()


def _is_closed(connection: socket.socket) -> bool:
    """Whether the server has ended it; what it has sent before is read."""
    connection.settimeout(0)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True
