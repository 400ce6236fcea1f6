"""The difference of two texts, word by word, in bounded time: both may be hostile."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")
# Texts with more differences than these are shown without marks: they have little in common.
MAX_CHANGES = 150
# The rest of a longer text is shown without marks; with the bound above this is some milliseconds.
MAX_CHARACTERS = 8_000

# For each number of changes, how far each diagonal of the edit graph was followed before it.
_Trace = list[dict[int, int]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `is_own` where the other text does not have it."""

    text: str
    is_own: bool


def own_pieces(base: str, other: str) -> list[Piece]:
    """`other` in pieces: those of its own, and those that are in `base` too, in the same order."""
    given = other[:MAX_CHARACTERS]
    before, after = _WORD.findall(base[:MAX_CHARACTERS]), _WORD.findall(given)
    own = _own_words([word.strip() for word in before], [word.strip() for word in after])
    pieces: list[Piece] = []
    for word, is_own in zip(after, own, strict=True):
        if pieces and pieces[-1].is_own == is_own:
            pieces[-1] = Piece(pieces[-1].text + word, is_own)
        else:
            pieces.append(Piece(word, is_own))
    if len(other) > len(given):
        pieces.append(Piece(f" … ({len(other) - len(given)} more characters)", is_own=False))
    return pieces


def _own_words(before: Sequence[str], after: Sequence[str]) -> list[bool]:
    """Which words of `after` a shortest edit inserts. Myers, An O(ND) Difference Algorithm (1986)."""
    trace = _followed(before, after)
    if trace is None:
        return [False] * len(after)
    own = [False] * len(after)
    at, to = len(before), len(after)
    for changes in range(len(trace) - 1, 0, -1):
        furthest, diagonal = trace[changes], at - to
        is_down = _goes_down(furthest, diagonal, changes)
        earlier = diagonal + 1 if is_down else diagonal - 1
        at = furthest[earlier]
        to = at - earlier
        if is_down:
            own[to] = True
    return own


def _followed(before: Sequence[str], after: Sequence[str]) -> _Trace | None:
    """None where there are too many changes."""
    furthest: dict[int, int] = {1: 0}
    trace: _Trace = []
    for changes in range(min(len(before) + len(after), MAX_CHANGES) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-changes, changes + 1, 2):
            at = (
                furthest[diagonal + 1]
                if _goes_down(furthest, diagonal, changes)
                else furthest[diagonal - 1] + 1
            )
            to = at - diagonal
            while at < len(before) and to < len(after) and before[at] == after[to]:
                at, to = at + 1, to + 1
            furthest[diagonal] = at
            if at >= len(before) and to >= len(after):
                return trace
    return None


def _goes_down(furthest: dict[int, int], diagonal: int, changes: int) -> bool:
    """Whether the path enters this diagonal by an inserted word."""
    return diagonal == -changes or (
        diagonal != changes and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
    )
