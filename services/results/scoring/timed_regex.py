"""Regular expressions with the semantics of Python's `re` and limits on their run time."""

import math
import re
import time
from collections.abc import Callable
from typing import TypeVar

import regex

from services.common.patterns import compile_pattern, quick_characters
from services.results.scoring.score import ScoringImpossible

# Patterns read a text in microseconds; what takes this long backtracks and would take for ever.
MAX_SECONDS = 0.5
# The maximum once the time for slow patterns is spent.
MAX_SECONDS_LATER = 0.1
# Shorter times are not counted, however many answers there are.
SLOW_SECONDS = 0.05
# The time for slow patterns of one plan in one process: without it a run of a million answers would be
# slow for days.
MAX_SLOW_SECONDS = 5.0

_REPETITION = re.compile(r"[*+?{]")


Searched = TypeVar("Searched")


class SlowTime:
    """The time left to the patterns of one plan for slow answers. Threads may share it."""

    def __init__(self, seconds: float = MAX_SLOW_SECONDS) -> None:
        self.left = seconds


class TimedRegex:
    """Raises re.error where `re` would, and where the two modules cannot be made to agree.

    A pattern that has been slow is given up once the time for that is spent; quick ones go on. Texts of at
    most `quick_characters` are searched within a millisecond.
    """

    def __init__(self, pattern: str, slow_time: SlowTime | None = None) -> None:
        self.pattern = pattern
        self._slow_time = slow_time or SlowTime()
        self._has_been_slow = False
        self._plain, self._timed = compile_pattern(pattern)
        self.quick_characters = quick_characters(pattern)
        # Where it cannot be slow the plain module takes it, several times faster.
        self._plain_characters = self.quick_characters if _REPETITION.search(pattern) else math.inf

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimedRegex) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def findall(self, text: str) -> list[str] | list[tuple[str, ...]]:
        if len(text) <= self._plain_characters:
            return self._plain.findall(text)
        # Without the interpreter's lock: a slow pattern delays no other thread.
        return self._in_time(lambda seconds: self._timed.findall(text, timeout=seconds, concurrent=True))

    def selected(self, text: str, place: int) -> str:
        """The match at a place (-1: the last), of its groups the first that is not empty, stripped.

        "" where there is none.
        """
        matches = self.findall(text)
        if not -len(matches) <= place < len(matches):
            return ""
        match = matches[place]
        return (next((group for group in match if group), "") if isinstance(match, tuple) else match).strip()

    def first(self, text: str) -> str | None:
        """The first match, or where the pattern has groups the first of them that is not empty; or None."""
        if len(text) <= self._plain_characters:
            return _shown(self._plain.search(text))
        return self._in_time(
            lambda seconds: _shown(self._timed.search(text, timeout=seconds, concurrent=True))
        )

    def remove_from(self, text: str) -> str:
        if len(text) <= self._plain_characters:
            return self._plain.sub("", text)
        return self._in_time(lambda seconds: self._timed.sub("", text, timeout=seconds, concurrent=True))

    def _in_time(self, search: Callable[[float], Searched]) -> Searched:
        if self._has_been_slow and self._slow_time.left <= 0:
            raise self._too_slow()
        # Where each target is a pattern of its own, there is always one more that was never slow.
        seconds = MAX_SECONDS if self._slow_time.left > 0 else MAX_SECONDS_LATER
        # CPU time of this thread: on a busy machine a quick pattern is not slow.
        start = time.thread_time()
        try:
            found = search(seconds)
        except TimeoutError as error:
            self._note(seconds)
            raise self._too_slow() from error
        self._note(time.thread_time() - start)
        return found

    def _note(self, seconds: float) -> None:
        if seconds > SLOW_SECONDS:
            self._has_been_slow = True
            self._slow_time.left -= seconds

    def _too_slow(self) -> ScoringImpossible:
        return ScoringImpossible(
            f"the regex {self.pattern!r} took over {MAX_SECONDS} s, or {MAX_SLOW_SECONDS} s in all"
        )


def _shown(found: "re.Match[str] | regex.Match[str] | None") -> str | None:
    if found is None or not found.re.groups:
        return found and found[0]
    return next((group for group in found.groups() if group), "")
