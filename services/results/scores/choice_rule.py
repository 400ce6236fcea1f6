"""Right or wrong by the choice that an answer in words settles on (`choice_reading` says which one)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.results.scores.answer import ScoringImpossible
from services.results.scores.answer_rule import Judgement, shown_targets
from services.results.scores.choice_options import options_of
from services.results.scores.choice_reading import named_choice

LETTERS = tuple("ABCDEFGHIJ")


@dataclass(frozen=True, slots=True)
class SettledChoice:
    """An answer and a target name a choice by its text or by its letter, the first one being A."""

    choices: tuple[str, ...] = LETTERS

    def check(self, expected: Sequence[str]) -> None:
        self._right_labels(expected)

    def judge(self, answer: str, expected: Sequence[str]) -> Judgement:
        right = self._right_labels(expected)
        label = named_choice(answer, self.choices)
        return Judgement(None) if label is None else Judgement(self.choices[label], label in right)

    def _right_labels(self, expected: Sequence[str]) -> frozenset[int]:
        right = frozenset(self._labels(expected))
        if not right:
            raise ScoringImpossible(
                f"the target {shown_targets(expected)} is none of the choices {', '.join(self.choices):.200}"
            )
        return right

    def _labels(self, expected: Sequence[str]) -> Iterator[int]:
        stripped, options = [choice.strip() for choice in self.choices], options_of(self.choices)
        for text in expected:
            label = options.being(text) if options and text.strip() not in stripped else None
            if text.strip() in stripped:
                yield stripped.index(text.strip())
            elif label is not None:
                yield label
