"""Errors of reports of budgets."""

from services.common.errors import DomainError, ErrorKind


class BudgetUseRefused(DomainError):
    """The use of a budget is not recorded: {problem}"""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"
