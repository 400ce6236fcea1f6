"""Ports of orders of rollouts: the writer of their suites, and their store."""

from collections.abc import Callable, Sequence
from typing import Protocol

from proctor.values.rollout import RolloutAgent, RolloutTask
from proctor.values.run import RunId
from services.scheduler.rollouts.rollouts_order import OrderCursor, OrderFilter, OrderPage, RolloutsOrder
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.suites.format.suite_document import SuiteDocument

# The suite of a name with one task, whose rows are rollouts.
WriteSuite = Callable[[str, Sequence[RolloutTask], RolloutAgent], SuiteDocument]


class RolloutsOrderStore(Protocol):
    """Orders without a run, because it was refused or deleted, are not shown."""

    async def add(self, order: RolloutsOrder, runs: Sequence[Run]) -> Sequence[Run]:
        """Stores the order and all of its runs, or nothing; a repeated order finds the runs of the first.

        Raises `UnknownSuite`, and what refuses one of the runs, such as `QueueFull`.
        """
        ...

    async def get(self, order_id: str) -> RolloutsOrder:
        """Raises `RolloutsOrderNotFound`."""
        ...

    async def of_run(self, run_id: RunId) -> RolloutsOrder:
        """The order that submitted a run. Raises `RolloutsOrderOfRunNotFound`."""
        ...

    async def page(self, wanted: OrderFilter, size: int, after: OrderCursor | None) -> OrderPage: ...

    async def runs(self, orders: Sequence[RolloutsOrder]) -> Sequence[Run]:
        """Runs of the orders that are not deleted, in any order."""
        ...
