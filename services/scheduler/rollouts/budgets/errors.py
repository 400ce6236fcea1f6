"""Errors of reports of budgets."""

from services.common.errors import DomainError, ErrorKind


class BudgetUseRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The use of a budget is not recorded: {problem}"""
