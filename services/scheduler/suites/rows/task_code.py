"""Python code of a task: the functions that make its rows, and the files that they need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PROCESS_DOCS = "process_docs"
# Of few-shot examples: a function without arguments that gives the rows.
SAMPLES = "samples"
# Of few-shot examples: a class that draws them for each row.
SAMPLER = "sampler"
# A function that gives all rows by their splits.
CUSTOM_DATASET = "custom_dataset"
ROW_MAKERS = frozenset({PROCESS_DOCS, SAMPLES, CUSTOM_DATASET})
# No name of a column that a file of rows may have: it is what a task file says.
_COLUMN_BEGIN = "!function "


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """`key` of the task names the function of a file, by the file's path in the suite's root."""

    key: str
    path: str
    function: str

    @property
    def reference(self) -> str:
        """As a task's scoring names it."""
        return f"{self.path}:{self.function}"

    @property
    def column(self) -> str:
        """The column that has what the function makes of a row."""
        return f"{_COLUMN_BEGIN}{self.reference}"


@dataclass(frozen=True, slots=True)
class TaskCode:
    """`files` by their paths in the suite's root, with those that they import.

    `arguments`: those of `custom_dataset`, as JSON.
    """

    task: str
    functions: Sequence[CodeFunction]
    files: Mapping[str, bytes]
    arguments: str = ""

    def column_of(self, key: str) -> str:
        return next(function.column for function in self.functions if function.key == key)

    @property
    def loads_rows(self) -> bool:
        """No data set has the rows: the code loads them, or makes them of nothing."""
        return any(function.key == CUSTOM_DATASET for function in self.functions)

    @property
    def makes_rows(self) -> bool:
        """The code makes the list of rows; otherwise it adds to each row."""
        return any(function.key in ROW_MAKERS for function in self.functions)


def is_code_column(name: str) -> bool:
    return name.startswith(_COLUMN_BEGIN)


def without_code(row: Mapping[str, object]) -> Mapping[str, object]:
    """The row without what code made of it."""
    return {name: value for name, value in row.items() if not is_code_column(name)}
