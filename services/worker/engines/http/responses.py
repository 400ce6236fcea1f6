"""One HTTP response of a model server, whole or streamed, with its times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Protocol

import aiohttp

from services.worker.engines import engine
from services.worker.engines.engine import LONGEST_ANSWER_CHARACTERS, ProviderFailed
from services.worker.engines.http.event_stream import END_OF_STREAM, EventReader, StreamEvent
from services.worker.engines.json_values import Json


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The document, with its times from sending; the first token's only where it was streamed."""

    document: Json
    total_seconds: float
    first_token_seconds: float | None = None
    # What was thought was streamed as well, so that the first token is the first of all that are counted.
    shows_thoughts: bool = False

    def timed(self, generated: engine.Generated) -> engine.Generated:
        usage = generated.usage
        tokens = usage.completion_tokens - (0 if self.shows_thoughts else usage.reasoning_tokens)
        timing = engine.Timing(
            first_token_seconds=self.first_token_seconds,
            between_tokens_seconds=between_tokens(self.first_token_seconds, self.total_seconds, tokens),
            total_seconds=self.total_seconds,
        )
        return replace(generated, timing=timing)


def between_tokens(first: float | None, total: float, tokens: int) -> float | None:
    """The mean after the first token, as vLLM's own benchmark takes it (vllm/benchmarks/serve.py: TPOT)."""
    return None if first is None or tokens < 2 else (total - first) / (tokens - 1)


# The longest answer of all may be a million letters, each of them written as an escape of twelve.
MOST_BYTES = 16 * 1024 * 1024
# Of an echoed prompt each token comes back with its place and its log-probabilities.
_ECHOED_BYTES_PER_BYTE = 32


async def read_body(content: aiohttp.StreamReader, request_bytes: int) -> bytes:
    """Counted as it is unpacked, which little may become very much by."""
    most = MOST_BYTES + request_bytes * _ECHOED_BYTES_PER_BYTE
    pieces: list[bytes] = []
    held = 0
    while piece := await content.readany():
        held += len(piece)
        if held > most:
            raise ProviderFailed(f"The server's answer has more than {most:,} bytes, which no answer needs.")
        pieces.append(piece)
    return b"".join(pieces)


class BrokenOff(Exception):
    """An error came where more of the answer was expected; `status` is what it stands for."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"the server broke off with {status}")
        self.status = status
        self.body = body


class AnswerStream(Protocol):
    """Becomes the document that the same server answers unstreamed, so that one reading serves both."""

    @property
    def reader(self) -> EventReader: ...

    @property
    def has_begun(self) -> bool:
        """Something generated has come, be it thought or said."""

    @property
    def shows_thoughts(self) -> bool: ...

    @property
    def is_whole(self) -> bool:
        """The protocol's own sign of the end has come: without it an answer was cut off."""

    @property
    def ends_with_body(self) -> bool:
        """That sign may come before more of the answer, which is over only with the body."""

    def add(self, event: StreamEvent) -> None:
        """Raises BrokenOff for an error in the middle, ProviderFailed for what cannot be read."""

    def document(self) -> Json: ...


class StreamedText:
    """What is longer than any answer may be is not held, and is refused by its length like any other."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._is_given = False

    def add(self, part: object) -> bool:
        """Whether it says anything."""
        if not isinstance(part, str):
            return False
        self._is_given = True
        if self._length <= LONGEST_ANSWER_CHARACTERS:
            self._parts.append(part)
            self._length += len(part)
        return bool(part)

    @property
    def text(self) -> str | None:
        """None where there was none, not even an empty one."""
        return "".join(self._parts) if self._is_given else None


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
