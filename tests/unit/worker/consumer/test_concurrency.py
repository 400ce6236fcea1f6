"""So many samples at a time, and a suspect alone."""

from __future__ import annotations

import asyncio

from services.worker.consumer.execute_shard import Slots


async def test_no_more_are_in_than_there_are_slots() -> None:
    slots = Slots(2)
    await slots.acquire()
    await slots.acquire()
    third = asyncio.create_task(slots.acquire())
    await asyncio.wait((third,), timeout=0.01)
    assert not third.done()
    assert slots.in_use == 2
    slots.release()
    await asyncio.wait_for(third, 5)


async def test_a_suspect_waits_for_the_others_and_keeps_new_ones_out() -> None:
    slots = Slots(2)
    inside, leave = asyncio.Event(), asyncio.Event()

    async def suspect() -> None:
        async with slots.alone():
            inside.set()
            await leave.wait()

    await slots.acquire()
    alone = asyncio.create_task(suspect())
    await asyncio.wait((alone,), timeout=0.01)
    assert not inside.is_set()
    late = asyncio.create_task(slots.acquire())
    slots.release()
    await asyncio.wait_for(inside.wait(), 5)
    assert not late.done()
    assert slots.in_use == 1
    leave.set()
    await asyncio.wait_for(asyncio.gather(alone, late), 5)
    assert slots.in_use == 1
