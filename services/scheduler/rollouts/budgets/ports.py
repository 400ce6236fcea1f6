"""Port of budgets: the record of what executions of rollouts used."""

from typing import Protocol

from services.scheduler.rollouts.budgets.budget_report import BudgetReport, EarlierUse


class BudgetStore(Protocol):
    async def record(self, report: BudgetReport) -> EarlierUse | None:
        """Replaces what the execution reported before.

        None, and nothing is recorded, where the run is gone, over or in another epoch, or the rollout has
        `MAX_EXECUTIONS` others.
        """
        ...
