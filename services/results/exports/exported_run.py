"""A run on its way into a file: what it was, its figures, and a record of plain values per outcome."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.results.outcomes.listed_outcome import ListedOutcome
from services.results.outcomes.outcome import Failure, ModelAnswer, OutcomeStatus
from services.results.runs.run_record import RunRecord
from services.results.runs.run_summary import RunSummary
from services.results.samples.sample_text import prompt_as_text, target_as_text
from services.results.scores.answer import Answer
from services.results.scores.task_scoring import metric_names

OutcomeRecord = Mapping[str, object]
"""Field to text, number, None, a sequence or a mapping of these: what JSON can say."""


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """`environment` is what the engines said of themselves."""

    record: RunRecord
    summary: RunSummary
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every key that a score of the run may have, in the order of the tasks."""
        names = (name for scoring in self.record.plan.scorings for name in metric_names(scoring))
        return tuple(dict.fromkeys(names))

    def file_stem(self, task: str = "") -> str:
        """What the file is called, without its ending; one that is not whole says so."""
        facts = self.record.plan.facts
        words = [facts.suite, task, facts.model, self.record.plan.run_id[:8]]
        words += ["partial"] if self.summary.is_partial else []
        return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word) for word in words if word)


def outcome_record(listed: ListedOutcome) -> OutcomeRecord:
    """In the order in which the formats show the fields. What is undefined is None, never NaN."""
    scored, sample, task = listed.scored, listed.sample, listed.task
    outcome, usage, timing = scored.outcome, scored.outcome.usage, scored.outcome.timing
    return {
        "task": task.task,
        "doc_id": sample.doc_id,
        "rollout": outcome.rollout,
        "status": OutcomeStatus(scored.status).name.lower(),
        "prompt": prompt_as_text(sample.prompt),
        "choices": sample.target.choices,
        "target": target_as_text(sample.target, task.scoring.target_delimiter),
        "prediction": scored.prediction,
        **_answer_fields(outcome.answer),
        **_failure_fields(outcome.result),
        "scores": scored.scores,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_seconds": None if scored.is_reused else timing.total_seconds,
        "queue_seconds": timing.queue_seconds,
        "first_token_seconds": timing.first_token_seconds,
        "between_tokens_seconds": timing.between_tokens_seconds,
        "is_reused": scored.is_reused,
        "digest": sample.digest.hex(),
    }


def _answer_fields(said: ModelAnswer | None) -> OutcomeRecord:
    said = said or ModelAnswer(Answer())
    logprobs = [_finite(logprob) for logprob in said.answer.choice_logprobs]
    return {"answer": said.answer.text, "finish_reason": said.finish_reason, "choice_logprobs": logprobs}


def _failure_fields(result: ModelAnswer | Failure) -> OutcomeRecord:
    if not isinstance(result, Failure):
        return {"failure_class": "", "failure_message": ""}
    return {"failure_class": result.failure_class.word, "failure_message": result.message}


def _finite(number: float) -> float | None:
    """An impossible choice weighs minus infinity, which JSON cannot say."""
    return number if math.isfinite(number) else None
