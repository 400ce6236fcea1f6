"""Limits concurrent uploads, and passes their chunks to the processes that check them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from services.scheduler.uploads.errors import (
    TooManyUploads,
    UploadSilent,
    UploadTooSlow,
)
from services.scheduler.uploads.ports import Checked, CheckJob, Objects, StartCheck

# Uploads take minutes; an earlier upload rarely finds room.
RETRY_AFTER_SECONDS = 30
# What a sender sends at least in `silent_seconds` of waiting for it.
MIN_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Concurrent uploads of all users and of one, seconds per upload, and seconds with hardly a byte.

    The gateway has a shorter timeout and a longer message for its callers.
    """

    uploads: int
    per_user: int
    seconds: float
    silent_seconds: float = 90.0


class Uploads:
    """Uploads of data sets and of files share the limits. `check_room` raises `DiskFull`."""

    def __init__(self, limits: UploadLimits, start_check: StartCheck, check_room: Callable[[], None]) -> None:
        self._limits = limits
        self._start_check = start_check
        self._check_room = check_room
        self._running: Counter[str] = Counter()

    @contextmanager
    def slot(self, user: str) -> Iterator[None]:
        """For an upload that is stored. Raises `DiskFull`, and what `checking_slot` does."""
        self._check_room()
        with self.checking_slot(user):
            yield

    @contextmanager
    def checking_slot(self, user: str) -> Iterator[None]:
        """A user has only a part of the slots, so that others can upload too. Raises `TooManyUploads`."""
        limits = self._limits
        if self._running.total() >= limits.uploads:
            raise TooManyUploads(whose="The", limit=limits.uploads, retry_after_seconds=RETRY_AFTER_SECONDS)
        if self._running[user] >= limits.per_user:
            raise TooManyUploads(whose="Your", limit=limits.per_user, retry_after_seconds=RETRY_AFTER_SECONDS)
        self._running[user] += 1
        try:
            yield
        finally:
            self._running -= Counter((user,))

    async def run_check(
        self, chunks: AsyncIterator[bytes], job: CheckJob[Checked], objects: Objects, prefixes: Sequence[str]
    ) -> Checked:
        """Does the job with the chunks in a process; it may return before the last chunk.

        It stores below the prefixes. Nothing more is stored in `objects` once this returns or raises.
        """
        process = await self._start_check(job, objects, prefixes, self._limits.seconds)

        async def feed() -> None:
            await process.begin()
            async for chunk in self._sent(chunks):
                await process.add(chunk)
            await process.finish()

        checking = asyncio.create_task(process.result(), name="check upload")
        feeding = asyncio.create_task(feed(), name="feed upload")
        try:
            async with asyncio.timeout(self._limits.seconds):
                await asyncio.wait((checking, feeding), return_when=asyncio.FIRST_COMPLETED)
                if not checking.done():
                    feeding.result()
                checked: Checked = await asyncio.shield(checking)
                return checked
        except TimeoutError as error:
            raise UploadTooSlow(limit=self._limits.seconds) from error
        finally:
            feeding.cancel()
            await process.end(is_done=checking.done())
            # Also marks their exceptions as retrieved.
            await asyncio.gather(checking, feeding, return_exceptions=True)

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
            if received >= MIN_BYTES:
                waited = received = 0.0
            yield chunk
