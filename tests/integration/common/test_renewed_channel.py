"""Calls of every form that are in progress when a certificate is renewed end on the channel they began on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from services.common import traces
from services.common.grpc.client import RenewedChannel, open_channel
from services.common.grpc.server import serve_grpc
from services.common.tls.certificate_files import CertificateFiles
from tests.fakes.certificates import Authority
from tests.fakes.eventually import eventually

SERVER = "localhost"
# Nothing listens there: what is exported is dropped.
NOWHERE = "http://127.0.0.1:1"


class Service:
    """Ends no call before the test says so."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def one_for_one(self, request: bytes, _: object) -> bytes:
        await self.go_on.wait()
        return request

    async def many_for_one(self, request: bytes, _: object) -> AsyncIterator[bytes]:
        yield request
        await self.go_on.wait()
        yield request

    async def one_for_many(self, requests: AsyncIterator[bytes], _: object) -> bytes:
        return b"".join([piece async for piece in requests])

    async def many_for_many(self, requests: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        async for piece in requests:
            await self.go_on.wait()
            yield piece

    def register(self, server: grpc.aio.Server) -> None:
        handlers: dict[str, Any] = {
            "OneForOne": grpc.unary_unary_rpc_method_handler(self.one_for_one),
            "ManyForOne": grpc.unary_stream_rpc_method_handler(self.many_for_one),
            "OneForMany": grpc.stream_unary_rpc_method_handler(self.one_for_many),
            "ManyForMany": grpc.stream_stream_rpc_method_handler(self.many_for_many),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", handlers),))


def files(folder: Path) -> CertificateFiles:
    return CertificateFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")


@pytest.fixture(params=[False, True], ids=["", "traced"])
def tracing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interceptors stand between a call and its channel where traces are on. Files are always looked at."""
    monkeypatch.setattr("services.common.tls.certificate_files._POLL_SECONDS", 0.0)
    if request.param:
        traces.start_traces("test", NOWHERE, 1.0, begins_traces=True)
    yield
    traces.stop_traces()


@asynccontextmanager
async def channel_of(service: Service, tmp_path: Path) -> AsyncIterator[Any]:
    server = await serve_grpc("127.0.0.1:0", [service.register], (), tls=files(tmp_path / "server"))
    try:
        address = f"{SERVER}:{server.port}"
        async with open_channel(address, tls=files(tmp_path / "client")) as channel:
            yield channel
    finally:
        await server.stop(0)


async def pieces() -> AsyncIterator[bytes]:
    yield b"a"
    yield b"b"


async def all_of(call: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in call]


@pytest.mark.usefixtures("tracing")
async def test_calls_in_progress_end_and_their_channel_is_closed_after_the_last(tmp_path: Path) -> None:
    authority, service = Authority(tmp_path / "authority"), Service()
    authority.issue(tmp_path / "server", SERVER)
    authority.issue(tmp_path / "client", "client")
    async with channel_of(service, tmp_path) as channel:
        renewed = cast("RenewedChannel", channel)
        first = renewed._current
        one = asyncio.ensure_future(channel.unary_unary("/t.T/OneForOne")(b"1", timeout=30))
        many = asyncio.create_task(all_of(channel.unary_stream("/t.T/ManyForOne")(b"2", timeout=30)))
        both = asyncio.create_task(all_of(channel.stream_stream("/t.T/ManyForMany")(pieces(), timeout=30)))
        upload = channel.stream_unary("/t.T/OneForMany")(timeout=30)
        await upload.write(b"a")
        await eventually(lambda: first.calls == 4, "four calls are in progress")

        authority.issue(tmp_path / "client", "client")
        later = channel.stream_unary("/t.T/OneForMany")(pieces(), timeout=30)
        assert await later == b"ab"
        assert renewed._current is not first
        assert renewed._open == {first, renewed._current}

        service.go_on.set()
        await upload.write(b"b")
        await upload.done_writing()
        assert await upload == b"ab"
        assert await asyncio.wait_for(one, 20) == b"1"
        assert await asyncio.wait_for(many, 20) == [b"2", b"2"]
        assert await asyncio.wait_for(both, 20) == [b"a", b"b"]
        await eventually(lambda: renewed._open == {renewed._current}, "the first channel is closed")
        assert (first.calls, renewed._current.calls) == (0, 0)


@pytest.mark.usefixtures("tracing")
async def test_call_that_is_cancelled_is_counted_no_more(tmp_path: Path) -> None:
    authority, service = Authority(tmp_path / "authority"), Service()
    authority.issue(tmp_path / "server", SERVER)
    authority.issue(tmp_path / "client", "client")
    async with channel_of(service, tmp_path) as channel:
        call = channel.unary_stream("/t.T/ManyForOne")(b"1", timeout=30)
        assert await anext(aiter(call)) == b"1"
        call.cancel()
        renewed = cast("RenewedChannel", channel)
        await eventually(lambda: renewed._current.calls == 0, "no call is in progress")


@pytest.mark.usefixtures("tracing")
async def test_one_path_is_called_with_messages_and_forwarded_in_bytes(tmp_path: Path) -> None:
    authority, service = Authority(tmp_path / "authority"), Service()
    service.go_on.set()
    authority.issue(tmp_path / "server", SERVER)
    authority.issue(tmp_path / "client", "client")
    async with channel_of(service, tmp_path) as channel:
        as_text = channel.unary_unary("/t.T/OneForOne", str.encode, bytes.decode)
        assert await as_text("text", timeout=30) == "text"
        assert await channel.unary_unary("/t.T/OneForOne")(b"bytes", timeout=30) == b"bytes"
        assert await as_text("text", timeout=30) == "text"
