"""Orders of rollouts in Postgres: kept once, listed by keys, gone with the last of their runs."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.rollout import AgentKind, RolloutAgent
from proctor.values.run import RunState
from proctor.values.usage import ModelPrice
from services.common.postgres import PostgresSession
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES
from services.scheduler.rollouts.postgres import PostgresRolloutsOrders
from services.scheduler.rollouts.rollouts_order import (
    OrderCursor,
    OrderFilter,
    RolloutsOrder,
    RolloutsOrderNotFound,
    RolloutsOrderOfRunNotFound,
)
from services.scheduler.runs.lifecycle.errors import QueueFull
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.suites.errors import UnknownSuite
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import empty_stores, new_run
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler_rules import queue_limits

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = RolloutAgent(AgentKind.ORACLE, max_steps=7)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def _empty(pool: asyncpg.Pool) -> None:
    await empty_stores(pool)
    await pool.execute("DELETE FROM user_suite_versions; DELETE FROM user_suites")
    await pool.execute("INSERT INTO user_suites (suite, last_version) VALUES ('mine', 2)")
    await pool.execute(
        "INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at)"
        " SELECT 'mine', version, version, '', 'mine.yaml', 'ann', now()"
        " FROM generate_series(1, 2) AS version"
    )


@pytest.fixture
def orders(pool: asyncpg.Pool) -> PostgresRolloutsOrders:
    return orders_in(pool)


def orders_in(pool: asyncpg.Pool, **limits: int) -> PostgresRolloutsOrders:
    session = PostgresSession(pool, QUERIES)
    return PostgresRolloutsOrders(
        session, PostgresRuns(session, PostgresLimits(session, queue_limits(**limits)))
    )


async def ordered(orders: PostgresRolloutsOrders, age: int = 0, **changes: object) -> RolloutsOrder:
    """An order of two models, whose runs are stored."""
    runs = [new_run(age, model=model) for model in ("openai/fake", "openai/other")]
    order = RolloutsOrder(
        order_id=str(uuid4()),
        suite="mine",
        suite_version=1,
        user="ann",
        project_id=7,
        agent=AGENT,
        rollouts=3,
        task_ids=("one", "two"),
        models=tuple(run.order.model for run in runs),
        run_ids=tuple(run.run_id for run in runs),
        created_at=START + timedelta(seconds=age),
    )
    order = replace(order, **changes)  # type: ignore[arg-type]  # names are checked
    await orders.add(order, runs)
    return order


async def test_an_order_is_stored_with_all_of_its_runs_or_not_at_all(
    pool: asyncpg.Pool, orders: PostgresRolloutsOrders
) -> None:
    # The second of its two runs is one too many.
    crowded, order_id = orders_in(pool, max_pending_runs_per_user=1), str(uuid4())
    with pytest.raises(QueueFull):
        await ordered(crowded, order_id=order_id)
    assert await pool.fetchval("SELECT count(*) FROM runs") == 0
    assert await pool.fetchval("SELECT count(*) FROM rollouts_orders WHERE order_id = $1", order_id) == 0
    kept = await ordered(orders, order_id=order_id)
    assert {run.run_id for run in await orders.runs([kept])} == set(kept.run_ids)


async def test_a_repeated_order_finds_its_runs_though_the_queue_is_full(
    pool: asyncpg.Pool, orders: PostgresRolloutsOrders
) -> None:
    order = await ordered(orders)
    runs = await orders.runs([order])
    again = await orders_in(pool, max_pending_runs_per_user=1).add(order, runs)
    assert {run.run_id for run in again} == set(order.run_ids)


async def test_runs_of_an_order_share_what_is_left_of_a_budget(
    pool: asyncpg.Pool, orders: PostgresRolloutsOrders
) -> None:
    project_id = await pool.fetchval(
        "INSERT INTO projects (name, note, created_by, created_at, request_id, max_cost, version)"
        " VALUES ('plans', '', 'olga', now(), gen_random_uuid(), 12, 0) RETURNING project_id"
    )
    price = ModelPrice(input_per_million=1, output_per_million=1)
    runs = [replace(new_run(project_id=project_id), price=price) for _ in range(3)]
    ids = tuple(run.run_id for run in runs)
    order = replace(await ordered(orders), order_id=str(uuid4()), project_id=project_id, run_ids=ids)
    await orders.add(order, runs)
    assert [run.order.max_cost for run in await orders.runs([order])] == [4, 4, 4]


async def test_an_order_is_kept_as_it_is_with_its_runs(orders: PostgresRolloutsOrders) -> None:
    order = await ordered(orders)
    assert await orders.get(order.order_id) == order
    assert {run.run_id for run in await orders.runs([order])} == set(order.run_ids)


async def test_a_repeated_order_changes_nothing(orders: PostgresRolloutsOrders) -> None:
    order = await ordered(orders)
    await orders.add(replace(order, suite_version=2, task_ids=("three",)), [])
    assert await orders.get(order.order_id) == order


async def test_an_order_without_a_run_is_not_shown_and_can_be_ordered_anew(
    orders: PostgresRolloutsOrders,
) -> None:
    refused = RolloutsOrder(
        str(uuid4()), "mine", 1, "ann", 0, AGENT, 1, ("one",), ("openai/fake",), (new_run().run_id,), START
    )
    await orders.add(refused, [])
    with pytest.raises(RolloutsOrderNotFound):
        await orders.get(refused.order_id)
    assert (await orders.page(OrderFilter(), 10, None)).total == 0
    again = await ordered(orders, order_id=refused.order_id)
    assert await orders.get(refused.order_id) == again


async def test_the_order_of_a_run_is_found_while_the_run_is_there(
    pool: asyncpg.Pool, orders: PostgresRolloutsOrders
) -> None:
    first, second = await ordered(orders, 1), await ordered(orders, 2)
    assert [await orders.of_run(run_id) for run_id in first.run_ids] == [first, first]
    assert await orders.of_run(second.run_ids[1]) == second
    gone, left = first.run_ids
    await pool.execute("DELETE FROM runs WHERE run_id = $1", gone)
    assert await orders.of_run(left) == first
    for run_id in (gone, new_run().run_id):
        with pytest.raises(RolloutsOrderOfRunNotFound):
            await orders.of_run(run_id)


async def test_an_order_of_a_version_that_is_gone_is_refused(orders: PostgresRolloutsOrders) -> None:
    with pytest.raises(UnknownSuite, match="other versions of mine"):
        await ordered(orders, suite_version=9)


async def test_pages_are_by_keys_and_newest_first(orders: PostgresRolloutsOrders) -> None:
    # Two of one time: the id decides.
    known = [await ordered(orders, age) for age in (1, 2, 2, 3, 4)]
    expected = sorted(known, key=lambda order: (order.created_at, order.order_id), reverse=True)
    seen: list[RolloutsOrder] = []
    after = None
    while len(page := (await orders.page(OrderFilter(), 2, after)).orders):
        seen += page
        after = OrderCursor(page[-1].created_at, page[-1].order_id, total=5)
    assert seen == expected


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (OrderFilter(suite="mine"), {1, 2, 3}),
        (OrderFilter(suite="mine", suite_version=2), {2}),
        (OrderFilter(suite="other"), set()),
        (OrderFilter(model="openai/other"), {1, 2}),
        (OrderFilter(project_id=9), {3}),
        (OrderFilter(state=RunState.PENDING), {1, 2, 3}),
        (OrderFilter(state=RunState.COMPLETED), set()),
    ],
)
async def test_orders_are_filtered(
    orders: PostgresRolloutsOrders, wanted: OrderFilter, found: set[int]
) -> None:
    await ordered(orders, 1)
    await ordered(orders, 2, suite_version=2)
    await ordered(orders, 3, project_id=9, models=("openai/fake", "openai/third"))
    page = await orders.page(wanted, 10, None)
    assert {(order.created_at - START).seconds for order in page.orders} == found
    assert page.total == len(found)


async def test_a_deleted_version_takes_its_orders_along(
    pool: asyncpg.Pool, orders: PostgresRolloutsOrders
) -> None:
    order = await ordered(orders)
    await pool.execute("DELETE FROM runs")
    await pool.execute("DELETE FROM user_suite_versions WHERE suite = 'mine' AND version = 1")
    assert (
        await pool.fetchval("SELECT count(*) FROM rollouts_orders WHERE order_id = $1", order.order_id) == 0
    )
