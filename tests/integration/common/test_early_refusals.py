"""An upload that is refused before its end receives the reason, also while it sends (grpc issue 36066)."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import grpc

from proctor.wire.uploads import send_chunks

UPLOADS = 200
CHUNKS = 100
CHUNK = b"x" * 65536
# Before the refusal, so that chunks are on their way when it is sent.
CHUNKS_READ = 5


async def refuse(requests: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:  # noqa: ARG001  # read from the context
    for _ in range(CHUNKS_READ):
        await context.read()
    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no room")
    return b""


async def chunks() -> AsyncIterator[bytes]:
    for _ in range(CHUNKS):
        yield CHUNK


async def test_no_failed_write_hides_the_refusal() -> None:
    server = grpc.aio.server()
    handlers: dict[str, Any] = {"Upload": grpc.stream_unary_rpc_method_handler(refuse)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("any.Service", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    found: Counter[tuple[grpc.StatusCode, str | None]] = Counter()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        upload: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary("/any.Service/Upload")
        for _ in range(UPLOADS):
            try:
                await send_chunks(upload(), chunks())
            except grpc.aio.AioRpcError as error:
                found[error.code(), error.details()] += 1
    await server.stop(0)
    assert found == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "no room"): UPLOADS}
