"""An order of rollouts as a row of the list of orders, and as the head of its grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.v1 import rollout_pb2, rollout_service_pb2
from proctor.wire.enums import word_of
from services.gateway.http.presentation import moment
from services.gateway.pages.runs_table import RunRow, run_row


@dataclass(frozen=True, slots=True)
class OrderRow:
    """An order, with its runs that are not deleted."""

    order_id: str
    suite: str
    suite_version: int
    agent: str
    tasks: int
    rollouts: int
    user: str
    created_at: datetime | None
    runs: Sequence[RunRow]

    @property
    def recorded(self) -> int:
        return sum(run.progress.completed for run in self.runs)

    @property
    def total(self) -> int:
        return self.tasks * self.rollouts * len(self.runs)


def order_row(order: rollout_service_pb2.RolloutsOrder) -> OrderRow:
    return OrderRow(
        order_id=order.order_id,
        suite=order.suite,
        suite_version=order.suite_version,
        agent=word_of(rollout_pb2.AgentKind, order.agent.kind),
        tasks=len(order.task_ids),
        rollouts=order.rollouts,
        user=order.user,
        created_at=moment(order.created_at),
        runs=[run_row(run) for run in order.runs],
    )
