"""Reads the answer of a server that streams it, as it comes, and tells whether it came to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import aiohttp

from services.worker import engine
from services.worker.event_stream import END_OF_STREAM
from services.worker.http_answer import HttpAnswer
from services.worker.http_answer_stream import AnswerStream

_STREAMED_TYPES = frozenset({"text/event-stream", "application/x-ndjson"})
# After the last event only the end of the body is waited for, so that the connection serves again.
_LAST_WORD_SECONDS = 1.0


def is_streamed(response: aiohttp.ClientResponse) -> bool:
    """A server that knows no streaming answers as ever, and an error is one document too."""
    return response.status < 300 and response.content_type in _STREAMED_TYPES


class StreamReading:
    """One answer; `idle_seconds` is the longest silence in the middle of it."""

    def __init__(self, stream: AnswerStream, sent: float, idle_seconds: float) -> None:
        self._stream = stream
        self._sent = sent
        self._idle_seconds = idle_seconds

    async def read(self, content: aiohttp.StreamReader) -> HttpAnswer:
        """The times are those of what is told, not of the end of the body behind it."""
        stream, first = self._stream, None
        told = self._sent
        async for piece in self._pieces(content):
            events = stream.reader.feed(piece)
            for event in events:
                stream.add(event)
            if events:
                told = time.monotonic()
            if first is None and stream.has_begun:
                first = told - self._sent
        if not stream.is_whole:
            raise engine.ProviderFailed("The server's answer was cut off: it ended before its end was told.")
        return HttpAnswer(stream.document(), told - self._sent, first, stream.shows_thoughts)

    @property
    def _is_over(self) -> bool:
        """No more of the answer can come, though the body may go on."""
        return self._stream.is_whole and not self._stream.ends_with_body

    async def _pieces(self, content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
        try:
            while piece := await self._next(content):
                yield piece
        except (aiohttp.ClientError, TimeoutError):
            # Whatever befalls a connection behind the end of an answer, the answer is there.
            if not self._is_over:
                raise
        yield END_OF_STREAM

    async def _next(self, content: aiohttp.StreamReader) -> bytes:
        stream = self._stream
        limit = _LAST_WORD_SECONDS if self._is_over else self._idle_seconds if stream.has_begun else None
        silence = asyncio.timeout(limit)
        try:
            async with silence:
                return await content.readany()
        except TimeoutError as error:
            if self._is_over or not silence.expired():
                raise
            raise engine.RequestTimedOut("The server fell silent in the middle of its answer.") from error
