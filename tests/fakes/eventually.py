"""Waits for what becomes true by itself: polls with a deadline, so that no test guesses a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable

POLL_EVERY_SECONDS = 0.02


Condition = Callable[[], bool | Awaitable[bool]]


async def eventually(is_true: Condition, what: str, limit_seconds: float = 20.0) -> None:
    deadline = time.monotonic() + limit_seconds
    while True:
        answer = is_true()
        if answer if isinstance(answer, bool) else await answer:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_seconds:g} s: {what}")
        await asyncio.sleep(POLL_EVERY_SECONDS)
