"""The metrics of multiple choice: over the choice that was taken, and over how all of them were weighed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.outcome import Answer, ChoiceScore
from services.results.scoring.answer import UNREAD, LabelPair, ScoringImpossible, Target
from services.results.scoring.text_match import squad_exact_match, squad_f1


@dataclass(frozen=True, slots=True)
class TakenChoice:
    """`texts`: the choices without delimiter; `label`: the one that was taken, or UNREAD.

    `scores` of the choices are empty where the model generated its choice.
    """

    target: Target
    texts: Sequence[str]
    label: int
    scores: Sequence[ChoiceScore] = ()

    def accuracy(self) -> float:
        return self._is_right(self.label)

    def accuracy_per_character(self) -> float:
        return self._accuracy_per_length([len(text) for text in self.texts])

    def accuracy_per_byte(self) -> float:
        return self._accuracy_per_length([len(text.encode()) for text in self.texts])

    def greedy_match(self) -> float:
        """Greedy decoding would have given a right choice."""
        return float(any(one.is_greedy and self._is_right(label) for label, one in enumerate(self.scores)))

    def right_mass(self) -> float:
        """Share of probability on the right choices: mc2 of TruthfulQA (Lin, Hilton and Evans 2022)."""
        largest = max(one.logprob for one in self.scores)
        if largest == -math.inf:
            raise ScoringImpossible("no choice is possible")
        masses = [math.exp(one.logprob - largest) for one in self.scores]
        return sum(mass for label, mass in enumerate(masses) if self._is_right(label)) / sum(masses)

    def label_pair(self) -> LabelPair:
        if self.target.choice is None:
            raise ScoringImpossible("f1 and mcc need one right choice, and the sample has several")
        return (self.target.choice, self.label)

    def squad_exact_match(self) -> float:
        return self._best_against_texts(squad_exact_match)

    def squad_f1(self) -> float:
        return self._best_against_texts(squad_f1)

    def _is_right(self, label: int) -> float:
        several = self.target.right_choices
        return float(label in several if several else label == self.target.choice)

    def _accuracy_per_length(self, lengths: Sequence[int]) -> float:
        if 0 in lengths:
            raise ScoringImpossible("a choice is empty and has no log-probability per character")
        pairs = zip(self.scores, lengths, strict=True)
        return self._is_right(first_largest([one.logprob / length for one, length in pairs]))

    def _best_against_texts(self, measure: Callable[[str, str], float]) -> float:
        if not self.target.texts:
            raise ScoringImpossible("the sample has no texts to hold the choice against")
        if self.label == UNREAD:
            return 0.0
        said = (self.target.choice_texts or self.texts)[self.label]
        return max(measure(said, text) for text in self.target.texts)


ChoiceMetric = Callable[[TakenChoice], float | LabelPair]

SPOKEN_METRICS: Mapping[str, ChoiceMetric] = {
    "acc": TakenChoice.accuracy,
    "exact_match": TakenChoice.accuracy,
    "f1": TakenChoice.label_pair,
    "mcc": TakenChoice.label_pair,
    "squad_em": TakenChoice.squad_exact_match,
    "squad_f1": TakenChoice.squad_f1,
}
"""All that can be had where a choice is said in words, without log-probabilities."""

WEIGHED_METRICS: Mapping[str, ChoiceMetric] = {
    **SPOKEN_METRICS,
    "acc_norm": TakenChoice.accuracy_per_character,
    "acc_bytes": TakenChoice.accuracy_per_byte,
    "exact_match": TakenChoice.greedy_match,
    "mc2": TakenChoice.right_mass,
}


def first_largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def has_logprobs_only(answer: Answer) -> bool:
    """False where an engine overflowed: some log-probabilities are no numbers, or above all numbers."""
    return all(choice.logprob < math.inf for choice in answer.choices)
