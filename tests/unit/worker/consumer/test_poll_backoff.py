"""Work of other models is looked for often after a change, and rarely while nothing happens."""

import asyncio

from services.worker.consumer.consume_shards import PollBackoff
from tests.fakes.virtual_time import in_virtual_time


async def polled_seconds(backoff: PollBackoff, version: object, seconds: int) -> list[int]:
    """The seconds from now at which it is due, asked every second."""
    due: list[int] = []
    for second in range(seconds):
        if backoff.is_due(version):
            due.append(second)
        await asyncio.sleep(1)
    return due


@in_virtual_time
async def test_polls_become_rare_while_nothing_happens() -> None:
    assert await polled_seconds(PollBackoff(2), "one", 60) == [0, 2, 6, 14, 30, 50]


@in_virtual_time
async def test_a_change_is_followed_by_a_poll_at_once() -> None:
    backoff = PollBackoff(2)
    await polled_seconds(backoff, "one", 60)
    assert await polled_seconds(backoff, "two", 10) == [0, 2, 6]
