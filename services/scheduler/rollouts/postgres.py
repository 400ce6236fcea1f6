"""Orders of rollouts in Postgres."""

from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg

from proctor.values.names.suite_name import versioned_name
from proctor.values.plain import MAX_COUNTED
from proctor.values.rollout import RolloutAgent
from proctor.values.run import RunId
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.rollouts.rollouts_order import (
    OrderCursor,
    OrderFilter,
    OrderPage,
    RolloutsOrder,
    RolloutsOrderNotFound,
    RolloutsOrderOfRunNotFound,
)
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.postgres_rows import from_json, run_from_row, to_json
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.suites.errors import UnknownSuite

# Newer than any order.
_BEFORE_ALL = OrderCursor(datetime(9999, 1, 1, tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff", total=0)


class PostgresRolloutsOrders:
    """Orders without a run, because it was refused or deleted, are not shown."""

    def __init__(self, session: PostgresSession, runs: PostgresRuns) -> None:
        self._session = session
        self._runs = runs

    async def add(self, order: RolloutsOrder, runs: Sequence[Run]) -> Sequence[Run]:
        """Stores the order and all of its runs, or nothing; a repeated order finds the runs of the first.

        Raises `UnknownSuite`, and what refuses one of the runs, such as `QueueFull`.
        """
        values = {
            "order_id": order.order_id,
            "username": order.user,
            "project_id": order.project_id,
            "suite": order.suite,
            "suite_version": order.suite_version,
            "agent": to_json(order.agent),
            "rollouts": order.rollouts,
            "task_ids": list(order.task_ids),
            "models": list(order.models),
            "run_ids": list(order.run_ids),
            "created_at": order.created_at,
        }

        async def add(transaction: PostgresTransaction) -> Sequence[Run]:
            if await transaction.fetchval("add_rollouts_order", **values):
                author = Author(order.user, order.created_at)
                change = Change(
                    author, Action.SUBMIT, ObjectKind.ROLLOUTS, order.order_id, order.suite, order.project_id
                )
                await record_change(transaction, change)
            return [
                await self._runs.add_in(transaction, run, request_id=run.run_id, sharing=left)
                for left, run in zip(range(len(runs), 0, -1), runs, strict=True)
            ]

        try:
            return await self._session.run(add)
        except asyncpg.ForeignKeyViolationError as error:
            # The version was deleted after it was added.
            suite = versioned_name(order.suite, order.suite_version)
            raise UnknownSuite(suite=suite, supported=f"other versions of {order.suite}") from error

    async def get(self, order_id: str) -> RolloutsOrder:
        """Raises `RolloutsOrderNotFound`."""
        row = await self._session.fetchrow("read_rollouts_order", order_id=order_id)
        if row is None:
            raise RolloutsOrderNotFound(order_id=order_id)
        return _order(row)

    async def of_run(self, run_id: RunId) -> RolloutsOrder:
        """The order that submitted a run. Raises `RolloutsOrderOfRunNotFound`."""
        row = await self._session.fetchrow("read_order_of_run", run_id=run_id)
        if row is None:
            raise RolloutsOrderOfRunNotFound(run_id=run_id)
        return _order(row)

    async def page(self, wanted: OrderFilter, size: int, after: OrderCursor | None) -> OrderPage:
        filters = {
            "suite": wanted.suite or None,
            "suite_version": wanted.suite_version,
            "model": wanted.model or None,
            "project_id": wanted.project_id,
            "state": wanted.state,
        }
        start = after or _BEFORE_ALL

        async def page(transaction: PostgresTransaction) -> OrderPage:
            await transaction.execute("plan_by_values")
            rows = await transaction.fetch(
                "list_rollouts_orders",
                **filters,
                before_created_at=start.created_at,
                before_order_id=start.order_id,
                limit=size,
            )
            counting = {**filters, "most": MAX_COUNTED + 1}
            total = after.total if after else await transaction.fetchval("count_rollouts_orders", **counting)
            return OrderPage([_order(row) for row in rows], total)

        return await self._session.run(page)

    async def runs(self, orders: Sequence[RolloutsOrder]) -> Sequence[Run]:
        """Runs of the orders that are not deleted, in any order."""
        run_ids = [run_id for order in orders for run_id in order.run_ids]
        return [
            run_from_row(row) for row in await self._session.fetch("list_runs_of_orders", run_ids=run_ids)
        ]


def _order(row: asyncpg.Record) -> RolloutsOrder:
    return RolloutsOrder(
        order_id=str(row["order_id"]),
        suite=row["suite"],
        suite_version=row["suite_version"],
        user=row["username"],
        project_id=row["project_id"],
        agent=from_json(RolloutAgent, row["agent"]) or RolloutAgent(),
        rollouts=row["rollouts"],
        task_ids=tuple(row["task_ids"]),
        models=tuple(row["models"]),
        run_ids=tuple(RunId(str(run_id)) for run_id in row["run_ids"]),
        created_at=row["created_at"],
    )
