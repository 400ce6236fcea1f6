"""Shows orders of rollouts with their runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.run import RunId
from services.scheduler.rollouts.postgres import PostgresRolloutsOrders
from services.scheduler.rollouts.rollouts_order import OrderCursor, OrderFilter, RolloutsOrder
from services.scheduler.runs.reads.list_runs import ListRuns
from services.scheduler.runs.reads.run_snapshot import RunSnapshot


@dataclass(frozen=True, slots=True)
class RolloutsOrderView:
    """`runs` are those that are not deleted, in the order of the models."""

    order: RolloutsOrder
    runs: Sequence[RunSnapshot]


@dataclass(frozen=True, slots=True)
class RolloutsOrderViews:
    """`total` counts what matches over all pages, as it was at the first of them."""

    orders: Sequence[RolloutsOrderView]
    total: int


@dataclass(frozen=True, slots=True)
class ShowOrders:
    orders: PostgresRolloutsOrders
    list_runs: ListRuns

    async def show(self, order_id: str) -> RolloutsOrderView:
        """Raises `RolloutsOrderNotFound`."""
        [shown] = await self._with_runs([await self.orders.get(order_id)])
        return shown

    async def show_of_run(self, run_id: RunId) -> RolloutsOrderView:
        """Raises `RolloutsOrderOfRunNotFound`."""
        [shown] = await self._with_runs([await self.orders.of_run(run_id)])
        return shown

    async def list_page(
        self, wanted: OrderFilter, size: int, after: OrderCursor | None
    ) -> RolloutsOrderViews:
        page = await self.orders.page(wanted, size, after)
        return RolloutsOrderViews(await self._with_runs(page.orders), page.total)

    async def _with_runs(self, orders: Sequence[RolloutsOrder]) -> Sequence[RolloutsOrderView]:
        snapshots = await self.list_runs.show_brief(await self.orders.runs(orders))
        by_id = {snapshot.run.run_id: snapshot for snapshot in snapshots}
        return [
            RolloutsOrderView(order, [by_id[run_id] for run_id in order.run_ids if run_id in by_id])
            for order in orders
        ]
