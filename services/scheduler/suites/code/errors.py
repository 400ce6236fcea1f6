"""Errors of the code of tasks, each as one sentence for the user."""

from services.common.errors import ErrorKind
from services.scheduler.suites.errors import SuiteError


class TaskCodeOff(SuiteError, kind=ErrorKind.CONFLICT, reason="TASK_CODE_OFF"):
    """Task {task} has Python code ({keys}): set PROCTOR_TASK_CODE=sandbox to execute it here."""


class TaskCodeFailed(SuiteError, kind=ErrorKind.CONFLICT, reason="TASK_CODE_FAILED"):
    """The code of task {task} {problem}."""


def code_failed(task: str, problem: str) -> TaskCodeFailed:
    """`problem` may quote the code, which may say what no table takes: NUL, or a lone surrogate."""
    return TaskCodeFailed(
        task=task, problem="".join(each if each.isprintable() else "\ufffd" for each in problem)
    )
