"""Uploads that go on: so many at a time, each checked in a thread to which its sender is held back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from services.scheduler.datasets.dataset_errors import (
    ObjectStoreUnavailable,
    TooManyUploads,
    UploadSilent,
    UploadTooSlow,
)
from services.scheduler.datasets.piece_handover import ChunkQueue

Checked = TypeVar("Checked")
Check = Callable[[Iterable[bytes]], Checked]

RETRY_AFTER_SECONDS = 30


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Uploads at a time, how long one may take, and how long no chunk of it may come.

    The gateway loses patience with its own callers sooner, and tells them more.
    """

    uploads: int
    seconds: float
    silent_seconds: float = 90.0


class Uploads:
    """Of data sets and of files alike: they share the limit and the turn."""

    def __init__(self, limits: UploadLimits) -> None:
        self._limits = limits
        self._uploads = 0
        self._turn = Lock()
        self._threads = ThreadPoolExecutor(limits.uploads, thread_name_prefix="uploads")

    @contextmanager
    def place(self) -> Iterator[None]:
        """Raises `TooManyUploads`."""
        if self._uploads >= self._limits.uploads:
            raise TooManyUploads(limit=self._limits.uploads, retry_after_seconds=RETRY_AFTER_SECONDS)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    async def checked(self, chunks: AsyncIterator[bytes], check: Check[Checked]) -> Checked:
        """What the check makes of the chunks, in a thread; it may end before the last one was taken.

        Once this returns or raises, the thread has ended and stores nothing any more.
        """
        handover = ChunkQueue(self._turn)

        async def feed() -> None:
            while (chunk := await self._next(chunks)) is not None:
                await handover.put(chunk)
            handover.end()

        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._check_in_thread, check, handover)
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
            handover.abort()
            await asyncio.wait((work, feeding))
            _heed(work)
            _heed(feeding)

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """None at the end. Time in which the check holds the sender back does not count."""
        try:
            async with asyncio.timeout(self._limits.silent_seconds):
                return await anext(chunks, None)
        except TimeoutError as error:
            raise UploadSilent(limit=self._limits.silent_seconds) from error

    def _check_in_thread(self, check: Check[Checked], handover: ChunkQueue) -> Checked:
        try:
            with self._turn:
                return check(handover)
        except OSError as error:
            # Of the files that it needs meanwhile; the object store has an error of its own.
            raise ObjectStoreUnavailable(problem=f"no room for the check ({error.strerror})") from error


def _heed(future: asyncio.Future[Checked]) -> None:
    """What ended by itself was told already, or nobody asks any more."""
    if not future.cancelled():
        future.exception()
