"""Rows that the code of a task makes: what follows takes them like rows of a file."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from services.common.sandboxes.task_code.answers import answers
from services.common.sandboxes.task_code.ports import CodeEnded, CodeRunner
from services.scheduler.suites.code.errors import TaskCodeFailed, TaskCodeOff, code_failed
from services.scheduler.suites.rows.errors import UnreadableRow
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow
from services.scheduler.suites.rows.task_code import ROW_MAKERS, TaskCode


@dataclass(frozen=True, slots=True)
class CodedRows:
    """`runner` None: the operator allows no code of tasks."""

    rows: RowSource
    runner: CodeRunner | None

    def open(self, reference: RowsReference) -> RowSet:
        """Raises `TaskCodeOff`; the rows raise `TaskCodeFailed`, and a few are read ahead."""
        code = reference.code
        if code is not None and self.runner is None:
            keys = ", ".join(function.key for function in code.functions)
            raise TaskCodeOff(task=code.task, keys=keys)
        found = _written(reference) if reference.is_written else self.rows.open(reference)
        if code is None or self.runner is None:
            return found
        return RowSet(_Coding(code, self.runner).rows(found.rows), found.provenance)


def _written(reference: RowsReference) -> RowSet:
    return RowSet(reference.samples, Provenance(str(reference), "", ""))


class _Coding:
    """The rows of one split. `_waiting` were sent and are to be answered, where the code keeps the rows."""

    def __init__(self, code: TaskCode, runner: CodeRunner) -> None:
        self._code = code
        self._runner = runner
        self._waiting: deque[SourceRow] = deque()
        self._columns = {
            function.key: function.column for function in code.functions if function.key not in ROW_MAKERS
        }

    def rows(self, source: Iterable[SourceRow]) -> Iterator[SourceRow]:
        try:
            with closing(self._runner.lines(self._code.files, self._sent(source))) as lines:
                for number, said in enumerate(answers(lines)):
                    yield {**self._row(said), **self._cells(said.get("made"), number)}
        except CodeEnded as ended:
            raise self._failed(str(ended)) from ended
        if self._waiting:
            raise self._failed("ended before its last row")

    def _sent(self, source: Iterable[SourceRow]) -> Iterator[bytes]:
        """The functions to call, then the rows."""
        functions = {each.key: (each.path, each.function) for each in self._code.functions}
        yield json.dumps({"functions": functions}).encode() + b"\n"
        for number, row in enumerate(source, start=1):
            if not self._code.makes_rows:
                self._waiting.append(row)
            try:
                yield json.dumps(row).encode() + b"\n"
            except (TypeError, ValueError, RecursionError) as error:
                raise UnreadableRow(number, f"the code of a task cannot get it as JSON ({error})") from error

    def _row(self, said: Mapping[str, Any]) -> SourceRow:
        if not self._code.makes_rows:
            if not self._waiting:
                raise self._failed("wrote more rows than it got")
            return self._waiting.popleft()
        row = said.get("row")
        if not isinstance(row, dict):
            raise self._failed("wrote a line that is no row")
        return row

    def _cells(self, made: object, doc_id: int) -> SourceRow:
        if not isinstance(made, dict) or made.keys() != self._columns.keys():
            raise self._failed("wrote a line that is no row")
        for key, kind, form in _FORMS:
            if key in made and not isinstance(made[key], kind):
                found = type(made[key]).__name__
                raise self._failed(f"gives {form} in {key}, but row {doc_id} has {found}")
        return {self._columns[key]: value for key, value in made.items()}

    def _failed(self, problem: str) -> TaskCodeFailed:
        return code_failed(self._code.task, problem)


# The forms that the functions' values need; a target may have any, and a text may be the number of a choice.
_FORMS = (("doc_to_text", str | int, "a text"), ("doc_to_choice", list, "a list of texts"))
