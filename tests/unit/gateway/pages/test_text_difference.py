"""Words that one text has and another has not: least edits, whole texts, and bounded work."""

import random
import re

import pytest

from services.gateway.pages.compare.samples import MAX_CHANGES, MAX_CHARACTERS, own_pieces


def own_words(base: str, other: str) -> list[str]:
    return [word for piece in own_pieces(base, other) if piece.is_own for word in piece.text.split()]


@pytest.mark.parametrize(
    ("base", "other", "own"),
    [
        ("the cat sat", "the dog sat", ["dog"]),
        ("", "new text", ["new", "text"]),
        ("old", "", []),
        ("a b c", "b c d", ["d"]),
        ("3,5", "3.5", ["."]),
    ],
)
def test_only_words_of_its_own_are_highlighted(base: str, other: str, own: list[str]) -> None:
    assert own_words(base, other) == own


def test_pieces_are_the_whole_text_and_as_few_words_as_possible_are_highlighted() -> None:
    draw = random.Random(7)
    for _ in range(500):
        base, other = ([draw.choice("abc") for _ in range(draw.randrange(12))] for _ in range(2))
        pieces = own_pieces(" ".join(base), " ".join(other))
        assert "".join(piece.text for piece in pieces) == " ".join(other)
        highlighted = sum(len(re.findall(r"\w+", piece.text)) for piece in pieces if piece.is_own)
        assert highlighted == len(other) - longest_common(base, other)


def longest_common(first: list[str], second: list[str]) -> int:
    row = [0] * (len(second) + 1)
    for word in first:
        before = row[:]
        for index, other in enumerate(second):
            row[index + 1] = before[index] + 1 if word == other else max(before[index + 1], row[index])
    return row[-1]


def test_texts_with_little_in_common_are_shown_without_highlights() -> None:
    assert own_words("a " * MAX_CHANGES, "b " * MAX_CHANGES) == []


def test_long_text_is_cut_and_says_so() -> None:
    pieces = own_pieces("x", "y" * (MAX_CHARACTERS + 5))
    assert pieces[-1].text.endswith("(5 more characters)")
