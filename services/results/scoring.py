"""One answer becomes its scores, as lm-evaluation-harness scores it. Failures never come here."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from services.results.answer_filters import FilterPipeline, read_answer
from services.results.task_scoring import Metric, OutputType, TaskScoring, metric_names


@dataclass(frozen=True, slots=True)
class Target:
    """What is expected of a sample. `choices` are continuations, delimiter included, as the model sees."""

    choices: tuple[str, ...] = ()
    choice: int | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The log-probability of each choice (and whether greedy decoding would give it), or a text."""

    text: str = ""
    choice_logprobs: tuple[float, ...] = ()
    choice_is_greedy: tuple[bool, ...] = ()


LabelPair = tuple[int, int]
"""(gold, predicted), for metrics that need all samples at once."""


@dataclass(frozen=True, slots=True)
class Score:
    """`prediction`: the chosen choice, or the text that was read; "" when none could be (`is_unparsed`)."""

    prediction: str
    scores: Mapping[str, float | LabelPair] = field(default_factory=dict)
    is_unparsed: bool = False


class ScoringImpossible(ValueError):
    """The answer does not fit the task: a choice without log-probability, a metric the task cannot have."""


def score_answer(scoring: TaskScoring, target: Target, answer: Answer) -> Score:
    if scoring.output_type is OutputType.MULTIPLE_CHOICE:
        return _score_choices(scoring, target, answer)
    return _score_text(scoring, target, answer)


def _score_choices(scoring: TaskScoring, target: Target, answer: Answer) -> Score:
    given, asked = len(answer.choice_logprobs), len(target.choices)
    if given != asked or not asked:
        raise ScoringImpossible(f"{given} log-probabilities for {asked} choices")
    if target.choice is None:
        raise ScoringImpossible("the sample has no right choice")
    if any(map(math.isnan, answer.choice_logprobs)):
        # An engine that overflowed: the first choice would always win.
        raise ScoringImpossible("a log-probability is not a number")
    texts = tuple(choice.removeprefix(scoring.target_delimiter) for choice in target.choices)
    weighed = _WeighedChoices(texts, target.choice, answer)
    scores = {metric.name: _choice_metric(metric.name)(weighed) for metric in scoring.metrics}
    return Score(prediction=texts[weighed.chosen()], scores=scores)


@dataclass(frozen=True, slots=True)
class _WeighedChoices:
    texts: Sequence[str]
    gold: int
    answer: Answer

    def chosen(self) -> int:
        return _first_largest(self.answer.choice_logprobs)

    def accuracy(self) -> float:
        return float(self.chosen() == self.gold)

    def accuracy_per_character(self) -> float:
        return self._accuracy_per_length([len(text) for text in self.texts])

    def accuracy_per_byte(self) -> float:
        return self._accuracy_per_length([len(text.encode()) for text in self.texts])

    def greedy_match(self) -> float:
        greedy = self.answer.choice_is_greedy
        return float(self.gold < len(greedy) and greedy[self.gold])

    def label_pair(self) -> LabelPair:
        return (self.gold, self.chosen())

    def _accuracy_per_length(self, lengths: Sequence[int]) -> float:
        pairs = zip(self.answer.choice_logprobs, lengths, strict=True)
        return float(_first_largest([logprob / length for logprob, length in pairs]) == self.gold)


_CHOICE_METRICS: Mapping[str, Callable[[_WeighedChoices], float | LabelPair]] = {
    "acc": _WeighedChoices.accuracy,
    "acc_norm": _WeighedChoices.accuracy_per_character,
    "acc_bytes": _WeighedChoices.accuracy_per_byte,
    "exact_match": _WeighedChoices.greedy_match,
    "f1": _WeighedChoices.label_pair,
    "mcc": _WeighedChoices.label_pair,
}


def _choice_metric(name: str) -> Callable[[_WeighedChoices], float | LabelPair]:
    if name not in _CHOICE_METRICS:
        raise ScoringImpossible(f"no metric {name!r} for multiple choice")
    return _CHOICE_METRICS[name]


def _first_largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _score_text(scoring: TaskScoring, target: Target, answer: Answer) -> Score:
    pipelines = scoring.filters or (FilterPipeline(),)
    readings = [read_answer(pipeline, answer.text) for pipeline in pipelines]
    values = [_text_metric(metric, target, reading) for reading in readings for metric in scoring.metrics]
    prediction = next((reading for reading in readings if reading is not None), None)
    scores = dict(zip(metric_names(scoring), values, strict=True))
    return Score(prediction=prediction or "", scores=scores, is_unparsed=prediction is None)


def _text_metric(metric: Metric, target: Target, reading: str | None) -> float:
    if metric.name != "exact_match":
        raise ScoringImpossible(f"no metric {metric.name!r} for generated text")
    return float(reading is not None and any(metric.match.is_match(reading, text) for text in target.texts))
