"""Compares an answer with a target: lm-eval's exact_match, and SQuAD's exact match and F1.

Rajpurkar et al. 2016; normalised as by the official script: lower case, no punctuation, no articles.
"""

import re
import string
from collections import Counter
from dataclasses import dataclass

from services.results.scoring.timed_regex import TimedRegex

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WITHOUT_DIGITS = str.maketrans("", "", string.digits)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True, slots=True)
class TextMatch:
    ignore_case: bool = False
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: tuple[TimedRegex, ...] = ()

    def is_match(self, answer: str, target: str) -> bool:
        return answer == target or self._reduced(answer) == self._reduced(target)

    def is_contained(self, target: str, answer: str) -> bool:
        """A target that is empty after its reduction is never contained in an answer."""
        wanted = self._reduced(target)
        return bool(wanted) and wanted in self._reduced(answer)

    def _reduced(self, text: str) -> str:
        for regex in self.regexes_to_ignore:
            text = regex.remove_from(text)
        if self.ignore_case:
            text = text.lower()
        if self.ignore_punctuation:
            text = text.translate(_WITHOUT_PUNCTUATION)
        return text.translate(_WITHOUT_DIGITS) if self.ignore_numbers else text


def squad_exact_match(answer: str, target: str) -> float:
    return float(_normalised(answer) == _normalised(target))


def squad_f1(answer: str, target: str) -> float:
    """Harmonic mean of precision and recall over tokens, each counted as often as it occurs."""
    given, wanted = _normalised(answer).split(), _normalised(target).split()
    # As the official script of SQuAD 2: both empty is a match.
    if not given or not wanted:
        return float(given == wanted)
    shared = sum((Counter(given) & Counter(wanted)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(given), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _normalised(text: str) -> str:
    bare = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())
