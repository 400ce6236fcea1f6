"""The answers of the list with its filters and its order, to the last one, as a file; and the golden ones."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2, summary_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.wire.enums import word_of
from services.gateway.api.dataset_runs.rows import given_answer
from services.gateway.backends.calls import Results, ResultsCalls
from services.gateway.http.downloads import FileHeaders, attachment, begin, file_response
from services.gateway.http.parameters import JobId
from services.gateway.http.presentation import optional
from services.gateway.pages.answers.filters import OutcomeFilters
from services.gateway.pages.rows.answer_marks import mark_of
from services.gateway.pages.table_files import FileForm, Value, streamed_file

# Reasons of judges are cut on pages that have many of them.
_CHUNK = 200
_COLUMNS = (
    "id",
    "sample",
    "rollout",
    "task",
    "status",
    "prompt",
    "request",
    "answer",
    "response",
    "prediction",
    "target",
    "reasoning",
    "failure",
    "mark",
    "seconds",
)
_NUMBERS = {"sample", "rollout", "seconds", "disagreement"}

router = APIRouter(prefix="/runs", include_in_schema=False)


@router.get("/{job_id}/results/export.{form}")
async def export_answers(
    results: ResultsCalls, job_id: JobId, form: FileForm, filters: Annotated[OutcomeFilters, Depends()]
) -> Response:
    metrics = _metrics(await results.summary(job_id))
    request = filters.to_proto(job_id)
    request.page_size, request.page_token = _CHUNK, ""
    first = await results.recorded_outcomes(request)
    columns = [*_COLUMNS, *(f"score_{name}" for name in metrics), *_verdict_columns(first.judges)]
    records = _records(results, request, metrics, first)
    numbers = {name for name in columns if name in _NUMBERS or name.startswith("score_")}
    return await streamed_file(f"answers_{job_id[:8]}", form, columns, records, numbers=numbers)


@router.get("/{job_id}/results/golden.jsonl")
async def export_golden(results: ResultsCalls, job_id: JobId) -> StreamingResponse:
    """Chats that end with the golden answer, for training."""
    request = export_pb2.ExportGoldenAnswersRequest(run_ids=[job_id], form=export_pb2.GOLDEN_FORM_TRAINING)
    download = await begin(
        results.exports.ExportGoldenAnswers(request), export_pb2.ExportGoldenAnswersResponse()
    )
    name = attachment(f"golden_{job_id[:8]}.jsonl", is_ascii=True)
    return file_response(download, FileHeaders(name, "application/jsonl"))


def _verdict_columns(judges: Sequence[outcome_pb2.AnswerJudge]) -> Sequence[str]:
    """One for all judges and two for each, with the beginning of its run's id where two have one name."""
    if not judges:
        return ()
    names = [f"{judge.model}:{judge.prompt}" for judge in judges]
    unique = [
        f"{name} {judge.run_id[:8]}" if names.count(name) > 1 else name
        for name, judge in zip(names, judges, strict=True)
    ]
    return ["disagreement", *(f"{what} {name}" for name in unique for what in ("verdict", "reason"))]


def _verdicts(
    recorded: outcome_pb2.RecordedOutcome, judges: Sequence[outcome_pb2.AnswerJudge]
) -> Iterator[Value]:
    """Of a judge with several verdicts on an answer all of them, in order."""
    if not judges:
        return
    yield optional(recorded, "disagreement")
    for judge in judges:
        said = [one for one in recorded.verdicts if one.judge.run_id == judge.run_id]
        yield (
            " | ".join(one.verdict or word_of(outcome_pb2.OutcomeStatus, one.status) for one in said) or None
        )
        yield "\n\n".join(one.reason for one in said) or None


def _metrics(summary: summary_pb2.RunSummary) -> Sequence[str]:
    return list(dict.fromkeys(figure.metric for task in summary.tasks for figure in task.metrics))


async def _records(
    results: Results,
    request: results_pb2.ListOutcomesRequest,
    metrics: Sequence[str],
    page: results_pb2.ListOutcomesResponse,
) -> AsyncGenerator[Sequence[Value]]:
    """From the first page on: a page without answers may be followed by others."""
    judges = page.judges
    while True:
        for recorded in page.outcomes:
            scores = (recorded.scores.get(name) for name in metrics)
            yield [*_record(recorded), *scores, *_verdicts(recorded, judges)]
        request.page_token = page.next_page_token
        if not request.page_token:
            return
        page = await results.recorded_outcomes(request)


def _record(recorded: outcome_pb2.RecordedOutcome) -> Sequence[Value]:
    outcome = recorded.outcome
    answer = given_answer(outcome)
    return (
        recorded.row_id or str(recorded.doc_id),
        outcome.sample,
        outcome.rollout,
        recorded.task,
        word_of(outcome_pb2.OutcomeStatus, recorded.status),
        recorded.prompt,
        recorded.request_json or None,
        answer.text if answer else None,
        (answer.body_json or None) if answer else None,
        recorded.prediction,
        recorded.target,
        answer.reasoning if answer else None,
        outcome.failure.message if outcome.HasField("failure") else None,
        mark_of(recorded),
        outcome.timing.total_seconds or None,
    )
