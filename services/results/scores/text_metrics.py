"""The metrics of a generated text, as it was read, against the texts that are expected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from services.results.scores.answer import UNREAD, NumberPair, ScoringImpossible, Target
from services.results.scores.number_reading import named_number
from services.results.scores.overlap_metrics import OVERLAP_METRICS, Overlap
from services.results.scores.squad_match import squad_exact_match, squad_f1
from services.results.scores.task_scoring import Metric

NUMBER_METRICS = frozenset({"pearson", "spearman"})


def _exact_match(metric: Metric, reading: str, expected: str) -> float:
    return float(metric.match.is_match(reading, expected))


def _contains(metric: Metric, reading: str, expected: str) -> float:
    return float(metric.match.is_contained(expected, reading))


def _squad_em(_: Metric, reading: str, expected: str) -> float:
    return squad_exact_match(reading, expected)


def _squad_f1(_: Metric, reading: str, expected: str) -> float:
    return squad_f1(reading, expected)


MATCH_METRICS: Mapping[str, Callable[[Metric, str, str], float]] = {
    "exact_match": _exact_match,
    "contains": _contains,
    "squad_em": _squad_em,
    "squad_f1": _squad_f1,
}
"""Of a reading and one of the accepted texts: the best one counts."""

TEXT_METRICS = frozenset(MATCH_METRICS) | frozenset(OVERLAP_METRICS) | NUMBER_METRICS


@dataclass(frozen=True)
class ReadText:
    """`prediction`: what a filter left of the answer; None where it found nothing, which matches no text."""

    target: Target
    prediction: str | None

    @property
    def vote(self) -> int:
        """The same for the same text, and exact as a double."""
        if self.prediction is None:
            return UNREAD
        return int.from_bytes(blake2b(self.prediction.encode(), digest_size=6).digest())

    def score(self, metric: Metric) -> float | NumberPair | None:
        """None: the answer names no number, which the metric needs."""
        if metric.name in MATCH_METRICS:
            return self._best_match(metric)
        if metric.name in NUMBER_METRICS:
            return self._numbers
        if metric.name not in OVERLAP_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for generated text")
        measure, figure = OVERLAP_METRICS[metric.name]
        return figure(self._overlap, measure)

    def _best_match(self, metric: Metric) -> float:
        if self.prediction is None:
            return 0.0
        match = MATCH_METRICS[metric.name]
        return max([match(metric, self.prediction, text) for text in self.target.texts], default=0.0)

    @cached_property
    def _numbers(self) -> NumberPair | None:
        """The right number, and the one that the answer names."""
        expected = named_number(self.target.texts[0]) if self.target.texts else None
        if expected is None:
            raise ScoringImpossible("the sample's target is no number")
        named = None if self.prediction is None else named_number(self.prediction)
        return None if named is None else (expected, named)

    @cached_property
    def _overlap(self) -> Overlap:
        return Overlap(self.prediction or "", self.target.texts, self.target.wrong_texts)
