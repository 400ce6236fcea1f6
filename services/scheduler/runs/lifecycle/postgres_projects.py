"""What a declared project allows: its open runs, what is left of its budget, and that little is left."""

import math
from dataclasses import replace
from datetime import UTC, datetime

from proctor.values.names.notices import BUDGET_SHARE
from proctor.values.names.project import is_declared
from proctor.values.run import RunId
from services.common.errors import ProjectNotFound
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.notices.postgres import record_event
from services.scheduler.projects.errors import ProjectBudgetUsed, ProjectFull
from services.scheduler.projects.project import Budget, ProjectUse, tightest_budget
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.run_events import project_budget_nearly_spent

# Goes out with `ProjectFull`, as with a full queue.
_RETRY_AFTER_SECONDS = 30
_LOWER = "Order with a max_cost within it, or ask an operator for more."
_WAIT = "Wait until open runs end, or ask an operator for more."


async def tell_of_budgets(transaction: PostgresTransaction, run: Run) -> None:
    """Notes once of each budget of the run's project that its closed runs have spent most of it."""
    project_id, at = run.order.project_id, run.finished_at or run.created_at
    project = await transaction.fetchrow("find_project", project_id=project_id, name="")
    costs = await transaction.fetchrow("read_project_costs", project_id=project_id, now=at)
    if project is None or costs is None:
        return
    of_all = (
        (project["max_cost"], "in all", costs["cost"]),
        (project["max_cost_per_month"], f"in {at.astimezone(UTC):%Y-%m}", costs["cost_this_month"]),
    )
    for most, period, cost in of_all:
        if most is not None and cost >= BUDGET_SHARE * most:
            budget = Budget(most, period, cost, max(most - cost, 0.0))
            await record_event(transaction, project_budget_nearly_spent(run, project["name"], budget, at))


class PostgresProjectUses:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def use(self, project_id: int, now: datetime) -> ProjectUse:
        return await _read_use(self._session, project_id, now)


async def _read_use(
    session: PostgresSession | PostgresTransaction,
    project_id: int,
    now: datetime,
    leaving_out: RunId | None = None,
) -> ProjectUse:
    """What a project uses, without one of its runs."""
    costs = await session.fetchrow("read_project_costs", project_id=project_id, now=now)
    open_runs = await session.fetchrow("read_open_runs", project_id=project_id, leaving_out=leaving_out)
    assert costs
    assert open_runs
    return ProjectUse(**costs, **open_runs)


async def within_project(
    transaction: PostgresTransaction, run: Run, now: datetime, *, sharing: int = 1
) -> Run:
    """The run as its project admits it: without a max_cost it may cost what is left of the budget.

    So many runs of one order share that, of which this is the first. It may be stored already, as one that is
    retried. Raises `ProjectFull`, `ProjectBudgetUsed` or
    `ProjectNotFound`.
    """
    project_id, wanted = run.order.project_id, run.order.max_cost
    if not is_declared(project_id):
        return run
    limits = await transaction.fetchrow("lock_project_limits", project_id=project_id)
    if limits is None:
        raise ProjectNotFound
    use = await _read_use(transaction, project_id, now, leaving_out=run.run_id)
    most = limits["max_open_runs"]
    if most is not None and use.open_runs >= most:
        raise ProjectFull(name=limits["name"], limit=most, retry_after_seconds=_RETRY_AFTER_SECONDS)
    budget = tightest_budget(limits["max_cost"], limits["max_cost_per_month"], use)
    # What has no price costs nothing by our count.
    if budget is None or run.price is None or not run.price.is_above_zero:
        return run
    # What a retried run has cost is spent already.
    counted = await transaction.fetchval("read_counted_cost", run_id=run.run_id) or 0.0
    more = 0.0 if wanted is None else wanted - counted
    # Three tenths of what three may share are no more than is left, whatever they sum up to.
    if budget.left <= 0 or (more > budget.left and not math.isclose(more, budget.left)):
        shown = {name: f"{getattr(budget, name):.6g}" for name in ("budget", "left", "cost")}
        raise ProjectBudgetUsed(
            name=limits["name"],
            period=budget.period,
            reserved=f"{use.reserved:.6g}",
            advice=_LOWER if budget.left else _WAIT,
            **shown,
        )
    if wanted is not None:
        return run
    return replace(run, order=replace(run.order, max_cost=counted + budget.left / sharing))
