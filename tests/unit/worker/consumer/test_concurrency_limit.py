"""So many samples at a time, and a suspect alone."""

import asyncio

from services.worker.consumer.concurrency_limit import ConcurrencyLimit


async def test_no_more_run_than_the_limit() -> None:
    limit = ConcurrencyLimit(2)
    await limit.acquire()
    await limit.acquire()
    third = asyncio.create_task(limit.acquire())
    await asyncio.wait((third,), timeout=0.01)
    assert not third.done()
    assert limit.in_use == 2
    limit.release()
    await asyncio.wait_for(third, 5)


async def test_exclusive_use_waits_for_the_others_and_blocks_new_ones() -> None:
    limit = ConcurrencyLimit(2)
    inside, leave = asyncio.Event(), asyncio.Event()

    async def suspect() -> None:
        async with limit.exclusive():
            inside.set()
            await leave.wait()

    await limit.acquire()
    alone = asyncio.create_task(suspect())
    await asyncio.wait((alone,), timeout=0.01)
    assert not inside.is_set()
    late = asyncio.create_task(limit.acquire())
    limit.release()
    await asyncio.wait_for(inside.wait(), 5)
    assert not late.done()
    assert limit.in_use == 1
    leave.set()
    await asyncio.wait_for(asyncio.gather(alone, late), 5)
    assert limit.in_use == 1
