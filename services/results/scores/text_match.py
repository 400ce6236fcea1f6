"""Whether a text equals or contains the expected one, and what is overlooked (exact_match of lm-eval)."""

import string
from dataclasses import dataclass

from services.results.scores.timed_regex import TimedRegex

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WITHOUT_DIGITS = str.maketrans("", "", string.digits)


@dataclass(frozen=True, slots=True)
class TextMatch:
    ignore_case: bool = False
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: tuple[TimedRegex, ...] = ()

    def is_match(self, answer: str, expected: str) -> bool:
        return self._reduced(answer) == self._reduced(expected)

    def is_contained(self, expected: str, answer: str) -> bool:
        """Nothing is contained in anything: an expected text of which nothing is left never counts."""
        wanted = self._reduced(expected)
        return bool(wanted) and wanted in self._reduced(answer)

    def _reduced(self, text: str) -> str:
        for regex in self.regexes_to_ignore:
            text = regex.remove_from(text)
        if self.ignore_case:
            text = text.lower()
        if self.ignore_punctuation:
            text = text.translate(_WITHOUT_PUNCTUATION)
        return text.translate(_WITHOUT_DIGITS) if self.ignore_numbers else text
