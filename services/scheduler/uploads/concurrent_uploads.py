"""Limits concurrent uploads, and passes their chunks from the event loop to the threads that check them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock
from typing import TypeVar

from services.scheduler.uploads.errors import (
    ObjectStoreUnavailable,
    TooManyUploads,
    UploadSilent,
    UploadTooSlow,
)

CHUNKS_AHEAD = 4
RETRY_AFTER_SECONDS = 30

Checked = TypeVar("Checked")
Check = Callable[[Iterable[bytes]], Checked]


class UploadAborted(Exception):
    """The upload ended before its last chunk."""


class ChunkQueue:
    """A bounded queue from the event loop (`put`) to a thread (iteration).

    The thread holds the lock except while it waits for a chunk. So one thread works at a time: the event loop
    would have to wait for each of several.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
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
        """Called in the thread, which holds the lock. Raises `UploadAborted`."""
        while (chunk := self._next()) is not None and not self._is_aborted:
            self._loop.call_soon_threadsafe(self._room.release)
            yield chunk
        if self._is_aborted:
            raise UploadAborted

    def _next(self) -> bytes | None:
        self._lock.release()
        try:
            return self._chunks.get()
        finally:
            self._lock.acquire()


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Concurrent uploads, seconds per upload, and seconds without a chunk.

    The gateway has a shorter timeout and a longer message for its callers.
    """

    uploads: int
    seconds: float
    silent_seconds: float = 90.0


class Uploads:
    """Uploads of data sets and of files share the limit and the lock."""

    def __init__(self, limits: UploadLimits) -> None:
        self._limits = limits
        self._uploads = 0
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(limits.uploads, thread_name_prefix="uploads")

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Raises `TooManyUploads`."""
        if self._uploads >= self._limits.uploads:
            raise TooManyUploads(limit=self._limits.uploads, retry_after_seconds=RETRY_AFTER_SECONDS)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    async def run_check(self, chunks: AsyncIterator[bytes], check: Check[Checked]) -> Checked:
        """Runs the check over the chunks in a thread; it may return before the last chunk.

        The thread has ended and stores nothing more once this returns or raises.
        """
        queue = ChunkQueue(self._lock)

        async def feed() -> None:
            while (chunk := await self._next(chunks)) is not None:
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

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Returns None at the end. Time in which the sender waits for the check does not count."""
        try:
            async with asyncio.timeout(self._limits.silent_seconds):
                return await anext(chunks, None)
        except TimeoutError as error:
            raise UploadSilent(limit=self._limits.silent_seconds) from error

    def _check_in_thread(self, check: Check[Checked], queue: ChunkQueue) -> Checked:
        try:
            with self._lock:
                return check(queue)
        except OSError as error:
            # From temporary files of the check; the object store has an error of its own.
            raise ObjectStoreUnavailable(problem=f"no room for the check ({error.strerror})") from error
