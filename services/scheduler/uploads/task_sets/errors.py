"""Errors of sets of tasks."""

from services.common.errors import DomainError, ErrorKind
from services.scheduler.uploads.task_sets.task_set import CheckedTasks


class TasksRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_TASK_FOLDER"):
    """{problem}"""

    def __init__(self, checked: CheckedTasks) -> None:
        super().__init__(problem=checked.problem)
        self.facts = dict(checked.facts)
