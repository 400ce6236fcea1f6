"""Answers to the rows of a data set, each in the form of an output line of an OpenAI batch."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.openai import CompletionHead, choice, completion, message, request_id
from proctor.wire.enums import word_of
from proctor.wire.values import USAGE
from services.gateway.api.dataset_runs.schemas import (
    DatasetRunResults,
    RowError,
    RowResponse,
    RowResult,
    VerdictShown,
    identity_of,
    throughput,
)
from services.gateway.api.runs.job import ran_seconds
from services.gateway.http.presentation import json_value, optional, present


def dataset_run_results(
    run: run_pb2.Run, page: results_pb2.ListOutcomesResponse, now: datetime
) -> DatasetRunResults:
    return present(
        DatasetRunResults,
        page,
        **identity_of(run),
        total_time_seconds=round(ran_seconds(run, now), 3),
        throughput=throughput(run, now),
        results=[_row_result(recorded, run) for recorded in page.outcomes],
        next_cursor=page.next_page_token or None,
    )


def answer_fields(recorded: outcome_pb2.RecordedOutcome, order: run_pb2.RunOrder) -> dict[str, object]:
    """Fields that every body about an answer has."""
    outcome = recorded.outcome
    has_failed = outcome.WhichOneof("result") == "failure"
    # Without metrics an answer is not scored.
    is_kept_only = recorded.status == outcome_pb2.OUTCOME_STATUS_SCORED and not order.metrics
    return {
        "sample": outcome.sample,
        "rollout": outcome.rollout,
        "status": "answered" if is_kept_only else word_of(outcome_pb2.OutcomeStatus, recorded.status),
        "error": _row_error(outcome.failure) if has_failed else None,
        "total_seconds": None if has_failed or recorded.is_reused else outcome.timing.total_seconds,
    }


def judged_fields(recorded: outcome_pb2.RecordedOutcome) -> dict[str, object]:
    """What judges say of the answer."""
    return {
        "verdicts": [verdict_shown(one) for one in recorded.verdicts],
        "disagreement": optional(recorded, "disagreement"),
    }


def verdict_shown(verdict: outcome_pb2.AnswerVerdict) -> VerdictShown:
    judge = verdict.judge
    return present(VerdictShown, verdict, judge, job_id=judge.run_id, model_id=judge.model)


def given_answer(outcome: outcome_pb2.Outcome) -> outcome_pb2.Answer | None:
    """The model's answer, also one that could not be scored; None for other failures."""
    if outcome.HasField("answer"):
        return outcome.answer
    return outcome.failure.answer if outcome.failure.HasField("answer") else None


def _row_result(recorded: outcome_pb2.RecordedOutcome, run: run_pb2.Run) -> RowResult:
    answer = given_answer(recorded.outcome)
    return present(
        RowResult,
        recorded,
        **answer_fields(recorded, run.order),
        **judged_fields(recorded),
        custom_id=recorded.row_id or str(recorded.doc_id),
        row=recorded.doc_id,
        request=json_value(recorded.request_json),
        response=RowResponse(body=_body(answer, recorded, run)) if answer else None,
    )


def _row_error(failure: outcome_pb2.Failure) -> RowError:
    return RowError(code=word_of(outcome_pb2.FailureClass, failure.failure_class), message=failure.message)


def _body(
    answer: outcome_pb2.Answer, recorded: outcome_pb2.RecordedOutcome, run: run_pb2.Run
) -> dict[str, Any]:
    """The provider's response, else a chat completion. Choices of text completions have a message too."""
    if not answer.body_json:
        outcome = recorded.outcome
        completion_id = request_id(run.run_id, outcome.sample)
        head = CompletionHead(completion_id, recorded.recorded_at.seconds, run.order.model)
        given = choice(answer.text, answer.finish_reason, reasoning=answer.reasoning)
        return completion(head, [given], USAGE.from_proto(outcome.usage))
    body: dict[str, Any] = json.loads(answer.body_json)
    for each in _objects(body.get("choices")):
        each.setdefault("message", message(each.get("text", "")))
    return body


def _objects(given: Any) -> Iterable[dict[str, Any]]:
    return (each for each in given if isinstance(each, dict)) if isinstance(given, list) else ()
