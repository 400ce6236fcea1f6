"""Records what an execution of a rollout used, so that the next one has only the rest."""

from dataclasses import dataclass

from proctor.values.rollout import EarlierUse
from services.common.errors import DomainError, ErrorKind
from services.scheduler.rollouts.budgets.budget_report import MAX_EXECUTIONS, BudgetReport
from services.scheduler.rollouts.budgets.postgres import PostgresBudgets


class BudgetUseRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The use of a budget is not recorded: {problem}"""


@dataclass(frozen=True, slots=True)
class RecordBudgetUse:
    budgets: PostgresBudgets

    async def record(self, report: BudgetReport) -> EarlierUse:
        """Records the report. Returns the use of earlier executions. Raises `BudgetUseRefused`."""
        if problem := report.problem:
            raise BudgetUseRefused(problem=problem)
        earlier = await self.budgets.record(report)
        if earlier is None:
            raise BudgetUseRefused(
                problem=f"its run is finished, or its rollout has {MAX_EXECUTIONS} executions."
            )
        return earlier
