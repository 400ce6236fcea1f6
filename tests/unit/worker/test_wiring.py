"""The worker's loops end when they are told to."""

from __future__ import annotations

import asyncio

from services.worker.wiring import cancel_all


async def test_a_loop_that_swallows_a_cancellation_ends_all_the_same() -> None:
    swallowed = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(stubborn())
    await asyncio.wait((task,), timeout=0.01)
    await asyncio.wait_for(cancel_all([task]), 5)
    assert swallowed.is_set()
    assert task.cancelled()
