"""Calls in processes of their own: what they return and raise, and what becomes of one that does not end."""

import asyncio
import math
import operator
import os
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.common.errors import TookTooLong
from services.common.processes import bounded_calls
from services.common.processes.bounded_calls import BoundedCalls

LONG = 60.0


@pytest_asyncio.fixture
async def calls() -> AsyncIterator[BoundedCalls]:
    opened = BoundedCalls(1)
    yield opened
    await opened.close()


async def test_a_call_returns_and_raises_what_the_function_does(calls: BoundedCalls) -> None:
    assert await calls.call(LONG, math.comb, 5, 2) == 10
    with pytest.raises(ZeroDivisionError):
        await calls.call(LONG, operator.truediv, 1, 0)
    assert await calls.call(LONG, os.getpid) not in (os.getpid(), 0)


async def test_calls_share_a_process_and_see_no_secret(
    calls: BoundedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_RESULTS_POSTGRES_DSN", "secret")
    first, second = await asyncio.gather(calls.call(LONG, os.getpid), calls.call(LONG, os.getpid))
    assert first == second
    assert await calls.call(LONG, os.getenv, "PROCTOR_RESULTS_POSTGRES_DSN") is None


async def test_one_that_does_not_end_is_ended_with_its_process_and_the_next_is_made(
    calls: BoundedCalls,
) -> None:
    process = await calls.call(LONG, os.getpid)
    with pytest.raises(TookTooLong):
        await calls.call(0.5, signal.pause)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert await calls.call(LONG, math.comb, 5, 2) == 10


async def test_a_process_that_dies_takes_one_call_with_it(calls: BoundedCalls) -> None:
    with pytest.raises(TookTooLong):
        await calls.call(LONG, os._exit, 1)  # as the kernel ends one that needs too much memory
    assert await calls.call(LONG, math.comb, 5, 2) == 10


async def test_what_needs_much_memory_does_not_stay(
    calls: BoundedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_calls, "KEPT_BYTES", 1000)
    first = await calls.call(LONG, os.getpid)
    assert await calls.call(LONG, len, b"x" * 2000) == 2000
    assert await calls.call(LONG, os.getpid) != first
