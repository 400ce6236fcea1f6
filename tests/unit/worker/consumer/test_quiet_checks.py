"""Work of other models is looked for often after news, and rarely while nothing happens."""

import asyncio

from services.worker.consumer.consume_shards import QuietChecks
from tests.fakes.virtual_time import in_virtual_time


async def checked_seconds(checks: QuietChecks, news: object, seconds: int) -> list[int]:
    """The seconds from now at which it is due, asked every second."""
    due: list[int] = []
    for second in range(seconds):
        if checks.is_due(news):
            due.append(second)
        await asyncio.sleep(1)
    return due


@in_virtual_time
async def test_checks_become_rare_while_nothing_happens() -> None:
    assert await checked_seconds(QuietChecks(2), "one", 60) == [0, 2, 6, 14, 30, 50]


@in_virtual_time
async def test_news_are_followed_by_a_check_at_once() -> None:
    checks = QuietChecks(2)
    await checked_seconds(checks, "one", 60)
    assert await checked_seconds(checks, "two", 10) == [0, 2, 6]
