"""Whether a text equals the expected one, and which differences are overlooked (exact_match of lm-eval)."""

import re
import string
from dataclasses import dataclass

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WITHOUT_DIGITS = str.maketrans("", "", string.digits)


@dataclass(frozen=True, slots=True)
class TextMatch:
    ignore_case: bool = False
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: tuple[str, ...] = ()

    def is_match(self, answer: str, expected: str) -> bool:
        return self._reduced(answer) == self._reduced(expected)

    def _reduced(self, text: str) -> str:
        for pattern in self.regexes_to_ignore:
            text = re.sub(pattern, "", text)
        if self.ignore_case:
            text = text.lower()
        if self.ignore_punctuation:
            text = text.translate(_WITHOUT_PUNCTUATION)
        return text.translate(_WITHOUT_DIGITS) if self.ignore_numbers else text
