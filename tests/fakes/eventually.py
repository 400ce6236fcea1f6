"""Waits for what becomes true by itself: polls with a deadline, so that no test guesses a time."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

# Ample where other tests have the cores; only a test that fails waits for so long.
LIMIT_SECONDS = 60.0
# Longer after a while: looks at Postgres and over gRPC cost what the tests beside this one need.
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 0.25
HOLD_PAUSE_SECONDS = 0.1
# A look that was begun in time may answer so much later; one that hangs is cancelled.
MAX_LOOK_SECONDS = 30.0

Condition = Callable[[], bool | Awaitable[bool]]


async def eventually(is_true: Condition, what: str, limit_seconds: float = LIMIT_SECONDS) -> None:
    started = time.monotonic()
    deadline = started + limit_seconds
    while True:
        answer = is_true()
        if answer if isinstance(answer, bool) else await _looked(answer, deadline, what):
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_seconds:g} s: {what}")
        waited = time.monotonic() - started
        await asyncio.sleep(min(max(MIN_PAUSE_SECONDS, waited / 20), MAX_PAUSE_SECONDS))


async def holds(is_true: Condition, what: str, seconds: float) -> None:
    """For what must not happen: a time without it is all that can show that."""
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        answer = is_true()
        assert answer if isinstance(answer, bool) else await _looked(answer, end, what), what
        await asyncio.sleep(min(HOLD_PAUSE_SECONDS, end - now))


async def _looked(answer: Awaitable[bool], deadline: float, what: str) -> bool:
    left = deadline - time.monotonic() + MAX_LOOK_SECONDS
    looking = asyncio.timeout(left)
    try:
        async with looking:
            return await answer
    except TimeoutError as error:
        if looking.expired():
            raise AssertionError(f"a look did not end within {left:.0f} s: {what}") from error
        raise


@dataclass
class Turns:
    """How often the event loop gave a turn to others."""

    count: int = 0


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """A task beside the test takes every turn that it gets."""
    turns = Turns()

    async def take() -> None:
        while True:
            turns.count += 1
            await asyncio.sleep(0)

    taking = asyncio.create_task(take())
    try:
        yield turns
    finally:
        taking.cancel()
