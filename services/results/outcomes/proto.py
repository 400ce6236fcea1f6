"""Converts outcomes between messages and domain."""

from dataclasses import replace

from proctor.v1 import outcome_pb2, work_messages_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import FailureClass, Outcome
from proctor.values.reasoning.answers import with_reasoning_apart
from proctor.wire.enums import member_of, number_of
from proctor.wire.proofs import proved_samples
from proctor.wire.values import OUTCOME
from services.results.outcomes.outcome import ListedOutcome, OutcomeBatch, plausible, plausible_environment
from services.results.outcomes.record_logged import LoggedOutcome
from services.results.samples.row_request import row_request
from services.results.samples.sample import targets_as_texts
from services.results.scoring.score import ScoreValue


def batch_from_proto(message: work_messages_pb2.OutcomeBatch) -> OutcomeBatch:
    outcomes = [outcome_from_proto(outcome) for outcome in message.outcomes]
    return OutcomeBatch(message.run_id, message.epoch, outcomes, plausible_environment(message.environment))


def drop_unproved(message: work_messages_pb2.OutcomeBatch, key: str) -> int:
    """Removes outcomes of samples that no dispatch proof in the message covers; returns their number."""
    proved = proved_samples(message, key)
    kept = [
        outcome
        for outcome in message.outcomes
        if outcome.sample in proved.get((outcome.shard, outcome.attempt, outcome.rollout), ())
    ]
    dropped = len(message.outcomes) - len(kept)
    if dropped:
        del message.outcomes[:]
        message.outcomes.extend(kept)
    return dropped


def outcome_from_proto(message: outcome_pb2.Outcome) -> Outcome:
    """Implausible numbers of a server are left out, so that they do not block the run."""
    if not message.HasField("answer"):
        _complete(message.failure)
    return plausible(OUTCOME.from_proto(message))


def logged_from_proto(message: run_record_pb2.LoggedOutcome) -> LoggedOutcome:
    scores: dict[str, ScoreValue] = {
        metric: (score.first, score.second) if score.HasField("second") else score.first
        for metric, score in message.scores.items()
    }
    outcome = outcome_from_proto(message.outcome)
    return LoggedOutcome(outcome, scores, message.prediction, message.is_unparsed)


def _complete(failure: outcome_pb2.Failure) -> None:
    """A class that this version does not know counts as the provider's fault."""
    if member_of(FailureClass, failure.failure_class) is None:
        failure.failure_class = number_of(FailureClass.PROVIDER_ERROR)
    if not failure.message:
        failure.message = "The worker gave no reason."


def recorded_to_proto(listed: ListedOutcome) -> outcome_pb2.RecordedOutcome:
    """The answer is shown with its reasoning apart; it is stored as the model's server sent it."""
    sample, scored = listed.sample, listed.scored
    scores = scored.scores.items()
    targets = targets_as_texts(sample.target, listed.task.scoring.target_delimiter)
    recorded = outcome_pb2.RecordedOutcome(
        task=listed.task.task,
        outcome=OUTCOME.to_proto(_with_reasoning_apart(scored.outcome)),
        status=number_of(scored.status),
        doc_id=sample.doc_id,
        prompt=sample.prompt.as_text,
        choices=sample.target.choices,
        target=" | ".join(targets),
        targets=targets if len(targets) > 1 else (),
        prediction=scored.prediction,
        scores={metric: value for metric, value in scores if isinstance(value, float)},
        digest=sample.digest,
        is_reused=scored.is_reused,
        row_id=sample.row_id,
        request_json=row_request(sample),
        is_golden=listed.is_golden,
        is_marked_wrong=listed.is_marked_wrong,
    )
    if scored.recorded_at is not None:
        recorded.recorded_at.FromDatetime(scored.recorded_at)
    return recorded


def _with_reasoning_apart(outcome: Outcome) -> Outcome:
    if outcome.answer is None:
        return outcome
    apart = with_reasoning_apart(outcome.answer)
    if apart is outcome.answer:
        return outcome
    failure = outcome.failure
    return replace(outcome, result=replace(failure, answer=apart) if failure else apart)


def brief_to_proto(listed: ListedOutcome) -> outcome_pb2.RecordedOutcome:
    """A recorded outcome without what was asked and its target. The caller leaves out the answer's texts."""
    recorded = recorded_to_proto(listed)
    for name in ("prompt", "request_json", "choices", "target"):
        recorded.ClearField(name)
    return recorded
