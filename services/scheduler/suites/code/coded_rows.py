"""Rows that the code of a task makes: what follows takes them like rows of a file."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from services.scheduler.suites.code.errors import TaskCodeFailed, TaskCodeOff, code_failed
from services.scheduler.suites.code.inside.program import BATCH_ROWS
from services.scheduler.suites.code.ports import CodeRunner
from services.scheduler.suites.rows.errors import UnreadableRow
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.rows.row_source import RowSet, RowsReference, SourceRow
from services.scheduler.suites.rows.task_code import TaskCode


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
        found = self.rows.open(reference)
        if code is None or self.runner is None:
            return found
        return RowSet(_Coding(code, self.runner).rows(found.rows), found.provenance)


class _Coding:
    """The rows of one split. `_waiting` were sent and are to be answered, where the code keeps the rows."""

    def __init__(self, code: TaskCode, runner: CodeRunner) -> None:
        self._code = code
        self._runner = runner
        self._waiting: deque[SourceRow] = deque()
        self._columns = {
            function.key: function.column for function in code.functions if function.key != "process_docs"
        }

    def rows(self, source: Iterable[SourceRow]) -> Iterator[SourceRow]:
        count = 0
        # What was made of the latest rows, for those that are asked again.
        recent: dict[int, object] = {}
        with closing(self._runner.lines(self._code, self._sent(source))) as lines:
            for line in lines:
                said = self._read(line)
                if "again" in said:
                    self._check_again(said, recent)
                elif "end" in said:
                    if said["end"] != count or self._waiting:
                        raise self._failed("ended before its last row")
                    return
                else:
                    made = said.get("made")
                    recent[count % BATCH_ROWS] = made
                    yield {**self._row(said), **self._cells(made, count)}
                    count += 1

    def _sent(self, source: Iterable[SourceRow]) -> Iterator[bytes]:
        """The functions to call, then the rows."""
        functions = {each.key: (each.path, each.function) for each in self._code.functions}
        yield json.dumps({"functions": functions}).encode() + b"\n"
        for number, row in enumerate(source, start=1):
            if not self._code.processes_docs:
                self._waiting.append(row)
            try:
                yield json.dumps(row).encode() + b"\n"
            except (TypeError, ValueError, RecursionError) as error:
                raise UnreadableRow(number, f"the code of a task cannot get it as JSON ({error})") from error

    def _read(self, line: bytes) -> Mapping[str, Any]:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._failed("wrote a line that is no JSON") from error
        if not isinstance(said, dict):
            raise self._failed("wrote a line that is no row")
        if isinstance(said.get("error"), dict):
            raise self._failed(_told(said["error"]))
        return said

    def _row(self, said: Mapping[str, Any]) -> SourceRow:
        if not self._code.processes_docs:
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

    def _check_again(self, said: Mapping[str, Any], recent: Mapping[int, object]) -> None:
        again, made = said["again"], said.get("made")
        first = recent.get(again % BATCH_ROWS) if isinstance(again, int) else None
        if made == first:
            return
        differing = [key for key in self._columns if _of(made, key) != _of(first, key)]
        what = differing[0] if differing else "row"
        raise self._failed(
            f"makes another {what} of row {again} where the rows are asked in another order: "
            "a function may keep nothing between two rows"
        )

    def _failed(self, problem: str) -> TaskCodeFailed:
        return code_failed(self._code.task, problem)


# The forms that the functions' values need; a target may have any.
_FORMS = (("doc_to_text", str, "a text"), ("doc_to_choice", list, "a list of texts"))


def _of(made: object, key: str) -> object:
    return made.get(key) if isinstance(made, dict) else None


def _told(error: Mapping[str, object]) -> str:
    """What the program inside says of an error of the code."""
    key, where = f"{error.get('key')!s:.40}", f"{error.get('where')!s:.200}"
    row = error.get("doc_id")
    at = f" at row {row}" if isinstance(row, int) and row >= 0 else ""
    if absent := error.get("absent"):
        return (
            f"needs the package {absent!s:.80} for {key}; its operator may put it into the folder "
            "PROCTOR_SCHEDULER_TASK_CODE_PACKAGES"
        )
    return f"failed in {key}{at}{f' ({where})' if where else ''}: {error.get('text')!s:.300}"
