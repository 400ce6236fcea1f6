"""A handler that answers when its caller has gone: nobody was failed, so nothing is reported as a failure."""

import asyncio
from contextlib import suppress
from functools import partial

import grpc
import pytest
from structlog.testing import capture_logs

from services.common.grpc.server import RpcContext, serve_grpc
from services.common.metrics import RPC_SECONDS
from tests.fakes.eventually import eventually

SERVICE, METHOD = "late.Service", "Answer"


async def late(aborted: asyncio.Event, request: bytes, context: RpcContext) -> bytes:
    # The deadline of the caller cancels this; a handler that answers just then does not notice.
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    aborted.set()
    await context.abort(grpc.StatusCode.UNAVAILABLE, f"too late for {request!r}")
    raise AssertionError("abort raises")


def register(aborted: asyncio.Event, server: grpc.aio.Server) -> None:
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(partial(late, aborted))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))


def counted(code: str) -> float:
    [metric] = RPC_SECONDS.labels(f"{SERVICE}/{METHOD}", code).collect()
    return next(float(each.value) for each in metric.samples if each.name.endswith("_count"))


async def test_an_answer_after_the_deadline_of_the_caller_counts_as_cancelled() -> None:
    aborted = asyncio.Event()
    server = await serve_grpc("127.0.0.1:0", [partial(register, aborted)], ())
    with capture_logs() as logs:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{METHOD}")
            with pytest.raises(grpc.aio.AioRpcError) as missed:
                await call(b"", timeout=0.2)
            assert missed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await asyncio.wait_for(aborted.wait(), 30)

            async def is_counted() -> bool:
                return counted("CANCELLED") + counted("INTERNAL") > 0

            await eventually(is_counted, "the call is counted")
        await server.stop(0)
    assert (counted("CANCELLED"), counted("INTERNAL")) == (1, 0)
    assert [each for each in logs if each["log_level"] == "error"] == []
