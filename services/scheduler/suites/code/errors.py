"""Errors of the code of tasks, each as one sentence for the user."""

from services.common.errors import ErrorKind
from services.scheduler.suites.errors import SuiteError


class TaskCodeOff(SuiteError, kind=ErrorKind.CONFLICT, reason="TASK_CODE_OFF"):
    """Task {task} has Python code ({keys}): set PROCTOR_SCHEDULER_TASK_CODE=sandbox to execute it here."""


class TaskCodeFailed(SuiteError, kind=ErrorKind.CONFLICT, reason="TASK_CODE_FAILED"):
    """The code of task {task} {problem}."""
