"""Errors of task folders. Each names the task, the file and the field."""

from collections.abc import Sequence

from services.common.errors import DomainError, ErrorKind

# The most that a message names; `proctor rollouts check` shows all.
_SHOWN = 20


class TaskError(DomainError, kind=ErrorKind.INVALID, reason="INVALID_TASK_FOLDER"):
    """A fault in a set of tasks."""


class InvalidTask(TaskError):
    """The task {task} is invalid: {location}: {problem}"""

    def __init__(self, task: str, file: str, problem: str, field: str = "") -> None:
        location = f"{file}, {field}" if field else file
        super().__init__(task=task, location=location, problem=problem, file=file, field=field)


class UnsupportedTask(TaskError):
    """The task {task} needs what is not supported: {what}. {advice}"""


class InvalidTasks(TaskError):
    """{count} tasks cannot be read: {problems}"""

    def __init__(self, errors: Sequence[TaskError]) -> None:
        super().__init__(count=len(errors), problems=" ".join(map(str, errors[:_SHOWN])))


class UnsafeFolder(TaskError):
    """{path} cannot be read as tasks: {problem}"""


class NoTasks(TaskError):
    """{path} holds no task: a task is a folder with tb_meta.json, task.toml or task.yaml in it."""
