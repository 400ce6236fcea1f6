"""Limits concurrent uploads, and passes their chunks from the event loop to the threads that check them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from services.scheduler.uploads.errors import (
    ObjectStoreUnavailable,
    TooManyUploads,
    UploadSilent,
    UploadTooSlow,
)
from services.scheduler.uploads.turn import Turn, without_turn

CHUNKS_AHEAD = 4
RETRY_AFTER_SECONDS = 30
# What a sender sends at least in `silent_seconds` of waiting for it.
LEAST_BYTES = 64 * 1024

Checked = TypeVar("Checked")
Check = Callable[[Iterable[bytes]], Checked]


class UploadAborted(Exception):
    """The upload ended before its last chunk."""


class ChunkQueue:
    """A bounded queue from the event loop (`put`) to a thread (iteration), which waits without the turn."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Semaphore(CHUNKS_AHEAD)
        self._chunks: SimpleQueue[bytes | None] = SimpleQueue()
        self._is_aborted = False

    async def put(self, chunk: bytes) -> None:
        """Waits while the queue is full."""
        await self._room.acquire()
        self._chunks.put(chunk)

    def end(self) -> None:
        self._chunks.put(None)

    def abort(self) -> None:
        """Stops the thread at its next chunk. Has no effect after the end."""
        self._is_aborted = True
        self._chunks.put(None)

    def __iter__(self) -> Iterator[bytes]:
        """Called in the thread. Raises `UploadAborted`."""
        while (chunk := self._next()) is not None and not self._is_aborted:
            self._loop.call_soon_threadsafe(self._room.release)
            yield chunk
        if self._is_aborted:
            raise UploadAborted

    def _next(self) -> bytes | None:
        with without_turn():
            return self._chunks.get()


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Concurrent uploads of all users and of one, seconds per upload, and seconds with hardly a byte.

    The gateway has a shorter timeout and a longer message for its callers.
    """

    uploads: int
    per_user: int
    seconds: float
    silent_seconds: float = 90.0


class Uploads:
    """Uploads of data sets and of files share the limits and the turn."""

    def __init__(self, limits: UploadLimits) -> None:
        self._limits = limits
        self._running: Counter[str] = Counter()
        self._turn = Turn()
        self._threads = ThreadPoolExecutor(limits.uploads, thread_name_prefix="uploads")

    @contextmanager
    def slot(self, user: str) -> Iterator[None]:
        """A user has only a part of the slots, so that others can upload too. Raises `TooManyUploads`."""
        limits = self._limits
        if self._running.total() >= limits.uploads:
            raise TooManyUploads(whose="", limit=limits.uploads, retry_after_seconds=RETRY_AFTER_SECONDS)
        if self._running[user] >= limits.per_user:
            raise TooManyUploads(
                whose=" of yours", limit=limits.per_user, retry_after_seconds=RETRY_AFTER_SECONDS
            )
        self._running[user] += 1
        try:
            yield
        finally:
            self._running -= Counter((user,))

    async def run_check(self, chunks: AsyncIterator[bytes], check: Check[Checked]) -> Checked:
        """Runs the check over the chunks in a thread; it may return before the last chunk.

        The thread has ended and stores nothing more once this returns or raises.
        """
        queue = ChunkQueue()

        async def feed() -> None:
            async for chunk in self._sent(chunks):
                await queue.put(chunk)
            queue.end()

        work = asyncio.get_running_loop().run_in_executor(self._threads, self._check_in_thread, check, queue)
        feeding = asyncio.ensure_future(feed())
        try:
            async with asyncio.timeout(self._limits.seconds):
                await asyncio.wait((work, feeding), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    feeding.result()
                return await asyncio.shield(work)
        except TimeoutError as error:
            raise UploadTooSlow(limit=self._limits.seconds) from error
        finally:
            feeding.cancel()
            queue.abort()
            # Also marks their exceptions as retrieved.
            await asyncio.gather(work, feeding, return_exceptions=True)

    async def _sent(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Time in which the sender waits for the check does not count. Raises `UploadSilent`."""
        loop = asyncio.get_running_loop()
        waited = received = 0.0
        while True:
            began = loop.time()
            try:
                async with asyncio.timeout(self._limits.silent_seconds - waited):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise UploadSilent(limit=self._limits.silent_seconds) from error
            if chunk is None:
                return
            waited, received = waited + loop.time() - began, received + len(chunk)
            if received >= LEAST_BYTES:
                waited = received = 0.0
            yield chunk

    def _check_in_thread(self, check: Check[Checked], queue: ChunkQueue) -> Checked:
        try:
            with self._turn.held():
                return check(queue)
        except OSError as error:
            # From temporary files of the check; the object store has an error of its own.
            raise ObjectStoreUnavailable(problem=f"no room for the check ({error.strerror})") from error
