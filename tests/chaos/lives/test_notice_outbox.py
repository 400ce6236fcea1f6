"""Ends of runs under changes of the leader and killed connections: each told, once in the ledger."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.notices.dispatch_notices import LEASE
from services.scheduler.runs.lifecycle.run import Run
from tests.chaos.lives.test_schedule_firings import kill_connections
from tests.fakes.notices.receivers import http_receiver
from tests.fakes.notices.site import NoticeSite, notice_site
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.thorough_cases import first_cases

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT_SECONDS = 300.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


async def end_all(site: NoticeSite, token: FencingToken, runs: list[Run], ended: set[str]) -> None:
    for run in runs:
        try:
            await site.end(token, run)
        except LeadershipLost:
            return
        ended.add(run.run_id)


async def send(site: NoticeSite, token: FencingToken) -> None:
    try:
        while await site.dispatch.send_due(token):
            pass
    except LeadershipLost:
        return


@first_cases(1, ("runs_ended", "changes"), [(100, 10), (300, 30)])
async def test_each_end_is_told_and_stored_once(pool: asyncpg.Pool, runs_ended: int, changes: int) -> None:
    drawn = random.Random(7)
    async with http_receiver() as receiver, asyncio.timeout(LIMIT_SECONDS):
        site = await notice_site(pool)
        await site.target(receiver.url)
        runs = [await site.running() for _ in range(runs_ended)]
        ended: set[str] = set()
        for _ in range(changes):
            left = [run for run in runs if run.run_id not in ended]
            old = await site.stores.begin_term()
            tasks = [
                asyncio.ensure_future(end_all(site, old, left[:20], ended)),
                asyncio.ensure_future(send(site, old)),
            ]
            await asyncio.sleep(drawn.uniform(0, 0.1))
            await kill_connections(pool)
            new = await site.stores.begin_term()
            tasks += [
                asyncio.ensure_future(end_all(site, new, left[:10], ended)),
                asyncio.ensure_future(send(site, new)),
            ]
            await asyncio.gather(*tasks)
        last = await site.stores.begin_term()
        await end_all(site, last, [run for run in runs if run.run_id not in ended], ended)
        # What leaders left in an attempt is free again.
        site.clock.seconds += LEASE.total_seconds() + 1
        await send(site, last)
    ledger = await site.ledger()
    assert Counter(notice.facts["run_id"] for notice in ledger) == Counter(run.run_id for run in runs)
    assert all(notice.delivered_at for notice in ledger)
    received = Counter(headers["webhook-id"] for headers in receiver.headers)
    assert received.keys() == {notice.notice_id for notice in ledger}
