"""Limits that change without a restart, and requests that are counted: in memory and in Postgres alike."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.names.user import OTHER_USERS
from proctor.values.priority import Priority
from services.common.errors import ErrorKind, TooManyRequests, UnstorableText
from services.common.postgres import PostgresSession, PostgresTransaction
from services.common.sql.queries import parse_query
from services.scheduler.limits.change_limits import ChangeLimits
from services.scheduler.limits.ports import LimitStore
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import LIMIT_NAMES, LimitChanges, RequestAllowance
from services.scheduler.postgres import QUERIES
from tests.fakes.callers import by
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.memory.limits import InMemoryLimits
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = queue_limits(
    max_requests_per_minute=5, max_reads_per_minute=7, highest_priorities={"ann": Priority.NORMAL}
)
SECOND = timedelta(seconds=1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(params=["memory", "postgres"], loop_scope="module")
async def store(request: pytest.FixtureRequest, pool: asyncpg.Pool) -> LimitStore:
    if request.param == "memory":
        return InMemoryLimits(SETTINGS)
    await pool.execute("DELETE FROM limits; INSERT INTO limits DEFAULT VALUES")
    await pool.execute("TRUNCATE user_priorities, request_counts")
    return PostgresLimits(PostgresSession(pool, QUERIES), SETTINGS)


async def _read(query: str, text: str, transaction: PostgresTransaction) -> object:
    return await transaction.fetchval(query, text=text)


async def test_text_that_postgres_does_not_take_is_the_callers_mistake(pool: asyncpg.Pool) -> None:
    queries = {name: parse_query(name, f"SELECT :text::{name}") for name in ("text", "jsonb")}
    session = PostgresSession(pool, queries)
    for query, text in (("text", "a\0b"), ("jsonb", '"a\\u0000b"')):
        with pytest.raises(UnstorableText) as raised:
            await session.fetchval(query, text=text)
        assert raised.value.kind is ErrorKind.INVALID
        with pytest.raises(UnstorableText):
            await session.run(partial(_read, query, text))


async def test_limits_are_as_the_settings_say_until_they_are_changed(store: LimitStore) -> None:
    assert await store.limits() == SETTINGS
    changes = LimitChanges(max_running_runs=7, run_time_limit=timedelta(minutes=5), min_run_time=timedelta(0))
    changed = await store.change(changes, by())
    assert (changed.max_running_runs, changed.max_pending_runs_per_user) == (
        7,
        SETTINGS.max_pending_runs_per_user,
    )
    assert (changed.run_time_limit, changed.min_run_time) == (timedelta(minutes=5), timedelta(0))
    assert await store.change(LimitChanges(max_pending_runs_per_user=1), by()) == await store.limits()
    assert (await store.limits()).max_running_runs == 7


async def test_limits_go_back_to_the_settings_unless_they_are_changed_as_well(store: LimitStore) -> None:
    every = LimitChanges(7, 8, 9, timedelta(hours=5), timedelta(seconds=5), {"bob": Priority.LOW})
    await store.change(every, by())
    kept = {"max_running_runs", "min_run_time"}
    changed = await store.change(LimitChanges(min_run_time=SECOND, reset=frozenset(LIMIT_NAMES) - kept), by())
    assert changed == replace(SETTINGS, max_running_runs=7, min_run_time=SECOND)
    assert (
        await store.change(LimitChanges(reset=frozenset(LIMIT_NAMES)), by())
        == SETTINGS
        == await store.limits()
    )


async def test_projects_without_limit_are_so_whatever_the_settings_say(pool: asyncpg.Pool) -> None:
    await pool.execute("DELETE FROM limits; INSERT INTO limits DEFAULT VALUES")
    settings = replace(SETTINGS, max_stored_bytes_per_project=5)
    store = PostgresLimits(PostgresSession(pool, QUERIES), settings)
    unlimited = replace(settings, max_stored_bytes_per_project=0)
    changes = LimitChanges(max_stored_bytes_per_project=0)
    assert await ChangeLimits(store).change(changes, by()) == unlimited == await store.limits()
    reset = LimitChanges(reset=frozenset({"max_stored_bytes_per_project"}))
    assert await store.change(reset, by()) == settings


async def test_list_of_priorities_is_replaced_as_a_whole(store: LimitStore) -> None:
    await store.change(
        LimitChanges(highest_priorities={OTHER_USERS: Priority.LOW, "bob": Priority.HIGH}), by()
    )
    await store.change(LimitChanges(max_running_runs=1), by())
    limits = await store.limits()
    assert limits.allowed_priorities("ann") == (Priority.LOW,)
    assert limits.allowed_priorities("bob") == (Priority.HIGH, Priority.NORMAL, Priority.LOW)
    assert SETTINGS.allowed_priorities("ann") == (Priority.NORMAL, Priority.LOW)


async def test_request_beyond_the_limit_is_refused_until_the_minute_is_over(store: LimitStore) -> None:
    now = START.replace(second=48)
    assert [(await store.count_request("ann", now)).remaining for _ in range(5)] == [4, 3, 2, 1, 0]
    with pytest.raises(TooManyRequests) as refusal:
        await store.count_request("ann", now)
    assert refusal.value.facts == {"user": "ann", "limit": 5, "retry_after_seconds": 13}
    assert (await store.count_request("bob", now)).remaining == 4
    assert (await store.count_request("ann", now + 12 * SECOND)).remaining == 4


async def test_allowance_shows_the_limit_and_the_rest_of_the_minute(store: LimitStore) -> None:
    now = START.replace(second=48)
    assert await store.count_request("ann", now) == RequestAllowance(5, 4, 12 * SECOND)
    assert await store.count_request("ann", now, is_read=True) == RequestAllowance(7, 6, 12 * SECOND)


async def test_reads_have_a_limit_of_their_own(store: LimitStore) -> None:
    reads = [(await store.count_request("ann", START, is_read=True)).remaining for _ in range(7)]
    assert reads == [6, 5, 4, 3, 2, 1, 0]
    assert (await store.count_request("ann", START)).remaining == 4
    with pytest.raises(TooManyRequests) as refusal:
        await store.count_request("ann", START, is_read=True)
    assert refusal.value.facts["limit"] == 7
    assert (await store.count_request("ann", START)).remaining == 3


async def test_no_limit_of_reads_refuses_none(pool: asyncpg.Pool) -> None:
    limits = queue_limits(max_requests_per_minute=1, max_reads_per_minute=0)
    for store in (PostgresLimits(PostgresSession(pool, QUERIES), limits), InMemoryLimits(limits)):
        for _ in range(3):
            assert (await store.count_request("reader", START, is_read=True)).limit == 0


async def test_clock_that_is_behind_begins_no_new_minute(store: LimitStore) -> None:
    for _ in range(5):
        await store.count_request("ann", START)
    for now in (START - SECOND, START):
        with pytest.raises(TooManyRequests):
            await store.count_request("ann", now)


async def test_requests_at_the_same_time_are_all_counted(store: LimitStore) -> None:
    await store.change(LimitChanges(max_requests_per_minute=30), by())
    calls = [store.count_request("ann", START) for _ in range(40)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    left = [answer.remaining for answer in answers if isinstance(answer, RequestAllowance)]
    assert sorted(left) == list(range(30))


async def test_old_counts_are_forgotten_and_those_of_this_minute_stay(store: LimitStore) -> None:
    for _ in range(3):
        await store.count_request("ann", START)
    await store.delete_request_counts(START + 30 * SECOND)
    assert (await store.count_request("ann", START)).remaining == 1
    await store.delete_request_counts(START + 120 * SECOND)
    assert (await store.count_request("ann", START)).remaining == 4
