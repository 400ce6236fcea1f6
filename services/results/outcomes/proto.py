"""Outcomes between the contract and the domain."""

from typing import Literal

from proctor.v1 import outcome_pb2, work_messages_pb2
from services.results.outcomes.outcome import (
    Failure,
    ListedOutcome,
    ModelAnswer,
    Outcome,
    OutcomeBatch,
    believable_seconds,
    believable_tokens,
)
from services.results.runs.proto import timing_to_proto, usage_to_proto
from services.results.samples.sample import prompt_as_text, target_as_text
from services.results.scoring.answer import Answer
from services.results.values import FailureClass, Timing, TokenUsage

_OptionalTime = Literal["queue_seconds", "first_token_seconds", "between_tokens_seconds"]
_FAILURE_CLASSES: dict[int, FailureClass] = {int(known): known for known in FailureClass}


def batch_from_proto(message: work_messages_pb2.OutcomeBatch) -> OutcomeBatch:
    outcomes = [outcome_from_proto(outcome) for outcome in message.outcomes]
    return OutcomeBatch(message.run_id, message.epoch, outcomes, dict(message.environment))


def outcome_from_proto(message: outcome_pb2.Outcome) -> Outcome:
    """Numbers that no answer has are left out: whatever a server told, its run is to end."""
    usage, timing = message.usage, message.timing
    return Outcome(
        message.sample,
        message.rollout,
        message.shard,
        message.attempt,
        _answer(message.answer) if message.HasField("answer") else _failure(message.failure),
        TokenUsage(
            believable_tokens(usage.prompt_tokens),
            believable_tokens(usage.completion_tokens),
            believable_tokens(usage.cached_tokens),
            believable_tokens(usage.reasoning_tokens),
        ),
        Timing(
            believable_seconds(timing.total_seconds) or 0.0,
            _told_seconds(timing, "queue_seconds"),
            _told_seconds(timing, "first_token_seconds"),
            _told_seconds(timing, "between_tokens_seconds"),
        ),
    )


def _told_seconds(timing: outcome_pb2.Timing, name: _OptionalTime) -> float | None:
    return believable_seconds(getattr(timing, name)) if timing.HasField(name) else None


def _answer(message: outcome_pb2.Answer) -> ModelAnswer:
    choices = message.choices
    if not choices:
        return ModelAnswer(Answer(message.text), message.finish_reason, body_json=message.body_json)
    logprobs = tuple([choice.logprob for choice in choices])
    is_greedy = tuple([choice.is_greedy for choice in choices])
    token_counts = tuple([choice.token_count for choice in choices])
    return ModelAnswer(Answer(message.text, logprobs, is_greedy), message.finish_reason, token_counts)


def _failure(message: outcome_pb2.Failure) -> Failure:
    """A class that this version does not know is the provider's fault until a later version says better."""
    known = _FAILURE_CLASSES.get(message.failure_class, FailureClass.PROVIDER_ERROR)
    return Failure(known, message.message or "The worker gave no reason.")


def recorded_to_proto(listed: ListedOutcome) -> outcome_pb2.RecordedOutcome:
    sample, scored = listed.sample, listed.scored
    scores = scored.scores.items()
    return outcome_pb2.RecordedOutcome(
        task=listed.task.task,
        outcome=outcome_to_proto(scored.outcome),
        status=outcome_pb2.OutcomeStatus.ValueType(scored.status),
        doc_id=sample.doc_id,
        prompt=prompt_as_text(sample.prompt),
        choices=sample.target.choices,
        target=target_as_text(sample.target, listed.task.scoring.target_delimiter),
        prediction=scored.prediction,
        scores={metric: value for metric, value in scores if isinstance(value, float)},
        digest=sample.digest,
        is_reused=scored.is_reused,
        row_id=sample.row_id,
        is_golden=listed.is_golden,
    )


def outcome_to_proto(outcome: Outcome) -> outcome_pb2.Outcome:
    result = outcome.result
    message = outcome_pb2.Outcome(
        sample=outcome.sample,
        rollout=outcome.rollout,
        shard=outcome.shard,
        attempt=outcome.attempt,
        usage=usage_to_proto(outcome.usage),
        timing=timing_to_proto(outcome.timing),
    )
    if isinstance(result, Failure):
        failure_class = outcome_pb2.FailureClass.ValueType(result.failure_class)
        said = _answer_to_proto(result.answer) if result.answer else None
        failure = outcome_pb2.Failure(failure_class=failure_class, message=result.message, answer=said)
        message.failure.CopyFrom(failure)
    else:
        message.answer.CopyFrom(_answer_to_proto(result))
    return message


def _answer_to_proto(result: ModelAnswer) -> outcome_pb2.Answer:
    answer = result.answer
    columns = zip(answer.choice_logprobs, answer.choice_is_greedy, result.choice_token_counts, strict=True)
    return outcome_pb2.Answer(
        text=answer.text,
        finish_reason=result.finish_reason,
        choices=[
            outcome_pb2.ChoiceScore(logprob=logprob, is_greedy=is_greedy, token_count=tokens)
            for logprob, is_greedy, tokens in columns
        ],
        body_json=result.body_json,
    )
