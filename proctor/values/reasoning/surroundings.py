"""A mark in quotes, in a block of code or as a word of a sentence is part of the answer."""

import re
from bisect import bisect_left
from functools import cached_property
from re import Match

# Marks of the turn, which some servers leave in the text.
_TURN = re.compile(
    r"(?:\s|<\|(?:im_start|start_header_id|end_header_id|assistant|START_OF_TURN_TOKEN|CHATBOT_TOKEN)\|>"
    r"|<\uff5c(?:Assistant|begin\u2581of\u2581sentence)\uff5c>|\[/?INST\]|<s>|<bos>|<start_of_turn>model\b|assistant:?(?=\s*[<\[◁]))*",
    re.IGNORECASE,
)
_QUOTES = {"'": "'", '"': '"', "`": "`", "“": "”", "«": "»", "‘": "’", "「": "」", "„": "“”"}
# Quotes that open or close: neither an apostrophe in a word nor a fence.
_PAIRED = {
    "'": re.compile(r"(?<!\w)'|'(?!\w)"),
    '"': re.compile('"'),
    "`": re.compile("(?<!`)`{1,2}(?!`)"),
}
_BARE_FENCES = ("```", "~~~", '"""')
_FENCE = re.compile(r'^[ \t]*(?:```|~~~)|"""', re.MULTILINE)
# Words before and after a mark that a sentence is about.
_WORD_BEFORE = re.compile(
    r"(?<!\w)(?:the|an?|by|with|us(?:e|es|ing)|and|or|an?other|emits?|writes?|prints?|adds?|tags?"
    r"|tokens?|marks?"
    r"|markers?|closing|opening|end|until|called|named|plus|both|to)[ \t]+\Z",
    re.IGNORECASE,
)
_WORD_AFTER = re.compile(
    r"[ \t]+(?:tags?|tokens?|marks?|markers?|elements?|closes|ends|opens|and|or|to (?:end|close|mark))(?!\w)"
    r"|[.,;:!?)]+(?:\s|\Z)"
)
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "\n")
_COMMENT = re.compile(r"[ \t]*#[ \t]")
_CODE_BEGINS = re.compile(
    r"\s*(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[^\n:]{0,200}:[ \t]*$"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t]|import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+|,[ \t]*[\w.]+)*[ \t]*$)",
    re.MULTILINE,
)
_OUTER_TAG = re.compile(
    r"\s*(?:<[?!][^>]{0,400}>\s*){0,4}<(?P<name>[^\W\d][\w.:-]{0,60})(?:\s[^<>]{0,400})?>"
)
_CLOSING_TAG = re.compile(r"</([^\W\d][\w.:-]{0,60})>")
# How far a line is looked at around a mark, and before a quote.
_LINE = 400
_LONG_LINE = 1000


class Surroundings:
    """Whether a mark is used, or mentioned in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        # By where a part begins: whether it is code, and the element that it begins with. Read once, so that
        # many marks take no longer.
        self._is_code: dict[int, bool] = {}
        self._elements: dict[int, range] = {}
        # Where quotes that open or close stand.
        self._quotes: dict[str, list[int]] = {}

    def is_mention(self, mark: Match[str], since: int = 0) -> bool:
        return (
            self.is_quoted(mark)
            or self._is_word(mark)
            or self.is_in_fence(mark, since)
            or self._is_in_code(mark, since)
            or self._is_in_markup(mark, since)
        )

    def is_quoted(self, mark: Match[str]) -> bool:
        before, after = self._line_around(mark)
        reach = range(mark.start() - len(before), mark.start())
        return self.is_wrapped(mark) or any(sign in after and self._is_opened(reach, sign) for sign in '"`')

    def is_wrapped(self, mark: Match[str]) -> bool:
        """Directly in quotes. Between two equal ones only if the first one opens, unlike `"B"</think>"B"`."""
        before = self._text[max(0, mark.start() - 1) : mark.start()]
        after = self._text[mark.end() : mark.end() + 1]
        if not after or after not in _QUOTES.get(before, ""):
            return False
        line = self._text[max(0, mark.start() - _LONG_LINE) : mark.start()].rpartition("\n")[2]
        reach = range(mark.start() - len(line), mark.start())
        return before != after or self._is_opened(reach, before)

    def begins_sentence(self, mark: Match[str]) -> bool:
        before = self._text[max(0, mark.start() - _LINE) : mark.start()].rstrip(" \t")
        return not before or before.endswith(_SENTENCE_ENDS)

    def is_set_off(self, mark: Match[str]) -> bool:
        return self.begins_sentence(mark) or self._text.startswith("\n", mark.end())

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

    def _is_in_code(self, mark: Match[str], since: int) -> bool:
        """In a comment, or in code without a fence. A line that begins with the mark is no code."""
        before = self._line_around(mark)[0]
        if not before.strip():
            return False
        if since not in self._is_code:
            self._is_code[since] = _CODE_BEGINS.match(self._text, since) is not None
        return self._is_code[since] or _COMMENT.match(before) is not None

    def _is_in_markup(self, mark: Match[str], since: int) -> bool:
        """In an element that the text begins with, as of an XML document."""
        if since not in self._elements:
            self._elements[since] = self._element(since)
        return mark.start() in self._elements[since]

    def _element(self, since: int) -> range:
        outer = _OUTER_TAG.match(self._text, since)
        if outer is None:
            return range(0)
        closings = self._closings.get(outer["name"], [])
        number = bisect_left(closings, outer.end())
        return range(outer.end(), closings[number]) if number < len(closings) else range(0)

    @cached_property
    def _closings(self) -> dict[str, list[int]]:
        closings: dict[str, list[int]] = {}
        for closing in _CLOSING_TAG.finditer(self._text):
            closings.setdefault(closing[1], []).append(closing.start())
        return closings

    @cached_property
    def _fences(self) -> list[int]:
        return [fence.start() for fence in _FENCE.finditer(self._text)]

    def _line_around(self, mark: Match[str]) -> tuple[str, str]:
        start, end = mark.span()
        before = self._text[max(0, start - _LINE) : start].rpartition("\n")[2]
        return before, self._text[end : end + _LINE].partition("\n")[0]

    def _is_opened(self, line: range, sign: str) -> bool:
        if sign not in self._quotes:
            self._quotes[sign] = [quote.start() for quote in _PAIRED[sign].finditer(self._text)]
        quotes = self._quotes[sign]
        return (bisect_left(quotes, line.stop) - bisect_left(quotes, line.start)) % 2 == 1


def turn_end(text: str) -> int:
    turn = _TURN.match(text)
    return turn.end() if turn else 0
