"""Health checks and reflection: calls that need no key. Each peer may have a limited number in progress.

Without a bound one peer could hold every call that a server takes, with streams that watch a state or with
calls whose request never comes.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

_PREFIXES = ("/grpc.health.", "/grpc.reflection.")
# Far above what probes of one node need, and far below the 2,000 calls of a server.
MAX_CALLS_PER_PEER = 64
# A health check is one small message. A call that takes longer could keep others out.
_READ_SECONDS = 10.0


class UnauthenticatedCalls:
    """Wraps the handlers of such methods; further calls of a peer fail with RESOURCE_EXHAUSTED."""

    def __init__(self, max_calls_per_peer: int = MAX_CALLS_PER_PEER) -> None:
        self._max_calls_per_peer = max_calls_per_peer
        self._calls: Counter[str] = Counter()

    @staticmethod
    def include(method: str) -> bool:
        return method.startswith(_PREFIXES)

    def bounded(self, handler: Any) -> Any:  # a handler of any method
        """The handler, as one that takes a stream: the library reads a single request before it calls one."""
        coding = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.unary_unary is not None:
            return grpc.stream_unary_rpc_method_handler(self._of_one_request(handler.unary_unary), **coding)
        if handler.unary_stream is not None:
            return grpc.stream_stream_rpc_method_handler(self._of_one_request(handler.unary_stream), **coding)
        return grpc.stream_stream_rpc_method_handler(self._of_stream(handler.stream_stream), **coding)

    def _of_one_request(self, call: Any) -> Any:
        async def bounded(requests: object, context: Any) -> Any:  # noqa: ARG001  # read from the context
            peer = await self._admit(context)
            with self._counted(peer):
                return await call(await _request_of(context), context)

        return bounded

    def _of_stream(self, call: Any) -> Any:
        async def bounded(requests: Any, context: Any) -> AsyncIterator[Any]:
            peer = await self._admit(context)
            with self._counted(peer):
                async for response in call(requests, context):
                    yield response

        return bounded

    async def _admit(self, context: Any) -> str:
        # Without the port: each connection of one peer has another.
        peer: str = context.peer().rpartition(":")[0]
        if self._calls[peer] >= self._max_calls_per_peer:
            detail = f"{peer} has {self._max_calls_per_peer} calls without a key in progress. End some first."
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, detail)
        return peer

    @contextmanager
    def _counted(self, peer: str) -> Iterator[None]:
        self._calls[peer] += 1
        try:
            yield
        finally:
            self._calls[peer] -= 1
            if not self._calls[peer]:
                del self._calls[peer]


async def _request_of(context: Any) -> Any:
    request: Any = grpc.aio.EOF
    try:
        async with asyncio.timeout(_READ_SECONDS):
            request = await context.read()
    except TimeoutError:
        detail = f"The request did not come within {_READ_SECONDS:g} s. Send it with the call."
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, detail)
    if request is grpc.aio.EOF:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call has no request. Send one.")
    return request
