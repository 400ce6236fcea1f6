"""The trace context goes along with calls of every form: one request or many, one answer or many."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest_asyncio

from services.common import traces
from services.common.grpc.client import open_channel
from services.common.traces import SpanKind, current_trace, span

# Nothing listens there: what is exported is dropped.
NOWHERE = "http://127.0.0.1:1"


def seen(context: Any) -> bytes:
    found = dict(context.invocation_metadata())
    return str(found.get("traceparent", "")).encode()


async def one_for_one(_: bytes, context: Any) -> bytes:
    return seen(context)


async def many_for_one(_: bytes, context: Any) -> AsyncIterator[bytes]:
    for _piece in range(3):
        yield seen(context)


async def one_for_many(requests: AsyncIterator[bytes], context: Any) -> bytes:
    pieces = [piece async for piece in requests]
    return b" ".join([*pieces, seen(context)])


async def many_for_many(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    async for piece in requests:
        yield piece + b" " + seen(context)


@pytest_asyncio.fixture
async def channel() -> AsyncIterator[Any]:
    """A channel whose calls take bytes, which its types do not say."""
    traces.start_traces("test", NOWHERE, 1.0, begins_traces=True)
    handlers: dict[str, Any] = {
        "OneForOne": grpc.unary_unary_rpc_method_handler(one_for_one),
        "ManyForOne": grpc.unary_stream_rpc_method_handler(many_for_one),
        "OneForMany": grpc.stream_unary_rpc_method_handler(one_for_many),
        "ManyForMany": grpc.stream_stream_rpc_method_handler(many_for_many),
    }
    async with served(handlers) as port, open_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    traces.stop_traces()


@asynccontextmanager
async def served(handlers: dict[str, Any]) -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


async def pieces() -> AsyncIterator[bytes]:
    yield b"a"
    yield b"b"


async def test_each_form_of_a_call_takes_the_trace_along(channel: Any) -> None:
    with span("request", SpanKind.SERVER):
        trace = current_trace().encode()
        assert trace
        assert await channel.unary_unary("/t.T/OneForOne")(b"", timeout=5) == trace
        streamed = channel.unary_stream("/t.T/ManyForOne")(b"", timeout=5)
        assert [piece async for piece in streamed] == [trace] * 3
        assert await channel.stream_unary("/t.T/OneForMany")(pieces(), timeout=5) == b"a b " + trace
        both = channel.stream_stream("/t.T/ManyForMany")(pieces(), timeout=5)
        assert [piece async for piece in both] == [b"a " + trace, b"b " + trace]


async def test_pieces_may_be_written_one_by_one(channel: Any) -> None:
    """As the gateway passes uploads on."""
    with span("request", SpanKind.SERVER):
        trace = current_trace().encode()
        call = channel.stream_unary("/t.T/OneForMany")(timeout=5)
        await call.write(b"a")
        await call.done_writing()
        assert await call == b"a " + trace


async def test_without_a_span_nothing_is_sent(channel: Any) -> None:
    streamed = channel.unary_stream("/t.T/ManyForOne")(b"", timeout=5)
    assert [piece async for piece in streamed] == [b""] * 3


async def test_cancelled_stream_ends(channel: Any) -> None:
    with span("request", SpanKind.SERVER):
        streamed = channel.unary_stream("/t.T/ManyForOne")(b"", timeout=5)
        assert await anext(aiter(streamed))
        streamed.cancel()
        assert await streamed.code() is grpc.StatusCode.CANCELLED
