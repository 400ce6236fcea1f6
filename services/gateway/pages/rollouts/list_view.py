"""Views of the list of orders for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1 import rollout_pb2, run_pb2
from proctor.v1 import rollout_service_pb2 as rollouts_pb2
from proctor.wire.enums import word_of, words_of
from services.gateway.http.presentation import moment
from services.gateway.pages.runs_table import RunRow, run_row

STATES = words_of(run_pb2.RunState)
LIVE = frozenset({"pending", "running"})


@dataclass(frozen=True, slots=True)
class OrderRow:
    """An order, with its runs that are not deleted."""

    order_id: str
    name: str
    version: int
    agent: str
    tasks: int
    rollouts: int
    user: str
    created_at: datetime | None
    runs: Sequence[RunRow]

    @property
    def completed(self) -> int:
        return sum(run.completed for run in self.runs)

    @property
    def total(self) -> int:
        return self.tasks * self.rollouts * len(self.runs)


@dataclass(frozen=True, slots=True)
class OrderListView:
    """A page of orders; `filters` are those of its address, without empty ones."""

    rows: Sequence[OrderRow]
    total: int
    following: str
    filters: Mapping[str, str]
    now: datetime

    def link(self, **changes: str) -> str:
        """The address of the list with other filters, from its first page."""
        kept = {name: value for name, value in {**self.filters, "after": "", **changes}.items() if value}
        return f"/rollouts?{urlencode(kept)}" if kept else "/rollouts"

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    @property
    def is_filtered(self) -> bool:
        return any(name != "after" for name in self.filters)

    @property
    def has_live(self) -> bool:
        return any(run.state in LIVE for row in self.rows for run in row.runs)


def order_row(order: rollouts_pb2.RolloutsOrder) -> OrderRow:
    return OrderRow(
        order_id=order.order_id,
        name=order.name,
        version=order.suite_version,
        agent=word_of(rollout_pb2.AgentKind, order.agent.kind),
        tasks=len(order.task_ids),
        rollouts=order.rollouts,
        user=order.user,
        created_at=moment(order.created_at),
        runs=[run_row(run) for run in order.runs],
    )


def order_list_view(
    listed: rollouts_pb2.ListRolloutsResponse, filters: Mapping[str, str], now: datetime
) -> OrderListView:
    given = {name: value for name, value in filters.items() if value}
    rows = [order_row(order) for order in listed.orders]
    return OrderListView(rows, listed.total, listed.next_page_token, given, now)
