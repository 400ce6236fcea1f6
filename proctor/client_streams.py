"""Streams of pieces that go up to a server: the client's to the gateway, the gateway's to a service."""

import asyncio
from collections.abc import AsyncIterable
from typing import TypeVar

import grpc

Q = TypeVar("Q")
A = TypeVar("A")


async def answer_to(call: grpc.aio.StreamUnaryCall[Q, A], pieces: AsyncIterable[Q]) -> A:
    """Sends pieces as they are taken. An early answer ends it; pieces that fail cancel the call."""
    sending = asyncio.create_task(_send(call, pieces), name="send pieces")

    def stop_sending(_: object) -> None:
        """A write that fails because the call is over puts its failure in the place of the answer."""
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


async def _send(call: grpc.aio.StreamUnaryCall[Q, A], pieces: AsyncIterable[Q]) -> None:
    async for piece in pieces:
        try:
            await call.write(piece)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # The call is over, and its answer says why.
    await call.done_writing()
