"""Exact match and token overlap of two texts as SQuAD's evaluation has them (and ReCoRD's after it).

Rajpurkar et al. 2016; normalised as by the official script: lower case, no punctuation, no articles.
"""

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_exact_match(answer: str, expected: str) -> float:
    return float(_normalised(answer) == _normalised(expected))


def squad_f1(answer: str, expected: str) -> float:
    """Harmonic mean of precision and recall over tokens, each counted as often as it occurs."""
    given, wanted = _normalised(answer).split(), _normalised(expected).split()
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
