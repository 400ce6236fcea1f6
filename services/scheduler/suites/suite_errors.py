"""What can be wrong with a suite, its files or its rows, each as one sentence for the user."""

from collections.abc import Sequence
from pathlib import Path

LISTED_LETTERS = 600


def listed(names: Sequence[str]) -> str:
    """As many as a sentence may hold, and how many more there are."""
    shown, letters = 0, 0
    for name in names:
        letters += len(name) + 2
        if shown and letters > LISTED_LETTERS:
            break
        shown += 1
    more = f" and {len(names) - shown} more" if shown < len(names) else ""
    return f"{', '.join(names[:shown])}{more}" or "none"


class SuiteError(Exception):
    """Something is wrong with a suite, one of its tasks, or their rows."""


class UnknownSuite(SuiteError):
    """No suite has this name; the message names those there are."""

    def __init__(self, suite: str, supported: Sequence[str]) -> None:
        super().__init__(f"Unknown suite {suite!r}. Supported: {listed(supported)}.")
        self.suite = suite
        self.supported = tuple(supported)


class UnknownTask(SuiteError):
    """The suite has no task of this name; the message names those it has."""

    def __init__(self, suite: str, task: str, supported: Sequence[str]) -> None:
        super().__init__(f"Suite {suite!r} has no task {task!r}. Its tasks: {listed(supported)}.")
        self.suite = suite
        self.task = task
        self.supported = tuple(supported)


class InvalidSuiteFile(SuiteError):
    """A file of a suite does not follow the format: which file, which line and key, and what is wrong."""

    def __init__(self, file: Path, problem: str, key: str = "", line: int | None = None) -> None:
        place = str(file) if line is None else f"{file}, line {line}"
        super().__init__(f"Invalid suite file {place}: {key + ': ' if key else ''}{problem.rstrip('.')}.")
        self.file = file
        self.problem = problem
        self.key = key
        self.line = line


class DatasetUnavailable(SuiteError):
    """The rows of a task are nowhere to be had; the message names every place tried."""

    def __init__(self, suite: str, dataset: str, reasons: Sequence[str]) -> None:
        super().__init__(f"Failed to load {suite.upper()} dataset: {dataset}: {'; '.join(reasons)}.")
        self.suite = suite
        self.dataset = dataset
        self.reasons = tuple(reasons)


class InvalidRow(SuiteError):
    """A row cannot be made into a sample: which task, which row (counted from 1), which field, and why."""

    def __init__(self, task: str, row: int, problem: str, field: str = "") -> None:
        super().__init__(f"Task {task!r}, row {row}: {problem}.")
        self.task = task
        self.row = row
        self.field = field
        self.problem = problem


class NoRows(SuiteError):
    """The data set of a task is there and empty: a run over nothing would tell nothing."""

    def __init__(self, task: str) -> None:
        super().__init__(f"Task {task!r} has no rows.")
        self.task = task


class FewshotPoolTooSmall(SuiteError):
    """More few-shot examples are asked for than the task's pool can give."""

    def __init__(self, task: str, num_fewshot: int, pool_size: int) -> None:
        super().__init__(
            f"Task {task!r} cannot show {num_fewshot} few-shot examples: its pool has {pool_size} rows."
        )
        self.task = task
        self.num_fewshot = num_fewshot
        self.pool_size = pool_size


class NoFewshotPool(SuiteError):
    """The task declares no split to draw few-shot examples from."""

    def __init__(self, task: str) -> None:
        super().__init__(f"Task {task!r} names no few-shot split, so it can only be asked with 0 examples.")
        self.task = task


class UnknownMetric(SuiteError):
    """No metric has this name, or it cannot be had here; the message names those that can."""

    def __init__(self, metric: str, supported: Sequence[str]) -> None:
        super().__init__(f"No metric {metric!r:.80} for a data set. Supported: {listed(supported)}.")
        self.metric = metric[:LISTED_LETTERS]
        self.supported = tuple(supported)


class InvalidMetric(SuiteError):
    """A metric cannot be used as it was ordered: which one, which option, and what is wrong."""

    def __init__(self, metric: str, problem: str, option: str = "") -> None:
        super().__init__(f"Metric {metric!r}: {option + ': ' if option else ''}{problem.rstrip('.')}.")
        self.metric = metric
        self.option = option
        self.problem = problem
