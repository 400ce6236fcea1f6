"""What comes of reading a suite: the suite, or what is wrong with it."""

from dataclasses import dataclass
from pathlib import Path

from services.scheduler.suites.format.suite_document import SuiteProblem
from services.scheduler.suites.suite_errors import InvalidSuiteFile
from services.scheduler.suites.task_definition import SuiteDefinition


@dataclass(frozen=True, slots=True)
class SuiteReading:
    """`problems` in the order of the lines; where there are any, there is no suite."""

    suite: SuiteDefinition | None
    problems: tuple[SuiteProblem, ...]

    def error(self, document_name: str) -> InvalidSuiteFile:
        """The first of the problems, of which there are some."""
        first = self.problems[0]
        file = Path(first.file or document_name)
        return InvalidSuiteFile(file, first.problem, first.key, first.line or None)
