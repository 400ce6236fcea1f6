"""The port by which the code of a task is executed."""

from collections.abc import Generator, Iterator
from typing import Protocol

from services.scheduler.suites.rows.task_code import TaskCode


class CodeRunner(Protocol):
    def lines(self, code: TaskCode, rows: Iterator[bytes]) -> Generator[bytes, None, None]:
        """Lines that the code writes of lines of rows, as `inside.program` does. They are not trusted.

        Blocks; to be closed where it is not read to its end. Raises `TaskCodeFailed`.
        """
        ...
