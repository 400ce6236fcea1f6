"""Examples that the code of a task draws: each row comes out with a column of them."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from services.common.sandboxes.task_code.answers import answers
from services.common.sandboxes.task_code.ports import CodeEnded, CodeRunner
from services.scheduler.suites.code.errors import TaskCodeFailed, code_failed
from services.scheduler.suites.code.loaded_sets import row_lines
from services.scheduler.suites.rows.errors import UnreadableRow
from services.scheduler.suites.rows.row_source import ExampleDraw, SourceRow
from services.scheduler.suites.rows.task_code import SAMPLER, without_code

_OTHER_EXAMPLES = (
    "draws other examples for row {row} with a second {key} of the same seed: draw with its own rnd alone"
)


@dataclass(slots=True)
class DrawnExamples:
    """`_waiting` were sent, and their examples are to be drawn."""

    draw: ExampleDraw
    runner: CodeRunner
    _waiting: deque[SourceRow] = field(default_factory=deque)

    def rows(self, documents: Iterable[SourceRow]) -> Iterator[SourceRow]:
        """Raises `TaskCodeFailed`, and what reading the documents raises; a few are read ahead."""
        code, column = self.draw.code, self.draw.code.column_of(SAMPLER)
        sent = self._sent(documents)
        try:
            with closing(self.runner.lines(code.files, sent, takes_lines_of_code=True)) as lines:
                for said in answers(lines, _OTHER_EXAMPLES):
                    if not self._waiting:
                        raise self._failed("wrote more rows than it got")
                    yield {**self._waiting.popleft(), column: self._examples(said.get("made"))}
        except CodeEnded as ended:
            raise self._failed(str(ended)) from ended
        if self._waiting:
            raise self._failed("ended before its last row")

    def _sent(self, documents: Iterable[SourceRow]) -> Iterator[bytes]:
        """What is wanted, the pool up to a null, then the documents, empty where no row is dropped."""
        draw = self.draw
        named = {each.key: (each.path, each.function) for each in draw.code.functions}
        wanted = {"num_fewshot": draw.num_fewshot, "seed": draw.seed}
        yield json.dumps({"functions": named, "draws": wanted}).encode() + b"\n"
        try:
            yield from row_lines(map(without_code, draw.pool))
        except UnreadableRow as problem:
            unsent = f"cannot draw example {problem.row - 1} (from 0): {problem.problem}"
            raise self._failed(unsent) from problem
        yield b"null\n"
        yield from row_lines(self._kept(documents))

    def _kept(self, documents: Iterable[SourceRow]) -> Iterator[SourceRow]:
        for row in documents:
            self._waiting.append(row)
            yield without_code(row) if self.draw.drops_document else {}

    def _examples(self, made: object) -> list[int | SourceRow]:
        shown = made.get(SAMPLER) if isinstance(made, dict) else None
        if not isinstance(shown, list):
            raise self._failed("wrote a line that is no row")
        return [self._example(each) for each in shown]

    def _example(self, shown: Any) -> int | SourceRow:
        """An index in the pool, or a row that is not there."""
        if isinstance(shown, int) and not isinstance(shown, bool) and 0 <= shown < len(self.draw.pool):
            return shown
        columns = {each.key: each.column for each in self.draw.code.functions if each.key != SAMPLER}
        made, row = (shown.get("made"), shown.get("row")) if isinstance(shown, dict) else (None, None)
        if not isinstance(made, dict) or not isinstance(row, dict) or made.keys() != columns.keys():
            raise self._failed("wrote a line that is no row")
        return {**row, **{columns[key]: value for key, value in made.items()}}

    def _failed(self, problem: str) -> TaskCodeFailed:
        return code_failed(self.draw.code.task, problem)
