"""Reads the one message of a gRPC call, after the caller is known and not too many at a time.

gRPC offers no size of a message before all of it is in memory, so that it cannot be counted before. A message
that is not being read stays with its sender, but for the first 64 KiB (decision 0036).
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from services.gateway.http.errors import MessageMissing, MessageTooSlow

# A suite with its data files is the largest; uploads come in chunks of 1 MiB.
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
# HTTP/2's own window. A smaller one would make callers wait for a round trip in the middle of a message.
UNREAD_BYTES = 64 * 1024
# Four messages of 4 MiB: the most that one caller has in memory before they are counted.
SLOTS_PER_CALLER = 4
# A body over HTTP may take as long.
READ_SECONDS = 60.0


class MessageReads:
    """A caller has so many slots. One is taken to read a message, by a large one until its call ends.

    A call without a slot waits for one, with nothing read.
    """

    def __init__(self, *, slots_per_caller: int = SLOTS_PER_CALLER, seconds: float = READ_SECONDS) -> None:
        self._slots_per_caller = slots_per_caller
        self._seconds = seconds
        # A caller without a call has no entry.
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def message(self, messages: AsyncIterable[bytes], caller: str) -> AsyncIterator[bytes]:
        """The first message. Raises `MessageMissing` or `MessageTooSlow`."""
        slots = self._slots.get(caller)
        if slots is None:
            slots = self._slots[caller] = asyncio.Semaphore(self._slots_per_caller)
        await slots.acquire()
        has_slot = True
        try:
            message = await self._read(messages)
            if len(message) <= UNREAD_BYTES:
                slots.release()
                has_slot = False
            yield message
        finally:
            if has_slot:
                slots.release()

    async def _read(self, messages: AsyncIterable[bytes]) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                message = await anext(aiter(messages), None)
        except TimeoutError as error:
            raise MessageTooSlow(limit=self._seconds) from error
        if message is None:
            raise MessageMissing
        return message
