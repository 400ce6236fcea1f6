"""Pieces of an upload on their way from the event loop to the thread that checks them: a few at a time."""

import asyncio
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Lock

CHUNKS_AHEAD = 4


class UploadAborted(Exception):
    """Nobody sends the rest of this upload any more."""


class ChunkQueue:
    """The loop puts and never blocks; the thread iterates. A full one holds the sender back.

    The thread has the turn but while it waits for a chunk: of many threads one works at a time, since the
    loop would have to wait for each of them.
    """

    def __init__(self, turn: Lock) -> None:
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Semaphore(CHUNKS_AHEAD)
        self._pieces: SimpleQueue[bytes | None] = SimpleQueue()
        self._is_aborted = False

    async def put(self, chunk: bytes) -> None:
        await self._room.acquire()
        self._pieces.put(chunk)

    def end(self) -> None:
        self._pieces.put(None)

    def abort(self) -> None:
        """The thread ends at its next chunk; after the end it changes nothing."""
        self._is_aborted = True
        self._pieces.put(None)

    def __iter__(self) -> Iterator[bytes]:
        """In the thread, which has the turn. Raises `UploadAborted`."""
        while (chunk := self._next()) is not None and not self._is_aborted:
            self._loop.call_soon_threadsafe(self._room.release)
            yield chunk
        if self._is_aborted:
            raise UploadAborted

    def _next(self) -> bytes | None:
        self._turn.release()
        try:
            return self._pieces.get()
        finally:
            self._turn.acquire()
