"""Reasoning between a start mark and an end mark, as in `<think>…</think>`."""

import re
from re import Match

from proctor.values.reasoning.separated_text import SeparatedText, separated
from proctor.values.reasoning.surroundings import Surroundings, turn_end

_NAMES = (
    r"(?:\w{1,20}[:_])?(?:(?:ant)?thinking(?:_process)?|think(?:_(?:fast|slow|more)|:\w{1,20})?|thoughts?|reasoning"
    r"|reflection|analysis"
    r"|scratchpad|monologue|reason|thought_process|chain_of_thought|cot)"
)
# The name of a group is the name of the mark, unless it is a tag or stands between bars, as in
# `<|begin_of_thought|>` and `<|END_THINKING|>`. Some servers escape their texts for HTML or JSON.
_MARK = re.compile(
    rf"(?:<|(?P<escaped>&lt;|\\u003c))\s?(?P<slash>\\?/)?(?P<tag>{_NAMES})(?: \w{{1,20}}=[^<>\n]{{1,80}})?"
    r"\s?(?:>|&gt;|\\u003e)"
    r"|<[|\uff5c](?P<bar_slash>/)?(?:(?P<first>begin|start|end)[_\u2581](?:of[_\u2581])?)?"
    r"(?P<bar>thinking|think|thoughts?|reasoning|reason)(?:[_\u2581](?P<last>begin|start|end))?[|\uff5c]>"
    r"|(?P<work><start_working_out>)|(?P<work_end><end_working_out>)"
    r"|(?P<apertus><\|inner_prefix\|>)|(?P<apertus_end><\|inner_suffix\|>)"
    r"|(?P<mistral>\[THINK(?:ING)?\])|(?P<mistral_end>\[/THINK(?:ING)?\])"
    r"|(?P<kimi>◁think▷)|(?P<kimi_end>◁/think▷)"
    r"|(?P<gemma><\|channel>thought\b)|(?P<gemma_end><channel\|>)"
    r"|(?P<medgemma><unused94>thought\b)|(?P<medgemma_end><unused95>)",
    re.IGNORECASE,
)
# No tag: `<answer>` inside of an open block may be a draft.
_ANSWER_BEGINS = re.compile(r"<\|(?:begin_of_solution|answer)\|>", re.IGNORECASE)
_WORD = re.compile(r"\S")
_SIGN = re.compile(r"<|\[|◁|&lt;|\\u003c")


def of_blocks(text: str) -> SeparatedText | None:
    # A search for all marks at once would take ten times as long.
    begins = (sign.start() for sign in _SIGN.finditer(text))
    marks = [mark for at in begins if (mark := _MARK.match(text, at))]
    if not marks:
        return None
    blocks = _Blocks(text, marks)
    for mark in marks:
        blocks.take(mark)
    return blocks.separated()


class _Blocks:
    """Reads marks in order. Of the parts outside of blocks the last one that is not blank is the answer."""

    def __init__(self, text: str, marks: list[Match[str]]) -> None:
        self._text = text
        self._around = Surroundings(text)
        self._last_ends = {_name(mark): mark.start() for mark in marks if _is_end(mark)}
        # Where the part begins that is being read, where its first word is, and the block that it is in.
        self._start = self._first_word = turn_end(text)
        self._is_begin = True
        self._open = ""
        self._nested: set[str] = set()
        self._other_end: Match[str] | None = None
        # Where a start mark was a word of a sentence, its end mark on the same line is one as well.
        self._mentioned = -1
        self._inside: list[str] = []
        self._outside: list[str] = []

    def take(self, mark: Match[str]) -> None:
        if self._open:
            self._take_inside(mark)
        elif _is_end(mark):
            self._take_end(mark)
        elif self._is_own_start(mark):
            self._outside.append(self._text[self._start : mark.start()])
            self._begin_block(mark)
        else:
            self._mentioned = mark.end()

    def separated(self) -> SeparatedText | None:
        if self._open and self._other_end:
            # A block that only the end mark of another name ends.
            self._end_block(self._other_end)
        elif self._is_begin:
            return None
        rest = self._text[self._start :]
        if self._open and (answer := _ANSWER_BEGINS.search(rest)):
            # The mark of an answer ends the reasoning as well.
            self._inside.append(rest[: answer.start()])
            self._open, rest = "", rest[answer.start() :]
        if self._open:
            return separated([*self._inside, *self._outside, rest], None)
        outside = [*self._outside, rest]
        last = max((at for at, part in enumerate(outside) if part.strip()), default=-1)
        others = [part for at, part in enumerate(outside) if at != last]
        return separated([*self._inside, *others], outside[last] if last >= 0 else "")

    def _take_inside(self, mark: Match[str]) -> None:
        name = _name(mark)
        if not _is_end(mark):
            self._nested.update({name} - {self._open})
        elif name == self._open:
            if not self._around.is_wrapped(mark):
                self._end_block(mark)
        elif name in self._nested:
            self._nested.discard(name)
        elif not self._around.is_wrapped(mark):
            self._other_end = mark

    def _take_end(self, mark: Match[str]) -> None:
        if self._is_pair_of_mentions(mark) or self._around.is_mention(mark, since=self._start):
            return
        if mark["escaped"] and not self._around.is_set_off(mark):
            # HTML that tells of the mark.
            return
        before = self._text[self._start : mark.start()]
        # The first one ends what the prompt has opened; a later one is a stray.
        (self._inside if self._is_begin else self._outside).append(before)
        self._begin_part(mark)

    def _is_own_start(self, mark: Match[str]) -> bool:
        if self._first_word >= mark.start():
            return True
        is_set_off = self._around.is_set_off(mark)
        ends_later = self._last_ends.get(_name(mark), -1) > mark.start()
        is_own = is_set_off and (ends_later or not self._is_begin)
        return is_own and not self._around.is_mention(mark, since=self._start)

    def _is_pair_of_mentions(self, mark: Match[str]) -> bool:
        start, self._mentioned = self._mentioned, -1
        return start >= 0 and self._text.find("\n", start, mark.start()) < 0

    def _begin_block(self, mark: Match[str]) -> None:
        self._open, self._nested, self._other_end = _name(mark), set(), None
        self._begin_part(mark)

    def _end_block(self, mark: Match[str]) -> None:
        self._inside.append(self._text[self._start : mark.start()])
        self._open = ""
        self._begin_part(mark)

    def _begin_part(self, mark: Match[str]) -> None:
        self._start, self._is_begin, self._mentioned = mark.end(), False, -1
        word = _WORD.search(self._text, self._start)
        self._first_word = word.start() if word else len(self._text)


def _is_end(mark: Match[str]) -> bool:
    if mark["bar"]:
        return bool(mark["bar_slash"]) or "end" in {
            (mark[place] or "").lower() for place in ("first", "last")
        }
    return bool(mark["slash"]) or (mark.lastgroup or "").endswith("_end")


def _name(mark: Match[str]) -> str:
    if mark["bar"]:
        return f"|{mark['bar']}|".lower()
    return str(mark["tag"]).lower() if mark["tag"] else (mark.lastgroup or "").removesuffix("_end")
