"""Rows that the code of a task makes: what follows takes them like rows of a file."""

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from services.common.sandboxes.task_code.answers import answers
from services.common.sandboxes.task_code.ports import CodeEnded, CodeRunner
from services.scheduler.suites.code.drawn_examples import DrawnExamples
from services.scheduler.suites.code.errors import TaskCodeFailed, TaskCodeOff, code_failed
from services.scheduler.suites.code.loaded_sets import LoadedSets, row_lines
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
        draw, code = reference.draw, reference.code
        if draw is not None:
            drawn = DrawnExamples(draw, self._runner_of(draw.code))
            found = self.open(replace(reference, draw=None))
            return replace(found, rows=drawn.rows(found.rows))
        if code is None:
            return self._given(reference)
        runner = self._runner_of(code)
        sets = LoadedSets(code.task, reference.suite, self.rows)
        coding = _Coding(code, runner, sets, reference.split)
        if code.loads_rows:
            coding.find_sets()
            return RowSet(coding.rows(lambda: ()), sets.provenance)
        found = self._given(reference)
        return RowSet(coding.rows(_Again(found, lambda: self._given(reference))), found.provenance)

    def _runner_of(self, code: TaskCode) -> CodeRunner:
        if self.runner is None:
            keys = ", ".join(function.key for function in code.functions)
            raise TaskCodeOff(task=code.task, keys=keys)
        return self.runner

    def _given(self, reference: RowsReference) -> RowSet:
        """The rows that no code has changed."""
        if reference.is_written:
            return RowSet(reference.samples, Provenance(str(reference), "", ""))
        return self.rows.open(reference)


class _Again:
    """Rows that are opened already, and anew for each further start of the code."""

    def __init__(self, first: RowSet, open_again: Callable[[], RowSet]) -> None:
        self._first: RowSet | None = first
        self._open_again = open_again

    def __call__(self) -> Iterable[SourceRow]:
        first, self._first = self._first, None
        return (first or self._open_again()).rows


class _Coding:
    """The rows of one split. `_waiting` were sent and are to be answered, where the code keeps the rows.

    `sets`: what the code loads itself. It is started again with each further one.
    """

    def __init__(self, code: TaskCode, runner: CodeRunner, sets: LoadedSets, split: str) -> None:
        self._code = code
        self._runner = runner
        self._sets = sets
        self._split = split
        self._waiting: deque[SourceRow] = deque()
        self._columns = {
            function.key: function.column for function in code.functions if function.key not in ROW_MAKERS
        }

    def find_sets(self) -> None:
        """Finds those that `custom_dataset` loads, without making rows."""
        while not self._has_all(self._runner.lines(self._code.files, self._sent((), only_loads=True))):
            pass

    def rows(self, source: Callable[[], Iterable[SourceRow]]) -> Iterator[SourceRow]:
        count = 0
        while True:
            self._waiting.clear()
            try:
                with closing(self._runner.lines(self._code.files, self._sent(source()))) as lines:
                    for said in answers(lines):
                        if "needs" in said and not count:
                            break
                        yield {**self._row(said), **self._cells(said.get("made"), count)}
                        count += 1
                    else:
                        break
            except CodeEnded as ended:
                raise self._failed(str(ended)) from ended
            self._sets.add(said["needs"])
        if self._waiting:
            raise self._failed("ended before its last row")

    def _has_all(self, lines: Generator[bytes, None, None]) -> bool:
        """Whether the code misses no set; one that it misses is added."""
        try:
            with closing(lines):
                said = next(answers(lines), None)
        except CodeEnded as ended:
            raise self._failed(str(ended)) from ended
        if said is not None:
            self._sets.add(said.get("needs"))
        return said is None

    def _sent(self, source: Iterable[SourceRow], *, only_loads: bool = False) -> Iterator[bytes]:
        """The functions to call, the sets that the code loads, then the rows."""
        functions = {each.key: (each.path, each.function) for each in self._code.functions}
        loads = {"arguments": json.loads(self._code.arguments or "{}"), "split": self._split}
        header = {"functions": functions, "sets": self._sets.keys, "loads": loads, "only_loads": only_loads}
        yield json.dumps(header).encode() + b"\n"
        yield from self._sets.lines()
        yield from row_lines(self._kept(source))

    def _kept(self, source: Iterable[SourceRow]) -> Iterator[SourceRow]:
        for row in source:
            if not self._code.makes_rows:
                self._waiting.append(row)
            yield row

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
