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
from services.common.postgres import PostgresSession
from services.scheduler.postgres import QUERIES
from services.scheduler.rollouts.errors import NoRolloutsOfRun, RolloutsNotFound
from services.scheduler.rollouts.postgres import PostgresRolloutsOrders
from services.scheduler.rollouts.stored_order import OrderCursor, OrderFilter, StoredOrder
from services.scheduler.suites.errors import UnknownSuite
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import Stores, add, empty_stores, new_run
from tests.fakes.scheduler.surroundings import START

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = RolloutAgent(AgentKind.ORACLE, max_steps=7)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def stores(pool: asyncpg.Pool) -> Stores:
    stores = await empty_stores(pool)
    await pool.execute("DELETE FROM user_suite_versions; DELETE FROM user_suites")
    await pool.execute("INSERT INTO user_suites (suite, last_version) VALUES ('mine', 2)")
    await pool.execute(
        "INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at)"
        " SELECT 'mine', version, version, '', 'mine.yaml', 'ann', now()"
        " FROM generate_series(1, 2) AS version"
    )
    return stores


@pytest.fixture
def orders(pool: asyncpg.Pool) -> PostgresRolloutsOrders:
    return PostgresRolloutsOrders(PostgresSession(pool, QUERIES))


async def ordered(
    stores: Stores, orders: PostgresRolloutsOrders, age: int = 0, **changes: object
) -> StoredOrder:
    """An order of two models, whose runs are stored."""
    runs = [new_run(age, model=model) for model in ("openai/fake", "openai/other")]
    order = StoredOrder(
        order_id=str(uuid4()),
        name="mine",
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
    await orders.add(order)
    for run in runs:
        await add(stores, run)
    return order


async def test_an_order_is_kept_as_it_is_with_its_runs(
    stores: Stores, orders: PostgresRolloutsOrders
) -> None:
    order = await ordered(stores, orders)
    assert await orders.get(order.order_id) == order
    assert {run.run_id for run in await orders.runs([order])} == set(order.run_ids)


async def test_a_repeated_order_changes_nothing(stores: Stores, orders: PostgresRolloutsOrders) -> None:
    order = await ordered(stores, orders)
    await orders.add(replace(order, suite_version=2, task_ids=("three",)))
    assert await orders.get(order.order_id) == order


async def test_an_order_without_a_run_is_not_shown_and_can_be_ordered_anew(
    stores: Stores, orders: PostgresRolloutsOrders
) -> None:
    refused = StoredOrder(
        str(uuid4()), "mine", 1, "ann", 0, AGENT, 1, ("one",), ("openai/fake",), (new_run().run_id,), START
    )
    await orders.add(refused)
    with pytest.raises(RolloutsNotFound):
        await orders.get(refused.order_id)
    assert (await orders.page(OrderFilter(), 10, None)).total == 0
    again = await ordered(stores, orders, order_id=refused.order_id)
    assert await orders.get(refused.order_id) == again


async def test_the_order_of_a_run_is_found_while_the_run_is_there(
    pool: asyncpg.Pool, stores: Stores, orders: PostgresRolloutsOrders
) -> None:
    first, second = await ordered(stores, orders, 1), await ordered(stores, orders, 2)
    assert [await orders.of_run(run_id) for run_id in first.run_ids] == [first, first]
    assert await orders.of_run(second.run_ids[1]) == second
    gone, left = first.run_ids
    await pool.execute("DELETE FROM runs WHERE run_id = $1", gone)
    assert await orders.of_run(left) == first
    for run_id in (gone, new_run().run_id):
        with pytest.raises(NoRolloutsOfRun):
            await orders.of_run(run_id)


async def test_an_order_of_a_version_that_is_gone_is_refused(
    stores: Stores, orders: PostgresRolloutsOrders
) -> None:
    with pytest.raises(UnknownSuite, match="other versions of mine"):
        await ordered(stores, orders, suite_version=9)


async def test_pages_are_by_keys_and_newest_first(stores: Stores, orders: PostgresRolloutsOrders) -> None:
    # Two of one time: the id decides.
    known = [await ordered(stores, orders, age) for age in (1, 2, 2, 3, 4)]
    expected = sorted(known, key=lambda order: (order.created_at, order.order_id), reverse=True)
    seen: list[StoredOrder] = []
    after = None
    while len(page := (await orders.page(OrderFilter(), 2, after)).orders):
        seen += page
        after = OrderCursor(page[-1].created_at, page[-1].order_id, total=5)
    assert seen == expected


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (OrderFilter(name="mine"), {1, 2, 3}),
        (OrderFilter(name="mine", suite_version=2), {2}),
        (OrderFilter(name="other"), set()),
        (OrderFilter(model="openai/other"), {1, 2}),
        (OrderFilter(project_id=9), {3}),
        (OrderFilter(state=RunState.PENDING), {1, 2, 3}),
        (OrderFilter(state=RunState.COMPLETED), set()),
    ],
)
async def test_orders_are_filtered(
    stores: Stores, orders: PostgresRolloutsOrders, wanted: OrderFilter, found: set[int]
) -> None:
    await ordered(stores, orders, 1)
    await ordered(stores, orders, 2, suite_version=2)
    await ordered(stores, orders, 3, project_id=9, models=("openai/fake", "openai/third"))
    page = await orders.page(wanted, 10, None)
    assert {(order.created_at - START).seconds for order in page.orders} == found
    assert page.total == len(found)


async def test_a_deleted_version_takes_its_orders_along(
    pool: asyncpg.Pool, stores: Stores, orders: PostgresRolloutsOrders
) -> None:
    order = await ordered(stores, orders)
    await pool.execute("DELETE FROM runs")
    await pool.execute("DELETE FROM user_suite_versions WHERE suite = 'mine' AND version = 1")
    assert (
        await pool.fetchval("SELECT count(*) FROM rollouts_orders WHERE order_id = $1", order.order_id) == 0
    )
