"""Outcomes as they travel: one message per batch, built once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proctor.v1 import outcome_pb2, work_messages_pb2
from services.common.structured_logs import get_logger
from services.worker.engines.engine import FailureClass, Generated, ScoredChoices, Timing, Usage
from services.worker.execution.shard import Failure, Outcome, OutcomeBatch

_FAILURE_CLASSES = {
    failure: outcome_pb2.FailureClass.Value(f"FAILURE_CLASS_{failure.upper()}") for failure in FailureClass
}

log = get_logger()


def batch_to_bytes(batch: OutcomeBatch, worker_id: str, environment: Mapping[str, str]) -> bytes:
    return work_messages_pb2.OutcomeBatch(
        run_id=batch.run_id,
        epoch=batch.epoch,
        worker_id=worker_id,
        outcomes=[_outcome_or_failure(outcome) for outcome in batch.outcomes],
        environment=environment,
    ).SerializeToString()


def _outcome_or_failure(outcome: Outcome) -> outcome_pb2.Outcome:
    """One that no message can hold keeps no other of its batch from being sent."""
    try:
        return _outcome(outcome)
    except (TypeError, ValueError) as error:
        log.error("outcome fits no message", sample=outcome.sample, error=repr(error))
        reason = f"The answer fits no message ({type(error).__name__})."
        return _outcome(replace(outcome, result=Failure(FailureClass.PROVIDER_ERROR, reason)))


def _outcome(outcome: Outcome) -> outcome_pb2.Outcome:
    shard, result = outcome.shard, outcome.result
    message = outcome_pb2.Outcome(
        sample=outcome.sample, rollout=shard.rollout, shard=shard.number, attempt=shard.attempt
    )
    match result:
        case Generated():
            message.answer.SetInParent()
            message.answer.text = result.text
            message.answer.finish_reason = result.finish_reason
            message.answer.body_json = result.body_json
        case ScoredChoices():
            _add_choices(message.answer, result)
        case Failure():
            message.failure.failure_class = _FAILURE_CLASSES[result.failure_class]
            message.failure.message = result.message
            return message
    _set_usage(message.usage, result.usage)
    _set_timing(message.timing, result.timing)
    return message


def _add_choices(answer: outcome_pb2.Answer, scored: ScoredChoices) -> None:
    answer.SetInParent()
    for choice in scored.choices:
        answer.choices.add(logprob=choice.logprob, is_greedy=choice.is_greedy, token_count=choice.token_count)


def _set_usage(message: outcome_pb2.TokenUsage, usage: Usage) -> None:
    message.prompt_tokens = usage.prompt_tokens
    message.completion_tokens = usage.completion_tokens
    message.cached_tokens = usage.cached_tokens
    message.reasoning_tokens = usage.reasoning_tokens


def _set_timing(message: outcome_pb2.Timing, timing: Timing) -> None:
    message.total_seconds = timing.total_seconds
    if timing.queue_seconds is not None:
        message.queue_seconds = timing.queue_seconds
    if timing.first_token_seconds is not None:
        message.first_token_seconds = timing.first_token_seconds
    if timing.between_tokens_seconds is not None:
        message.between_tokens_seconds = timing.between_tokens_seconds
