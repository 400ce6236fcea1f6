"""One HTTP response of a model server, whole or streamed, with its times."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from proctor.values.making.quickly_made import quickly_made
from proctor.values.plain import Json
from proctor.values.usage import Timing, TokenUsage
from services.worker.engines.errors import ProviderFailed, RequestTimedOut
from services.worker.engines.http.connection import Response, ResponseCutOff
from services.worker.engines.http.event_stream import END_OF_STREAM
from services.worker.engines.http.ports import AnswerStream

# The longest answer may be a million characters, each written as an escape of twelve bytes.
MAX_BYTES = 16 * 1024 * 1024
# Each token of an echoed prompt comes back with its offset and its log-probabilities.
_ECHOED_BYTES_PER_BYTE = 32
_STREAMED_TYPES = frozenset({"text/event-stream", "application/x-ndjson"})
# How long to wait for the end of the body after the last event, so that the connection can be reused.
_END_OF_BODY_SECONDS = 1.0


@quickly_made
@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The document with its times since sending; `first_token_seconds` only where it was streamed."""

    document: Json
    total_seconds: float
    first_token_seconds: float | None = None
    # Whether reasoning was streamed too, so that the first token is the first of all that are counted.
    streams_reasoning: bool = False

    def timing(self, usage: TokenUsage) -> Timing:
        tokens = usage.completion_tokens if self.streams_reasoning else usage.shown_tokens
        return Timing(
            first_token_seconds=self.first_token_seconds,
            between_tokens_seconds=between_tokens(self.first_token_seconds, self.total_seconds, tokens),
            total_seconds=self.total_seconds,
        )


def between_tokens(first: float | None, total: float, tokens: int) -> float | None:
    """The mean after the first token, like TPOT in vLLM's own benchmark (vllm/benchmarks/serve.py)."""
    return None if first is None or tokens < 2 else (total - first) / (tokens - 1)


async def read_body(response: Response, request_bytes: int) -> bytes:
    """Limits the bytes after decompression: a small body may unpack to a huge one."""
    maximum = MAX_BYTES + request_bytes * _ECHOED_BYTES_PER_BYTE
    chunks: list[bytes] = []
    size = 0
    while chunk := await response.readany():
        size += len(chunk)
        if size > maximum:
            raise ProviderFailed(
                f"The server's answer has more than {maximum:,} bytes, which no answer needs."
            )
        chunks.append(chunk)
    return b"".join(chunks)


def is_streamed(response: Response) -> bool:
    """False for errors and for servers without streaming, which both send one document."""
    return response.status < 300 and _media_type(response) in _STREAMED_TYPES


def _media_type(response: Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


class StreamReading:
    """Reads one answer; `idle_seconds` is the longest pause allowed in the middle of it."""

    def __init__(self, stream: AnswerStream, sent: float, idle_seconds: float) -> None:
        self._stream = stream
        self._sent = sent
        self._idle_seconds = idle_seconds

    async def read(self, response: Response) -> HttpResponse:
        """Its times end with the last event, not with the end of the body after it."""
        stream, first = self._stream, None
        last_event = self._sent
        async for piece in self._pieces(response):
            events = stream.reader.feed(piece)
            for event in events:
                stream.add(event)
            if events:
                last_event = time.monotonic()
            # Not the first event: servers send a role or a ping before the first token.
            if first is None and stream.text.has_begun:
                first = last_event - self._sent
        # Some servers end the body in order, without the marker.
        if not (stream.is_whole or stream.text.has_ended):
            raise ProviderFailed("The server's answer was cut off: it ended without its end marker.")
        return HttpResponse(stream.document(), last_event - self._sent, first, bool(stream.text.reasoning))

    @property
    def _is_over(self) -> bool:
        """Whether no more of the answer can come, though the body may continue."""
        return self._stream.is_whole and not self._stream.ends_with_body

    async def _pieces(self, response: Response) -> AsyncIterator[bytes]:
        try:
            while piece := await self._next(response):
                yield piece
        except (ResponseCutOff, OSError):
            # After the end of the answer a broken connection does no harm.
            if not self._is_over:
                raise
        yield END_OF_STREAM

    async def _next(self, response: Response) -> bytes:
        stream = self._stream
        limit = (
            _END_OF_BODY_SECONDS if self._is_over else self._idle_seconds if stream.text.has_begun else None
        )
        silence = asyncio.timeout(limit)
        try:
            async with silence:
                return await response.readany()
        except TimeoutError as error:
            if self._is_over or not silence.expired():
                raise
            raise RequestTimedOut("The server fell silent in the middle of its answer.") from error
