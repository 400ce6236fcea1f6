"""Finds the letter of a choice where a pattern finds none: `multi_choice_regex` of lm-evaluation-harness."""

import re
import string
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from services.results.scoring.timed_regex import TimedRegex

# A letter for each, as there.
MAX_CHOICES = len(string.ascii_uppercase)


@dataclass(frozen=True, slots=True)
class ChoiceFilter:
    """What is ignored where the texts of choices are looked for."""

    ignore_case: bool = False
    ignore_punctuation: bool = False
    regexes_to_ignore: tuple[TimedRegex, ...] = ()

    def letter(self, answer: str, choices: Sequence[str], place: int) -> str | None:
        """ "(B)": the letter of a choice that the answer writes out, or that a colon precedes; else None.

        Of several the one at `place`, where -1 is the last. A longer choice goes before one that it contains.
        """
        letters = dict(zip(string.ascii_uppercase, choices, strict=False))
        by_text = {self._reduced(choice.strip()): f"({letter})" for letter, choice in letters.items()}
        if not by_text:
            return None
        texts = sorted(by_text, key=len, reverse=True)
        written = _at(re.findall("|".join(map(re.escape, texts)), self._reduced(answer)), place)
        if written:
            return by_text.get(written, written)
        named = _at(re.findall(rf":\s*([{''.join(letters)}])", answer), place)
        return f"({named})" if named else None

    def _reduced(self, text: str) -> str:
        for regex in self.regexes_to_ignore:
            text = regex.remove_from(text)
        if self.ignore_case:
            text = text.lower()
        return text.translate(_without_punctuation()) if self.ignore_punctuation else text


def _at(found: Sequence[str], place: int) -> str:
    return found[place].strip() if -len(found) <= place < len(found) else ""


@cache
def _without_punctuation() -> dict[int, None]:
    """Of all of Unicode."""
    codes = (code for code in range(sys.maxunicode) if unicodedata.category(chr(code)).startswith("P"))
    return dict.fromkeys(codes)
