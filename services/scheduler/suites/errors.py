"""Errors of suites, their files and their rows, each as one sentence for the user."""

from collections.abc import Sequence
from pathlib import Path

from services.common.errors import DomainError, ErrorKind

# A sentence of a few lines; the error travels in a header of 8 KiB.
LISTED_CHARACTERS = 600


def listed(names: Sequence[str]) -> str:
    """Joins as many names as fit into a sentence, and says how many more there are."""
    shown, characters = 0, 0
    for name in names:
        characters += len(name) + 2
        if shown and characters > LISTED_CHARACTERS:
            break
        shown += 1
    more = f" and {len(names) - shown} more" if shown < len(names) else ""
    return f"{', '.join(names[:shown])}{more}" or "none"


class SuiteError(DomainError):
    """An error about a suite, one of its tasks, or their rows. Planning makes it the error of the run."""


class UnknownSuite(SuiteError, kind=ErrorKind.INVALID, reason="UNKNOWN_SUITE"):
    """Invalid benchmark suite. Supported: {supported}"""


class UnknownTask(SuiteError, kind=ErrorKind.INVALID, reason="UNKNOWN_TASK"):
    """Suite {suite} has no task {task}. Its tasks: {supported}."""


class InvalidSuiteFile(SuiteError, kind=ErrorKind.CONFLICT, reason="INVALID_SUITE_FILE"):
    """Invalid suite file {sentence}."""

    def __init__(self, file: Path, problem: str, field: str = "", line: int | None = None) -> None:
        location = str(file) if line is None else f"{file}, line {line}"
        sentence = f"{location}: {field + ': ' if field else ''}{problem.rstrip('.')}"
        super().__init__(sentence=sentence, file=str(file), line=line or 0, field=field)
        self.file = file
        self.problem = problem
        self.field = field
        self.line = line


class RowsUnavailable(SuiteError, kind=ErrorKind.CONFLICT, reason="ROWS_UNAVAILABLE"):
    """Failed to load {suite} dataset: {row_source}: {reasons}."""

    def __init__(self, suite: str, row_source: str, reasons: Sequence[str]) -> None:
        super().__init__(suite=suite.upper(), row_source=row_source, reasons="; ".join(reasons))


class InvalidRow(SuiteError, kind=ErrorKind.CONFLICT, reason="INVALID_ROW"):
    """Task {task!r}, row {doc_id} (from 0): {problem}."""

    def __init__(self, task: str, doc_id: int, problem: str, field: str = "") -> None:
        """`field` is the column at fault if known."""
        super().__init__(task=task, doc_id=doc_id, problem=problem, field=field)


class NoRows(SuiteError, kind=ErrorKind.CONFLICT, reason="ROWS_UNAVAILABLE"):
    """Task {task!r} has no rows."""


class FewshotPoolTooSmall(SuiteError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Task {task!r} cannot show {num_fewshot} few-shot examples: it has {pool_size} rows for them."""


class NoFewshotPool(SuiteError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Task {task!r} names no few-shot split, so it can only be asked with 0 examples."""


class UnknownDatasetMetric(SuiteError, kind=ErrorKind.INVALID, reason="UNKNOWN_METRIC"):
    """No metric {metric!r:.80} for a data set. Supported: {supported}."""


class InvalidMetric(SuiteError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Metric {metric!r}: {sentence}."""

    def __init__(self, metric: str, problem: str, option: str = "") -> None:
        sentence = f"{option + ': ' if option else ''}{problem.rstrip('.')}"
        super().__init__(field="order.metrics", metric=metric, option=option, sentence=sentence)


class SuiteInUse(DomainError, kind=ErrorKind.CONFLICT, reason="SUITE_IN_USE"):
    """Version {version} of the suite {suite} was used by a run, so it stays. Add a new version instead."""


class SuiteVersionNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="UNKNOWN_SUITE"):
    """There is no version {version} of {suite} to delete. Of users' suites there are: {others}."""


class SuiteInstalled(DomainError, kind=ErrorKind.CONFLICT, reason="SUITE_INSTALLED"):
    """{suite} is an installed suite: what it is stands in its files in the folder of suites only."""


class RowNotFound(DomainError, kind=ErrorKind.INVALID, reason="ROW_NOT_FOUND"):
    """Task {task} has no row {doc_id}: it has {rows} rows, counted from 0."""


class ShowingTooSlow(DomainError, kind=ErrorKind.CONFLICT, reason="SHOWING_TOO_SLOW"):
    """Rendering task {task} up to row {doc_id} took over {seconds} s. Choose an earlier row."""
