"""An answer in words becomes its scores: each filter reads it, and each metric scores what was read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.results.scores.answer import UNREAD, Answer, Score, ScoreValue, ScoringImpossible, Target
from services.results.scores.answer_filters import FilterPipeline, read_answer
from services.results.scores.choice_metrics import SPOKEN_METRICS, TakenChoice
from services.results.scores.choice_reading import named_choice
from services.results.scores.task_scoring import Metric, TaskScoring
from services.results.scores.text_metrics import ReadText

_NOT_WEIGHED = Answer()


class Reading(Protocol):
    """What one filter made of an answer. `vote` stands for it where the rollouts of a sample vote."""

    @property
    def prediction(self) -> str | None: ...

    @property
    def vote(self) -> int: ...

    def score(self, metric: Metric) -> ScoreValue | None:
        """None where the reading lacks what the metric needs."""
        ...


@dataclass(frozen=True, slots=True)
class _ReadChoice:
    """A choice that was said in words, or none."""

    choice: TakenChoice

    @property
    def prediction(self) -> str | None:
        return None if self.vote == UNREAD else self.choice.texts[self.vote]

    @property
    def vote(self) -> int:
        return self.choice.label

    def score(self, metric: Metric) -> ScoreValue:
        if metric.name not in SPOKEN_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for a choice that is said in words")
        return SPOKEN_METRICS[metric.name](self.choice)


def score_text(scoring: TaskScoring, target: Target, answer: Answer) -> Score:
    return _score(scoring, lambda pipeline: ReadText(target, read_answer(pipeline, answer.text)))


def score_spoken_choice(scoring: TaskScoring, target: Target, texts: tuple[str, ...], said: str) -> Score:
    """What names no choice, or more than one, is unparsed: no choice ever stands in for it."""

    def read(pipeline: FilterPipeline) -> _ReadChoice:
        reading = read_answer(pipeline, said) or ""
        label = named_choice(reading, texts)
        if label is None and target.choice_texts:
            label = named_choice(reading, target.choice_texts)
        return _ReadChoice(TakenChoice(target, texts, UNREAD if label is None else label, _NOT_WEIGHED))

    return _score(scoring, read)


def _score(scoring: TaskScoring, read: Callable[[FilterPipeline], Reading]) -> Score:
    readings = {pipeline.name: read(pipeline) for pipeline in scoring.pipelines}
    predictions = {name: reading.prediction for name, reading in readings.items()}
    scores: dict[str, ScoreValue] = {}
    for scored in scoring.scored_metrics:
        reading = readings[scored.pipeline.name]
        value = reading.score(scored.metric)
        if value is None:
            predictions[scored.pipeline.name] = None
        elif scored.pipeline.is_majority and not isinstance(value, tuple):
            scores[scored.key] = (value, reading.vote)
        else:
            scores[scored.key] = value
    prediction = next((text for text in predictions.values() if text is not None), None)
    return Score(prediction or "", scores, is_unparsed=prediction is None)
