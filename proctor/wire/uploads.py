"""Uploads over gRPC: a header, the content in chunks, and an end that says that nothing is missing."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import TypeVar

import grpc
from google.protobuf.message import Message

# Of the content, in one message; larger ones would only hold more memory for each upload.
MAX_CHUNK_BYTES = 1024 * 1024

Q = TypeVar("Q")
A = TypeVar("A")
M = TypeVar("M", bound=Message)


async def upload_messages(kind: type[M], parts: AsyncGenerator[Message | bytes]) -> AsyncGenerator[M]:
    """`parts` are the header and then the content. The end is sent only after all of them."""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, bytes):
                for start in range(0, len(part), MAX_CHUNK_BYTES):
                    yield kind(content=part[start : start + MAX_CHUNK_BYTES])
            else:
                yield kind(header=part)
    yield kind(end={})


async def send_chunks(call: grpc.aio.StreamUnaryCall[Q, A], chunks: AsyncIterable[Q]) -> A:
    """An early answer stops the sending; an error of `chunks` cancels the call."""
    sending = asyncio.create_task(_send(call, chunks), name="send chunks")

    def stop_sending(_: object) -> None:
        """Otherwise a write to the ended call would fail and hide the answer."""
        sending.cancel()

    call.add_done_callback(stop_sending)
    try:
        await asyncio.wait((sending,))
        if not sending.cancelled():
            sending.result()
        return await call
    finally:
        call.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send(call: grpc.aio.StreamUnaryCall[Q, A], chunks: AsyncIterable[Q]) -> None:
    async for chunk in chunks:
        try:
            await call.write(chunk)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # The call has ended, and its answer says why.
    await call.done_writing()
