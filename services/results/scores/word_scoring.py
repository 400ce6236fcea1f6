"""An answer in words becomes its scores: each filter reads it, and each metric scores what was read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.results.scores.answer import UNREAD, Answer, Score, ScoreValue, ScoringImpossible, Taken, Target
from services.results.scores.answer_filters import FilterPipeline, read_answer
from services.results.scores.choice_metrics import SPOKEN_METRICS, TakenChoice
from services.results.scores.choice_reading import named_choice
from services.results.scores.task_scoring import Metric, TaskScoring
from services.results.scores.text_metrics import ReadText

_NOT_WEIGHED = Answer()


class Reading(Protocol):
    """What one filter made of an answer. `prediction`: None where it found nothing."""

    @property
    def prediction(self) -> str | None: ...

    def score(self, metric: Metric) -> Taken: ...


@dataclass(frozen=True, slots=True)
class _ReadChoice:
    """A choice that was said in words, or none."""

    choice: TakenChoice

    @property
    def prediction(self) -> str | None:
        return None if self.choice.label == UNREAD else self.choice.texts[self.choice.label]

    def score(self, metric: Metric) -> Taken:
        if metric.name not in SPOKEN_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for a choice that is said in words")
        return Taken(SPOKEN_METRICS[metric.name](self.choice), self.prediction, self.choice.label)


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
    """What a filter left is unread where a metric can make nothing of it; the first one says what it is."""
    readings = {pipeline.name: read(pipeline) for pipeline in scoring.pipelines}
    said: dict[str, list[str | None]] = {name: [] for name in readings}
    scores: dict[str, ScoreValue] = {}
    for scored in scoring.scored_metrics:
        taken = readings[scored.pipeline.name].score(scored.metric)
        said[scored.pipeline.name].append(taken.prediction)
        if taken.value is None:
            continue
        if scored.pipeline.is_majority and not isinstance(taken.value, tuple):
            scores[scored.key] = (taken.value, taken.vote)
        else:
            scores[scored.key] = taken.value
    # A choice is read also where no metric is left of the task's.
    found = [one or [readings[name].prediction] for name, one in said.items()]
    prediction = next((one[0] for one in found if None not in one), None)
    return Score(prediction or "", scores, is_unparsed=prediction is None)
