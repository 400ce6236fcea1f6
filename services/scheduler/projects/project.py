"""A declared project and its members."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.values.names.user import Role

# Roles in a project. An operator has all of them everywhere.
ROLES = (Role.VIEWER, Role.RUNNER, Role.MAINTAINER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    project_id: int
    name: str
    note: str
    created_by: str
    created_at: datetime
    max_open_runs: int | None = None
    max_cost: float | None = None
    max_cost_per_month: float | None = None
    archive_after_days: int | None = None
    archive_over_bytes: int | None = None
    is_shared: bool = False


# Limits that can be taken away again.
LIMITS = ("max_open_runs", "max_cost", "max_cost_per_month", "archive_after_days", "archive_over_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectChanges:
    """None leaves it as it is. Limits that are named in `reset` are taken away, unless they are given too."""

    name: str | None = None
    note: str | None = None
    max_open_runs: int | None = None
    max_cost: float | None = None
    max_cost_per_month: float | None = None
    archive_after_days: int | None = None
    archive_over_bytes: int | None = None
    is_shared: bool | None = None
    reset: tuple[str, ...] = ()

    @property
    def is_of_operators(self) -> bool:
        """Whether it changes a limit, or who sees the project."""
        limits = (getattr(self, name) for name in (*LIMITS, "is_shared"))
        return bool(self.reset) or any(value is not None for value in limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUse:
    """What it uses of its limits. `cost` is of closed runs; open ones may cost `reserved` more."""

    open_runs: int
    cost: float
    cost_this_month: float
    reserved: float


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a project of which least is left. `period` is a word of sentences."""

    budget: float
    period: str
    cost: float
    left: float


def tightest_budget(
    max_cost: float | None, max_cost_per_month: float | None, use: ProjectUse
) -> Budget | None:
    """None where nothing limits the cost."""
    of_all = ((max_cost, "in all", use.cost), (max_cost_per_month, "a month", use.cost_this_month))
    budgets = [
        Budget(budget, period, cost, max(budget - cost - use.reserved, 0.0))
        for budget, period, cost in of_all
        if budget is not None
    ]
    return min(budgets, key=lambda each: each.left, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    user: str
    role: Role
    changed_by: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class KnownMember:
    """What gateways follow. `role` is None for one that was removed."""

    project_id: int
    user: str
    role: Role | None


@dataclass(frozen=True, slots=True)
class KnownProject:
    """What gateways follow, so that they show names in the place of numbers."""

    project_id: int
    name: str


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """By name. `last` is the last name; None on the last page."""

    projects: Sequence[Project]
    last: str | None
