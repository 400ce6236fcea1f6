"""Outcomes as messages: one message per batch."""

from collections.abc import Mapping
from dataclasses import replace

from proctor.v1 import outcome_pb2, work_messages_pb2
from proctor.values.outcome import Answer, Failure, FailureClass
from proctor.wire.values import ANSWER, FAILURE, TIMING, USAGE
from services.common.structured_logs import get_logger
from services.worker.engines.engine import Generated
from services.worker.execution.shard import Outcome, OutcomeBatch

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
    """An outcome that does not fit a message becomes a failure, so that its batch is still published."""
    try:
        return _outcome_to_proto(outcome)
    except (TypeError, ValueError) as error:
        log.error("outcome fits no message", sample=outcome.sample, error=repr(error))
        reason = f"The answer fits no message ({type(error).__name__})."
        return _outcome_to_proto(replace(outcome, result=Failure(FailureClass.PROVIDER_ERROR, reason)))


def _outcome_to_proto(outcome: Outcome) -> outcome_pb2.Outcome:
    shard, result = outcome.shard, outcome.result
    message = outcome_pb2.Outcome(
        sample=outcome.sample, rollout=shard.rollout, shard=shard.number, attempt=shard.attempt
    )
    if isinstance(result, Failure):
        FAILURE.fill(message.failure, result)
        return message
    answer = message.answer
    answer.SetInParent()
    if isinstance(result, Generated):
        answer.text, answer.finish_reason, answer.body_json = (
            result.text,
            result.finish_reason,
            result.body_json,
        )
    else:
        ANSWER.fill(answer, Answer(choices=result.choices))
    message.usage.SetInParent()
    USAGE.fill(message.usage, result.usage)
    message.timing.SetInParent()
    TIMING.fill(message.timing, result.timing)
    return message
