"""Scores answers, as lm-evaluation-harness scores them. Failures never come here."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import CUT, with_reasoning_apart
from proctor.values.scoring import OutputType, are_letters
from services.results.scoring.answer_filters import (
    FilterPipeline,
    left_for_code,
    read_answer,
    read_rest,
    text_for_code,
)
from services.results.scoring.choice_metrics import (
    GENERATED_METRICS,
    LOGLIKELIHOOD_METRICS,
    VALUES_FOR_CODE,
    ChosenChoice,
    first_largest,
    has_logprobs_only,
)
from services.results.scoring.choices.reading import named_choice
from services.results.scoring.compiled_scoring import CompiledMetric, CompiledScoring
from services.results.scoring.corpus_metrics import LENGTHS
from services.results.scoring.ports import AnswerScorer, AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.score import (
    UNREAD,
    MetricResult,
    Score,
    ScoreValue,
    ScoringImpossible,
    ScoringTarget,
)
from services.results.scoring.text_metrics import ReadText

# How long the event loop is held at a time.
_HOLD_SECONDS = 0.005


class ReadAnswer(Protocol):
    """An answer read by one filter. `prediction`: None where it found nothing."""

    @property
    def prediction(self) -> str | None: ...

    def score(self, metric: CompiledMetric) -> MetricResult: ...


@dataclass(frozen=True, slots=True)
class _ReadChoice:
    """A choice that the model generated, or none."""

    choice: ChosenChoice

    @property
    def prediction(self) -> str | None:
        return None if self.choice.label == UNREAD else self.choice.texts[self.choice.label]

    def score(self, metric: CompiledMetric) -> MetricResult:
        if metric.name not in GENERATED_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for a choice that is given in words")
        return MetricResult(GENERATED_METRICS[metric.name](self.choice), self.prediction, self.choice.label)


def score_text(
    scoring: CompiledScoring,
    target: ScoringTarget,
    answer: Answer,
    filtered: Mapping[str, object] | None = None,
) -> Score:
    """`filtered`: what filters by code left of it, by pipeline."""
    given = filtered or {}
    score = _score(scoring, lambda pipeline: _read_text(pipeline, target, answer, given))
    if not scoring.coded_metrics:
        return score
    read = {
        pipeline.name: left_for_code(pipeline, given[pipeline.name])
        if pipeline.coded_steps
        else text_for_code(pipeline, answer.text, target.choice_texts)
        for pipeline in scoring.pipelines
    }
    return replace(score, read=read)


def _read_text(
    pipeline: FilterPipeline, target: ScoringTarget, answer: Answer, filtered: Mapping[str, object]
) -> ReadText:
    prediction = _read(pipeline, answer, target.choice_texts, filtered)
    return ReadText(target, prediction, answer.code_result, answer.verdict, is_cut=_is_cut(answer))


def _read(
    pipeline: FilterPipeline, answer: Answer, choices: Sequence[str], filtered: Mapping[str, object]
) -> str | None:
    # Without them no pipeline has code, which takes longer to find out.
    if filtered and pipeline.coded_steps:
        return read_rest(pipeline, filtered[pipeline.name], choices)
    return read_answer(pipeline, answer.text, choices)


def _is_cut(answer: Answer) -> bool:
    """Whether the model had no more tokens: its conclusion may be missing."""
    return answer.finish_reason == CUT


def score_generated_choice(
    scoring: CompiledScoring,
    target: ScoringTarget,
    texts: tuple[str, ...],
    answer: Answer,
    filtered: Mapping[str, object] | None = None,
) -> Score:
    """An answer that names no choice, or more than one, is unparsed; no default is assumed."""

    def read(pipeline: FilterPipeline) -> _ReadChoice:
        text, is_cut = _read(pipeline, answer, texts, filtered or {}) or "", _is_cut(answer)
        label = named_choice(text, texts, target.choice_texts, is_cut=is_cut)
        if label is None and target.choice_texts and not are_letters(texts):
            label = named_choice(text, target.choice_texts, is_cut=is_cut)
        return _ReadChoice(ChosenChoice(target, texts, UNREAD if label is None else label))

    return _score(scoring, read)


def _score(scoring: CompiledScoring, read: Callable[[FilterPipeline], ReadAnswer]) -> Score:
    """Unparsed where no filter leaves text that each metric can read; the first that does predicts."""
    prediction: str | None = None
    scores: dict[str, ScoreValue] = {}
    counts: dict[str, Sequence[float]] = {}
    of_pipelines = iter(scoring.scored_metrics)
    for pipeline in scoring.pipelines:
        read_answer = read(pipeline)
        predictions: list[str | None] = []
        for scored in islice(of_pipelines, len(scoring.metrics)):
            if scored.metric.coded:
                continue
            result = read_answer.score(scored.metric)
            predictions.append(result.prediction)
            if result.counts:
                counts[scored.key] = result.counts
            if result.value is None:
                continue
            if pipeline.is_majority and not isinstance(result.value, tuple):
                scores[scored.key] = (result.value, result.vote)
            else:
                scores[scored.key] = result.value
        # A choice is read even where the task has no metric left.
        found = predictions or [read_answer.prediction]
        if prediction is None and None not in found:
            prediction = found[0]
    return Score(prediction or "", scores, is_unparsed=prediction is None, values=counts)


def score_answer(
    scoring: CompiledScoring,
    target: ScoringTarget,
    answer: Answer,
    filtered: Mapping[str, object] | None = None,
) -> Score:
    if scoring.is_unscored:
        return Score("")
    if scoring.coded_pipelines and not {each.name for each in scoring.coded_pipelines} <= set(filtered or ()):
        raise ScoringImpossible("it is read by Python code of the task, which was not executed")
    if not (scoring.keeps_reasoning or scoring.is_loglikelihood):
        answer = without_reasoning(answer)
    if scoring.output_type is OutputType.GENERATE_UNTIL:
        return score_text(scoring, target, answer, filtered)
    if scoring.output_type.is_of_given_text:
        return _score_given_text(scoring, target, answer)
    needs_target = len(scoring.coded_metrics) < len(scoring.metrics)
    if needs_target and target.choice is None and not target.right_choices:
        raise ScoringImpossible("the sample has no right choice")
    texts = target.texts_of_choices(scoring.target_delimiter)
    if scoring.is_generated:
        return score_generated_choice(scoring, target, texts, answer, filtered)
    return _score_by_loglikelihood(scoring, target, texts, answer)


def without_reasoning(answer: Answer) -> Answer:
    """The one place where reasoning is left out, before any filter and metric."""
    apart = with_reasoning_apart(answer)
    # A text without reasoning is scored as it is, white space included.
    return answer if apart is answer else replace(apart, text=apart.text.strip())


async def score_answers(
    scorer: AnswerScorer,
    scoring: CompiledScoring,
    uncompiled: UncompiledScoring,
    answers: Sequence[AnswerToScore],
) -> Sequence[Scored]:
    """Scores answers: quick ones here, others by the scorer, which bounds slow patterns and metrics."""
    quick = scoring.quick_characters
    others = [each for each in answers if len(each.answer.text) > quick]
    by_scorer = iter(await scorer.score(uncompiled, others) if others else ())
    scored = []
    pause_at = time.monotonic() + _HOLD_SECONDS
    for each in answers:
        scored.append(next(by_scorer) if len(each.answer.text) > quick else _try_score(scoring, each))
        # Each is quick, and a batch may have thousands.
        if time.monotonic() > pause_at:
            await asyncio.sleep(0)
            pause_at = time.monotonic() + _HOLD_SECONDS
    return scored


def _try_score(scoring: CompiledScoring, answer: AnswerToScore) -> Scored:
    try:
        return score_answer(scoring, *answer)
    except ScoringImpossible as impossible:
        return impossible


def _score_by_loglikelihood(
    scoring: CompiledScoring, target: ScoringTarget, texts: tuple[str, ...], answer: Answer
) -> Score:
    given, wanted = len(answer.choices), len(texts)
    if given != wanted or not wanted:
        raise ScoringImpossible(f"{given} log-probabilities for {wanted} choices")
    if not has_logprobs_only(answer):
        # The first choice would always win.
        raise ScoringImpossible("a log-probability is not a number")
    chosen = first_largest([choice.logprob for choice in answer.choices])
    choice = ChosenChoice(target, texts, chosen, answer.choices)
    scores: dict[str, ScoreValue] = {}
    values: dict[str, object] = {}
    for metric in scoring.metrics:
        if metric.coded:
            continue
        if metric.name not in LOGLIKELIHOOD_METRICS:
            raise ScoringImpossible(f"no metric {metric.name!r} for multiple choice")
        if metric.aggregation and metric.name in VALUES_FOR_CODE:
            values[metric.name] = VALUES_FOR_CODE[metric.name](choice)
        else:
            scores[metric.name] = LOGLIKELIHOOD_METRICS[metric.name](choice)
    return Score(prediction=texts[chosen], scores=scores, values=values)


def _score_given_text(scoring: CompiledScoring, target: ScoringTarget, answer: Answer) -> Score:
    """Raises ScoringImpossible where there is no log-probability, or that of an impossible text."""
    if len(answer.choices) != 1 or len(target.choices) != 1:
        raise ScoringImpossible(f"{len(answer.choices)} log-probabilities for one text")
    [one], [text] = answer.choices, target.choices
    # Of a text that was rewritten for the model, the words and bytes of the original one may count.
    [counted] = target.texts or (text,)
    if not math.isfinite(one.logprob):
        raise ScoringImpossible("a log-probability is not a finite number")
    scores: dict[str, float] = {}
    counts: dict[str, Sequence[float]] = {}
    for metric in scoring.metrics:
        if metric.coded:
            continue
        if metric.name == "acc":
            scores["acc"] = float(one.is_greedy)
        elif metric.name in LENGTHS:
            counts[metric.name] = [one.logprob, LENGTHS[metric.name](counted)]
        else:
            raise ScoringImpossible(f"no metric {metric.name!r} for a given text")
    return Score(prediction=text, scores=scores, values=counts)
