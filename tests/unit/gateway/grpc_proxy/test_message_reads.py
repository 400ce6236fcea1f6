"""Messages of gRPC calls take a slot each, and a large one keeps its slot until its call ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from services.gateway.grpc_proxy.message_reads import UNREAD_BYTES, MessageReads
from services.gateway.http.errors import MessageMissing, MessageTooSlow

LARGE = bytes(UNREAD_BYTES + 1)


async def sent(*messages: bytes, gate: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    if gate:
        await gate.wait()
    for message in messages:
        yield message


async def is_read_at_once(reads: MessageReads, caller: str) -> bool:
    """Whether a slot is free: nothing that is waited for takes time here."""

    async def read() -> None:
        async with reads.message(sent(b"x"), caller):
            pass

    reading = asyncio.ensure_future(read())
    for _ in range(10):
        await asyncio.sleep(0)
    is_read = reading.done()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    return is_read


async def test_large_messages_in_progress_leave_a_caller_without_a_slot_and_others_with_theirs() -> None:
    reads = MessageReads(slots_per_caller=2)
    async with AsyncExitStack() as held:
        for _ in range(2):
            message = await held.enter_async_context(reads.message(sent(LARGE), "ann"))
            assert message == LARGE
        assert not await is_read_at_once(reads, "ann")
        assert await is_read_at_once(reads, "bob")
    assert await is_read_at_once(reads, "ann")


async def test_small_messages_give_their_slot_back_once_they_are_read() -> None:
    reads = MessageReads(slots_per_caller=1)
    async with AsyncExitStack() as held:
        for _ in range(100):
            await held.enter_async_context(reads.message(sent(b"x"), "ann"))
        assert await is_read_at_once(reads, "ann")


async def test_message_that_waits_for_its_slot_is_not_read() -> None:
    reads, gate = MessageReads(slots_per_caller=1), asyncio.Event()
    second: list[bytes] = []

    async def watched() -> AsyncIterator[bytes]:
        second.append(b"begun")
        yield b"y"

    async def read(messages: AsyncIterator[bytes]) -> bytes:
        async with reads.message(messages, "ann") as message:
            return message

    first = asyncio.ensure_future(read(sent(b"x", gate=gate)))
    await asyncio.sleep(0)
    other = asyncio.ensure_future(read(watched()))
    await asyncio.sleep(0)
    assert second == []
    gate.set()
    assert (await first, await other, second) == (b"x", b"y", [b"begun"])


async def test_message_that_does_not_come_gives_its_slot_back() -> None:
    reads = MessageReads(slots_per_caller=1, seconds=0.01)
    with pytest.raises(MessageTooSlow) as refused:
        async with reads.message(sent(b"x", gate=asyncio.Event()), "ann"):
            pass
    assert refused.value.facts == {"limit": 0.01}
    with pytest.raises(MessageMissing):
        async with reads.message(sent(), "ann"):
            pass
    assert await is_read_at_once(reads, "ann")


async def test_failed_call_gives_its_slot_back() -> None:
    reads = MessageReads(slots_per_caller=1)
    for _ in range(3):
        with pytest.raises(KeyError):
            async with reads.message(sent(LARGE), "ann"):
                raise KeyError
    assert await is_read_at_once(reads, "ann")
