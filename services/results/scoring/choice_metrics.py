"""Metrics of multiple choice: by the chosen choice, or by the log-probabilities of all."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.outcome import Answer, ChoiceScore
from services.results.scoring.score import UNREAD, LabelPair, ScoringImpossible, ScoringTarget
from services.results.scoring.text_match import squad_exact_match, squad_f1


@dataclass(frozen=True, slots=True)
class ChosenChoice:
    """`texts`: the choices without delimiter; `label`: the chosen one, or UNREAD.

    `scores` of the choices are empty where the model generated its choice.
    """

    target: ScoringTarget
    texts: Sequence[str]
    label: int
    scores: Sequence[ChoiceScore] = ()

    def accuracy(self) -> float:
        return self._is_right(self.label)

    def accuracy_per_character(self) -> float:
        return self._accuracy_per_length([len(text) for text in self._own_texts])

    def accuracy_per_byte(self) -> float:
        return self._accuracy_per_length([len(text.encode()) for text in self._own_texts])

    def greedy_match(self) -> float:
        """Greedy decoding would have given a right choice."""
        return float(any(one.is_greedy and self._is_right(label) for label, one in enumerate(self.scores)))

    def right_mass(self) -> float:
        """Share of probability on the right choices: mc2 of TruthfulQA (Lin, Hilton and Evans 2022)."""
        return sum(mass for label, mass in enumerate(self._masses) if self._is_right(label))

    def brier_score(self) -> float:
        """Squared distance of the probabilities from 1 for the right choice and 0 for others (Brier 1950)."""
        right = self._right("brier_score needs")
        return sum((mass - (label == right)) ** 2 for label, mass in enumerate(self._masses))

    def right_logprob(self) -> float:
        logprob = self.scores[self._right("likelihood needs")].logprob
        if logprob == -math.inf:
            raise ScoringImpossible("the right choice is impossible, and its log-probability no number")
        return logprob

    def masses_with_right(self) -> tuple[int, Sequence[float]]:
        """What code that makes the figure of `brier_score` gets, as in lm-evaluation-harness."""
        return self._right("brier_score needs"), self._masses

    def logprobs_with_right(self) -> tuple[int, Sequence[float]]:
        """What code that makes the figure of `likelihood` gets, as in lm-evaluation-harness."""
        return self._right("likelihood needs"), [one.logprob for one in self.scores]

    def label_pair(self) -> LabelPair:
        return (self._right("f1 and mcc need"), self.label)

    def squad_exact_match(self) -> float:
        return self._best_against_texts(squad_exact_match)

    def squad_f1(self) -> float:
        return self._best_against_texts(squad_f1)

    @property
    def _masses(self) -> Sequence[float]:
        """The share of probability of each choice."""
        # Subtracted before `exp`, which would give 0 for all long choices.
        largest = max(one.logprob for one in self.scores)
        if largest == -math.inf:
            raise ScoringImpossible("no choice is possible")
        masses = [math.exp(one.logprob - largest) for one in self.scores]
        total = sum(masses)
        return [mass / total for mass in masses]

    def _right(self, metrics: str) -> int:
        if self.target.choice is None:
            raise ScoringImpossible(f"{metrics} one right choice, and the sample has several")
        return self.target.choice

    @property
    def _own_texts(self) -> Sequence[str]:
        """Without the ending that all choices share, as lm-evaluation-harness counts their characters."""
        ending = self.target.choice_ending
        return [text.removesuffix(ending) for text in self.texts] if ending else self.texts

    def _is_right(self, label: int) -> float:
        # Either is set, as `ScoringTarget` says.
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
        chosen = (self.target.choice_texts or self.texts)[self.label]
        return max(measure(chosen, text) for text in self.target.texts)


ChoiceMetric = Callable[[ChosenChoice], float | LabelPair]

# Metrics that need no log-probabilities.
GENERATED_METRICS: Mapping[str, ChoiceMetric] = {
    "acc": ChosenChoice.accuracy,
    "exact_match": ChosenChoice.accuracy,
    "f1": ChosenChoice.label_pair,
    "mcc": ChosenChoice.label_pair,
    "squad_em": ChosenChoice.squad_exact_match,
    "squad_f1": ChosenChoice.squad_f1,
}

LOGLIKELIHOOD_METRICS: Mapping[str, ChoiceMetric] = {
    **GENERATED_METRICS,
    "acc_norm": ChosenChoice.accuracy_per_character,
    "acc_bytes": ChosenChoice.accuracy_per_byte,
    "exact_match": ChosenChoice.greedy_match,
    "mc2": ChosenChoice.right_mass,
    "brier_score": ChosenChoice.brier_score,
    "likelihood": ChosenChoice.right_logprob,
}
# What code gets that makes the figure of all answers, where it is no number or pair of labels.
VALUES_FOR_CODE: Mapping[str, Callable[[ChosenChoice], tuple[int, Sequence[float]]]] = {
    "brier_score": ChosenChoice.masses_with_right,
    "likelihood": ChosenChoice.logprobs_with_right,
}


def first_largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def has_logprobs_only(answer: Answer) -> bool:
    """False where an engine overflowed: some log-probabilities are not numbers, or above all numbers."""
    return all(choice.logprob < math.inf for choice in answer.choices)
