"""What an instruction of IFEval says more exactly: numbers, texts, at least or less than."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.results.scoring.score import ScoringImpossible
from services.results.scoring.timed_regex import SlowTime, TimedRegex

# Characters. Compiling a pattern takes memory by length.
MAX_PATTERN = 5000
_RELATIONS: Mapping[str, Callable[[int, int], bool]] = {"at least": operator.ge, "less than": operator.lt}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Those of the instruction `name`. Each method raises ScoringImpossible where one does not fit."""

    name: str
    given: Mapping[str, object]
    slow_time: SlowTime

    def number(self, key: str) -> int:
        value = self.given.get(key)
        # Data sets have some of them as 3.0.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise self._unfit(key, "a whole number from 0")

    def text(self, key: str) -> str:
        value = self.given.get(key)
        if isinstance(value, str) and value.strip():
            return value
        raise self._unfit(key, "a text")

    def texts(self, key: str) -> list[str]:
        value = self.given.get(key)
        if isinstance(value, list) and value and all(isinstance(text, str) and text for text in value):
            return value
        raise self._unfit(key, "a list of texts")

    def character(self, key: str) -> str:
        value = self.text(key)
        if len(value) == 1:
            return value
        raise self._unfit(key, "one character")

    def bound(self, number_key: str, relation_key: str) -> Callable[[int], bool]:
        """Whether a count is at least this number, or less than it."""
        number, relation = self.number(number_key), _RELATIONS.get(str(self.given.get(relation_key)))
        if relation is None:
            raise self._unfit(relation_key, " or ".join(map(repr, _RELATIONS)))
        return lambda count: relation(count, number)

    def pattern(self, text: str) -> TimedRegex:
        """Parts of patterns are parameters as they are, so a keyword may be a pattern."""
        if len(text) > MAX_PATTERN:
            raise ScoringImpossible(
                f"the instruction {self.name} has a pattern of more than {MAX_PATTERN} characters"
            )
        try:
            return TimedRegex(text, self.slow_time)
        except re.error as error:
            raise ScoringImpossible(
                f"the instruction {self.name} has {text!r:.200}, which is no regular expression: {error}"
            ) from error

    def _unfit(self, key: str, kind: str) -> ScoringImpossible:
        value = self.given.get(key)
        return ScoringImpossible(f"the instruction {self.name} needs {kind} as {key}, not {value!r:.80}")
