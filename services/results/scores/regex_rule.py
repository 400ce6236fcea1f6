"""Right or wrong by a pattern: what it finds is what is expected, or it is itself what is expected."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.results.scores.answer import ScoringImpossible
from services.results.scores.answer_rule import Judgement
from services.results.scores.timed_regex import SlowTime, TimedRegex

LONGEST_PATTERN = 5000
_WITHOUT_CASE = "(?i)"


@dataclass(frozen=True, slots=True)
class FoundText:
    """The pattern's first match in the answer, or its first group that is not empty, equals the target.

    Spaces at the ends are overlooked. Where nothing is found nothing is read.
    """

    pattern: TimedRegex
    ignore_case: bool = False

    def check(self, expected: Sequence[str]) -> None:
        """Whatever is expected may be found."""

    def judge(self, answer: str, expected: Sequence[str]) -> Judgement:
        reading = (self.pattern.first(answer) or "").strip()
        if not reading:
            return Judgement(None)
        return Judgement(reading, any(self._folded(reading) == self._folded(text) for text in expected))

    def _folded(self, text: str) -> str:
        return text.strip().casefold() if self.ignore_case else text.strip()


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """The target is a pattern, which is found in the answer."""

    ignore_case: bool = False
    slow_time: SlowTime = field(default_factory=SlowTime, compare=False)

    def check(self, expected: Sequence[str]) -> None:
        self._patterns(expected)

    def judge(self, answer: str, expected: Sequence[str]) -> Judgement:
        patterns = self._patterns(expected)
        return Judgement(answer, any(pattern.first(answer) is not None for pattern in patterns))

    def _patterns(self, expected: Sequence[str]) -> Sequence[TimedRegex]:
        return [self._pattern(text) for text in expected]

    def _pattern(self, text: str) -> TimedRegex:
        if len(text) > LONGEST_PATTERN:
            raise ScoringImpossible(
                f"the target has {len(text)} letters, and a pattern at most {LONGEST_PATTERN}"
            )
        try:
            return case_pattern(text, ignore_case=self.ignore_case, slow_time=self.slow_time)
        except re.error as error:
            raise ScoringImpossible(f"the target {text!r:.200} is no regular expression: {error}") from error


def case_pattern(text: str, *, ignore_case: bool, slow_time: SlowTime | None) -> TimedRegex:
    """Raises re.error."""
    return TimedRegex((_WITHOUT_CASE if ignore_case else "") + text, slow_time)
