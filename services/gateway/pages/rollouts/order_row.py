"""An order of rollouts as a row of the list of orders, and as the head of its grid."""

from datetime import datetime

from pydantic import BaseModel

from proctor.v1 import rollout_service_pb2
from proctor.wire.rollout_orders import row_rollouts
from services.gateway.api.rollouts import AgentShown
from services.gateway.http.presentation import present
from services.gateway.pages.rows.runs import RunRow, run_row


class OrderRow(BaseModel):
    """An order, with its runs that are not deleted."""

    order_id: str
    suite: str
    suite_version: int
    agent: AgentShown
    task_ids: list[str]
    rollouts: int
    total: int
    user: str
    created_at: datetime | None
    runs: list[RunRow]

    @property
    def tasks(self) -> int:
        return len(self.task_ids)

    @property
    def recorded(self) -> int:
        return sum(run.progress.completed for run in self.runs)

    @property
    def each(self) -> str:
        """Rollouts at each task, in words."""
        most = self.tasks * self.rollouts * len(self.runs)
        return f"{'up to ' if self.total < most else ''}{self.rollouts}"


def order_row(order: rollout_service_pb2.RolloutsOrder) -> OrderRow:
    total = sum(sum(row_rollouts(run.order, len(order.task_ids))) for run in order.runs)
    return present(OrderRow, order, total=total, runs=[run_row(run) for run in order.runs])
