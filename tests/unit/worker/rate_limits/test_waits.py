"""A wait is random below a bound that doubles, and never longer than the longest.
A token bucket lets amounts through at its present rate, after a short burst.
"""

import asyncio

import pytest

from services.worker.rate_limits.waits import Backoff, TokenBucket
from tests.fakes.virtual_time import LoopClock, in_virtual_time

BACKOFF = Backoff(first_seconds=0.5, max_seconds=20.0)


@pytest.mark.parametrize(("failures", "bound"), [(1, 0.5), (2, 1.0), (4, 4.0), (7, 20.0), (100_000, 20.0)])
def test_bound_doubles_up_to_the_longest(failures: int, bound: float) -> None:
    waits = [BACKOFF.seconds(failures) for _ in range(500)]
    assert 0 <= min(waits) < 0.2 * bound
    assert 0.8 * bound < max(waits) <= bound


async def seconds_for(bucket: TokenBucket, amount: float, times: int = 1) -> float:
    started = LoopClock().monotonic()
    for _ in range(times):
        await bucket.take(amount)
    return LoopClock().monotonic() - started


@in_virtual_time
async def test_without_a_rate_nothing_waits() -> None:
    assert await seconds_for(TokenBucket(), 1e9) == 0


@in_virtual_time
async def test_amounts_pass_at_the_rate_after_a_burst_of_a_tenth_of_a_second() -> None:
    bucket = TokenBucket()
    bucket.set_rate(100)
    assert 0.89 < await seconds_for(bucket, 1, times=100) < 0.92


@in_virtual_time
async def test_a_pause_saves_no_more_than_a_burst() -> None:
    bucket = TokenBucket()
    bucket.set_rate(100)
    await asyncio.sleep(60)
    assert 0.89 < await seconds_for(bucket, 100) < 0.92


@in_virtual_time
async def test_a_new_rate_applies_to_the_rest_of_an_amount() -> None:
    bucket = TokenBucket()
    bucket.set_rate(0.01)
    taking = asyncio.create_task(seconds_for(bucket, 1))
    await asyncio.sleep(1)
    bucket.set_rate(1000)
    assert await taking < 1.2
