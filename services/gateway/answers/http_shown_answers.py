"""Answers side by side on their way out, between the contracts and HTTP."""

import json
from collections.abc import Sequence

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2
from services.gateway.answers.http_answer_bodies import AnswerBeside, RowBeside, RunBeside, SideBySide
from services.gateway.dataset_runs.http_dataset_run_id import benchmark_id
from services.gateway.dataset_runs.http_row_results import answer_status, row_error
from services.gateway.dataset_runs.http_shown_dataset_runs import model_name
from services.gateway.proto_words import state_word


def side_by_side(runs: Sequence[run_pb2.Run], page: answer_pb2.ListSideBySideResponse) -> SideBySide:
    return SideBySide(
        benchmarks=[_run(run) for run in runs],
        rows=[_row(row, runs) for row in page.rows],
        next_cursor=page.next_page_token or None,
    )


def _run(run: run_pb2.Run) -> RunBeside:
    return RunBeside(
        benchmark_id=benchmark_id(run.run_id),
        model_id=run.order.model,
        model_name=model_name(run.order.model),
        dataset_id=run.order.dataset_id,
        dataset_name=run.dataset_name,
        status=state_word(run.state),
    )


def _row(row: answer_pb2.SideBySideRow, runs: Sequence[run_pb2.Run]) -> RowBeside:
    answers = zip(row.answers, runs, strict=True)
    return RowBeside(
        custom_id=row.row_id or str(row.doc_id),
        row=row.doc_id,
        prompt=row.prompt,
        target=row.target,
        is_differing=row.is_differing,
        answers=[
            _answer(answer.outcome, run.order) if answer.HasField("outcome") else None
            for answer, run in answers
        ],
    )


def _answer(recorded: outcome_pb2.RecordedOutcome, order: run_pb2.RunOrder) -> AnswerBeside:
    outcome = recorded.outcome
    has_failed = outcome.WhichOneof("result") == "failure"
    # Also of one that could not be scored: the model has given it.
    said = outcome.failure.answer if has_failed else outcome.answer
    return AnswerBeside(
        sample=outcome.sample,
        rollout=outcome.rollout,
        status=answer_status(recorded.status, order),
        text=said.text,
        prediction=recorded.prediction,
        body=json.loads(said.body_json) if said.body_json else None,
        error=row_error(outcome.failure) if has_failed else None,
        scores=dict(recorded.scores),
        is_golden=recorded.is_golden,
        total_seconds=None if has_failed or recorded.is_reused else outcome.timing.total_seconds,
    )
