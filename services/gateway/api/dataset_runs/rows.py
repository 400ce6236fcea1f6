"""Answers to the rows of a data set, each in the form of a line that an OpenAI batch puts out."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from services.gateway.api.dataset_runs.dataset_run import model_name, throughput
from services.gateway.api.dataset_runs.schemas import DatasetRunResults, RowError, RowResponse, RowResult
from services.gateway.api.runs.job import ran_seconds
from services.gateway.errors.run_ids import benchmark_id
from services.gateway.http.presentation import failure_word, state_word, status_word


def dataset_run_results(
    run: run_pb2.Run, page: results_pb2.ListOutcomesResponse, now: datetime
) -> DatasetRunResults:
    return DatasetRunResults(
        benchmark_id=benchmark_id(run.run_id),
        model_id=run.order.model,
        model_name=model_name(run.order.model),
        dataset_id=run.order.dataset_id,
        dataset_name=run.dataset_name,
        status=state_word(run.state),
        total_time_seconds=round(ran_seconds(run, now), 3),
        throughput=throughput(run, now),
        results=[_row_result(recorded, run.order) for recorded in page.outcomes],
        next_cursor=page.next_page_token or None,
    )


def _row_result(recorded: outcome_pb2.RecordedOutcome, order: run_pb2.RunOrder) -> RowResult:
    outcome = recorded.outcome
    has_failed = outcome.WhichOneof("result") == "failure"
    return RowResult(
        custom_id=recorded.row_id or str(recorded.doc_id),
        response=_response(outcome, order.model),
        error=row_error(outcome.failure) if has_failed else None,
        row=recorded.doc_id,
        sample=outcome.sample,
        rollout=outcome.rollout,
        status=answer_status(recorded.status, order),
        prompt=recorded.prompt,
        target=recorded.target,
        prediction=recorded.prediction,
        scores=dict(recorded.scores),
        is_golden=recorded.is_golden,
        total_seconds=None if has_failed or recorded.is_reused else outcome.timing.total_seconds,
    )


def answer_status(status: outcome_pb2.OutcomeStatus.ValueType, order: run_pb2.RunOrder) -> str:
    """Without a metric there is nothing that an answer was scored by."""
    is_kept_only = status == outcome_pb2.OUTCOME_STATUS_SCORED and not order.metrics
    return "answered" if is_kept_only else status_word(status)


def row_error(failure: outcome_pb2.Failure) -> RowError:
    return RowError(code=failure_word(failure.failure_class), message=failure.message)


def _response(outcome: outcome_pb2.Outcome, model: str) -> RowResponse | None:
    """Also of an answer that could not be scored: the model has given one."""
    answer = outcome.answer if outcome.HasField("answer") else outcome.failure.answer
    if not (outcome.HasField("answer") or outcome.failure.HasField("answer")):
        return None
    return RowResponse(body=_whole_body(answer) or _text_body(answer, outcome.usage, model))


def _whole_body(answer: outcome_pb2.Answer) -> dict[str, Any]:
    """As the provider sent it. A completion says its text where clients look for it as well."""
    body: dict[str, Any] = json.loads(answer.body_json) if answer.body_json else {}
    for choice in _objects(body.get("choices")):
        choice.setdefault("message", _message(choice.get("text", "")))
    return body


def _objects(given: Any) -> Iterable[dict[str, Any]]:
    return (each for each in given if isinstance(each, dict)) if isinstance(given, list) else ()


def _text_body(answer: outcome_pb2.Answer, usage: outcome_pb2.TokenUsage, model: str) -> dict[str, Any]:
    choice = {"index": 0, "message": _message(answer.text), "finish_reason": answer.finish_reason or None}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }


def _message(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}
