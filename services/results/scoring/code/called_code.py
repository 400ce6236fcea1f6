"""Calls Python code of a task at lines of answers. One at which it ends costs no other its value."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from services.common.sandboxes.task_code.answers import Said, answers, told
from services.common.sandboxes.task_code.ports import CodeEnded, CodeFiles, CodeRunner
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.timed_regex import SlowTime

# An answer at which the code ends costs a sandbox. After so many in a call the rest is not tried.
MAX_ENDS = 3
ANSWERS_PER_CALL = 250
# Of an answer that no function is called for.
NOTHING: Said = {"made": {}}
_GIVEN_UP = ScoringImpossible("the code of the task ended too late, or without a value, at other answers")


@dataclass(frozen=True, slots=True)
class CalledCode:
    """`header` names the functions, as the program inside reads it."""

    runner: CodeRunner
    files: CodeFiles
    header: bytes
    time_left: SlowTime

    def made(self, lines: Sequence[bytes]) -> Sequence[Said | ScoringImpossible]:
        """What the code says of each line. One at which it ends has its sentence, and others go on."""
        made: list[Said | ScoringImpossible] = []
        fault = _GIVEN_UP
        for _ in range(MAX_ENDS):
            if self.time_left.left <= 0:
                break
            try:
                self._ask(lines[len(made) :], made)
            except CodeEnded as ended:
                fault = ScoringImpossible(f"the code of the task {ended}")
                if len(made) == len(lines):
                    # All were answered, and then the same was not: none can be believed.
                    return [fault] * len(lines)
                made.append(fault)
            if len(made) == len(lines):
                return made
        return [*made, *[fault] * (len(lines) - len(made))]

    def _ask(self, lines: Sequence[bytes], made: list[Said | ScoringImpossible]) -> None:
        with closing(self.runner.lines(self.files, iter([self.header, *lines]))) as written:
            count = 0
            for said in self._timed(answers(written)):
                if count == len(lines):
                    raise CodeEnded("wrote more rows than it got")
                made.append(said)
                count += 1
        if count < len(lines):
            raise CodeEnded("ended before its last row")

    def _timed(self, written: Iterator[Said]) -> Iterator[Said]:
        """Where the code ends, the time since its last line is lost."""
        latest = time.monotonic()
        try:
            for said in written:
                yield said
                latest = time.monotonic()
        except CodeEnded:
            self.time_left.left -= time.monotonic() - latest
            raise


def value_of(said: Said, key: str) -> object:
    """What the function of this key returned. Raises ScoringImpossible."""
    made = said.get("made")
    of_key = made.get(key) if isinstance(made, Mapping) else None
    if isinstance(of_key, dict) and isinstance(of_key.get("error"), dict):
        raise ScoringImpossible(f"the code of the task {told(of_key['error'])}")
    if not isinstance(of_key, dict) or "value" not in of_key:
        raise ScoringImpossible("the code of the task wrote a line that is no row")
    return of_key["value"]
