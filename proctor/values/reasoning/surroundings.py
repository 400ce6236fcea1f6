"""A mark in quotes, in a block of code or as a word of a sentence is part of the answer."""

import re
from bisect import bisect_left
from functools import cached_property
from re import Match

# Marks of the turn, which some servers leave in the text.
_TURN = re.compile(
    r"(?:\s|<\|(?:im_start|start_header_id|end_header_id|assistant|START_OF_TURN_TOKEN|CHATBOT_TOKEN)\|>"
    r"|<s>|<bos>|<start_of_turn>model\b|assistant(?=\s*[<\[◁]))*",
    re.IGNORECASE,
)
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "«": "»", "‘": "’", "「": "」", "„": "“”"}
_BARE_FENCES = ("```", "~~~", '"""')
_FENCE = re.compile(r'^[ \t]*(?:```|~~~)|"""', re.MULTILINE)
# Words before and after a mark that a sentence is about.
_WORD_BEFORE = re.compile(
    r"(?<!\w)(?:the|an?|by|with|us(?:e|es|ing)|and|or|an?other|emits?|writes?|prints?|adds?|tags?|tokens?|marks?"
    r"|markers?|closing|opening|end|until|called|named|plus|both)[ \t]+\Z",
    re.IGNORECASE,
)
_WORD_AFTER = re.compile(
    r"[ \t]+(?:tags?|tokens?|marks?|markers?|elements?|closes|ends|opens|and|or|to (?:end|close|mark))(?!\w)"
    r"|[.,;:!?)]+(?:\s|\Z)"
)
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "\n")
# How far a line is looked at around a mark.
_LINE = 400


class Surroundings:
    """Whether a mark is used, or mentioned in the text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def is_mention(self, mark: Match[str], since: int = 0) -> bool:
        return self.is_quoted(mark) or self._is_word(mark) or self.is_in_fence(mark, since)

    def is_quoted(self, mark: Match[str]) -> bool:
        before, after = self._line_around(mark)
        return self.is_wrapped(mark) or any(sign in after and before.count(sign) % 2 for sign in '"`')

    def is_wrapped(self, mark: Match[str]) -> bool:
        """Directly in quotes."""
        before = self._text[max(0, mark.start() - 1) : mark.start()]
        after = self._text[mark.end() : mark.end() + 1]
        return bool(after) and after in _QUOTES.get(before, "")

    def begins_sentence(self, mark: Match[str]) -> bool:
        before = self._text[max(0, mark.start() - _LINE) : mark.start()].rstrip(" \t")
        return not before or before.endswith(_SENTENCE_ENDS)

    def is_in_fence(self, mark: Match[str], since: int = 0) -> bool:
        fences = self._fences
        number = bisect_left(fences, mark.start())
        if (number - bisect_left(fences, since)) % 2 == 0 or number == len(fences):
            return False
        # A language behind the next one: it opens a block, and the one before was never closed.
        return self._text[fences[number] : fences[number] + _LINE].partition("\n")[0].strip() in _BARE_FENCES

    def _is_word(self, mark: Match[str]) -> bool:
        before, after = self._line_around(mark)
        return bool(_WORD_BEFORE.search(before[-24:]) or _WORD_AFTER.match(after))

    @cached_property
    def _fences(self) -> list[int]:
        return [fence.start() for fence in _FENCE.finditer(self._text)]

    def _line_around(self, mark: Match[str]) -> tuple[str, str]:
        start, end = mark.span()
        before = self._text[max(0, start - _LINE) : start].rpartition("\n")[2]
        return before, self._text[end : end + _LINE].partition("\n")[0]


def turn_end(text: str) -> int:
    turn = _TURN.match(text)
    return turn.end() if turn else 0
