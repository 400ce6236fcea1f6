"""Errors of projects."""

from services.common.errors import DomainError, ErrorKind


class ProjectNameTaken(DomainError, kind=ErrorKind.CONFLICT, reason="PROJECT_NAME_TAKEN"):
    """Another project has the name {name}, or one that looks the same; choose another one."""


class ProjectFull(DomainError, kind=ErrorKind.EXHAUSTED, reason="PROJECT_FULL"):
    """Project {name} may have {limit} open runs, and has as many. Wait until one has ended."""


class ProjectBudgetUsed(DomainError, kind=ErrorKind.CONFLICT, reason="PROJECT_BUDGET_USED"):
    """Project {name} has {left} left of {budget} {period}: {cost} spent, {reserved} set aside. {advice}"""

    @property
    def may_pass(self) -> bool:
        """Whether open runs may leave something: what is set aside for them is not spent."""
        return float(str(self.facts["reserved"])) > 0


class TooManyProjects(DomainError, kind=ErrorKind.CONFLICT, reason="TOO_MANY_PROJECTS"):
    """There are {limit} {things} already, and gateways follow no more."""
