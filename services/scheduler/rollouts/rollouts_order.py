"""Orders of rollouts as they are stored, and lists of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.values.rollout import RolloutAgent
from proctor.values.run import RunId, RunState
from services.common.errors import DomainError, ErrorKind


class RolloutsOrderNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="ROLLOUTS_ORDER_NOT_FOUND"):
    """There is no order of rollouts {order_id}; perhaps its runs were deleted. List the orders there are."""


class RolloutsOrderOfRunNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="ROLLOUTS_ORDER_NOT_FOUND"):
    """No order of rollouts submitted the run {run_id}. List the orders there are."""


@dataclass(frozen=True, slots=True)
class RolloutsOrder:
    """`suite` in its version is that of its runs; `models` and `run_ids` belong together.

    The index of a task in `task_ids` is the row of its samples.
    """

    order_id: str
    suite: str
    suite_version: int
    user: str
    project_id: int
    agent: RolloutAgent
    rollouts: int
    task_ids: tuple[str, ...]
    models: tuple[str, ...]
    run_ids: tuple[RunId, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OrderFilter:
    """Unset fields filter nothing. `state` is that of at least one run."""

    suite: str = ""
    suite_version: int | None = None
    model: str = ""
    project_id: int | None = None
    state: RunState | None = None


@dataclass(frozen=True, slots=True)
class OrderCursor:
    """The last order of a page: the next one begins behind it. `total` is what the first page counted."""

    created_at: datetime
    order_id: str
    total: int


@dataclass(frozen=True, slots=True)
class OrderPage:
    """`total` counts what matches over all pages, as it was at the first of them."""

    orders: Sequence[RolloutsOrder]
    total: int
