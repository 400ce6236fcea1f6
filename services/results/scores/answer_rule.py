"""What a metric is that reads an answer in its own way: as a number, as a choice, by a pattern."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Judgement:
    """`reading`: what the answer was taken for; None where nothing could be read, which is never right."""

    reading: str | None
    is_right: bool = False


class AnswerRule(Protocol):
    def check(self, expected: Sequence[str]) -> None:
        """Before there is an answer. Raises ScoringImpossible where `judge` would, whatever was answered."""
        ...

    def judge(self, answer: str, expected: Sequence[str]) -> Judgement:
        """Against the texts of which one is enough. Raises ScoringImpossible where none of them fits."""
        ...


def shown_targets(expected: Sequence[str]) -> str:
    """The first ones, in a sentence."""
    return ", ".join(f"{text!r:.80}" for text in expected[:5]) or "(missing)"
