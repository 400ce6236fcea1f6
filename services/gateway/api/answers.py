"""Answers of several runs side by side, and golden answers: mark, unmark and export."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.values.outcome import MAX_MARKED_ANSWERS
from proctor.values.plain import INT32_MAX
from proctor.values.row_fields import MAX_ROW_ID_CHARACTERS
from proctor.wire.enums import value_of
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.dataset_runs.requests import OutcomeConditions
from services.gateway.api.dataset_runs.rows import answer_fields, given_answer
from services.gateway.api.dataset_runs.schemas import (
    AnswerShown,
    DatasetRun,
    DatasetRunIdentity,
    get_dataset_run,
    identity_of,
)
from services.gateway.auth.identity import User
from services.gateway.backends.calls import Results, ResultsCalls, SchedulerCalls
from services.gateway.http.api_errors import benchmark_id, run_id_of, with_parameter_names
from services.gateway.http.downloads import FileHeaders, attachment, begin, file_response
from services.gateway.http.errors import DatasetRunNotPlanned, EmptyId
from services.gateway.http.parameters import JSON_INT_MAX, Cursor, Keywords, RequestBody, Text
from services.gateway.http.paths import DATASET_RUNS
from services.gateway.http.presentation import json_value, present
from services.gateway.http.problem import Described, problems

# Six ids of 35 characters each, with room for spaces.
_MAX_IDS_CHARACTERS = 1024
_FILE: Described = {200: {"description": "The file", "content": {"application/jsonl": {}}}}
_ID = "bm_[0-9a-f]{32}"
Ids = Annotated[
    Text,
    Keywords({"pattern": rf"^\s*{_ID}\s*(,\s*{_ID}\s*)*$"}),
    Query(max_length=_MAX_IDS_CHARACTERS, description='"bm_…,bm_…", up to 6'),
]

ChangesPerPage = Annotated[int, Query(ge=1, le=500)]

router = APIRouter(prefix=DATASET_RUNS, tags=["answers"])


# As in the check below: a null, or an empty id, stands for none.
_NAMED_ONCE: list[JsonValue] = [
    {
        "required": ["sample"],
        "properties": {"sample": {"type": "integer"}, "custom_id": {"maxLength": 0}},
    },
    {
        "required": ["custom_id"],
        "properties": {"sample": {"type": "null"}, "custom_id": {"minLength": 1}},
    },
]


class AnswerNamed(RequestBody):
    """An answer by the number of its sample, as results list it, or by the id of its row."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _NAMED_ONCE})

    sample: int | None = Field(default=None, ge=0, le=JSON_INT_MAX)
    custom_id: Text = Field(default="", max_length=MAX_ROW_ID_CHARACTERS, description="Replaces sample")
    rollout: int = Field(default=0, ge=0, le=INT32_MAX)

    @model_validator(mode="after")
    def is_named_once(self) -> Self:
        if (self.sample is None) == (not self.custom_id):
            raise ValueError("name the answer either by sample or by custom_id")
        return self

    def to_proto(self) -> answer_pb2.AnswerKey:
        return answer_pb2.AnswerKey(sample=self.sample or 0, rollout=self.rollout, row_id=self.custom_id)


class AnswersNamed(RequestBody):
    """Either all of them are marked or none."""

    answers: list[AnswerNamed] = Field(max_length=MAX_MARKED_ANSWERS)

    def request(
        self, run_id: str, user: str, *, is_golden: bool = False, is_marked_wrong: bool = False
    ) -> answer_pb2.MarkAnswersRequest:
        """The call that sets the mark, or removes marks where none is given."""
        return answer_pb2.MarkAnswersRequest(
            run_id=run_id,
            answers=[answer.to_proto() for answer in self.answers],
            is_golden=is_golden,
            is_marked_wrong=is_marked_wrong,
            user=user,
        )


class MarkChangeShown(BaseModel):
    sample: int = Field(description="Number of the sample in the run")
    rollout: int
    is_golden: bool = Field(description="Where neither is true, the mark was removed")
    is_marked_wrong: bool
    user: str = Field(description="Who changed it")
    changed_at: datetime


class MarkChangePage(BaseModel):
    changes: list[MarkChangeShown] = Field(description="Latest first")
    next_cursor: str | None


class MarkCount(BaseModel):
    benchmark_id: str
    golden_count: int = Field(description="Golden answers after the call")
    wrong_count: int = Field(description="Answers that are marked as wrong after the call")


class AnswerBesideShown(AnswerShown):
    text: str = Field(description="The answer of the model without its reasoning; empty for a failure")
    reasoning: str = Field(description="Reasoning before the answer; empty where there was none")
    finish_reason: str = Field(description='"stop", "length" or another word of the provider')
    body: dict[str, Any] | None = Field(
        description="The provider's complete response, if more than text was requested"
    )


class RowBeside(BaseModel):
    custom_id: str = Field(description='"custom_id" or "id" of the row; else its number')
    row: int = Field(description="In the data set of the first run, from 0")
    prompt: str
    target: str
    is_differing: bool = Field(description="The answers differ")
    answers: list[AnswerBesideShown | None] = Field(
        description="In the order of the ids; null without an answer"
    )


class SideBySide(BaseModel):
    benchmarks: list[DatasetRunIdentity] = Field(description="In the order of the ids")
    rows: list[RowBeside] = Field(description="In the order of the first benchmark")
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")


def _row(row: answer_pb2.SideBySideRow, runs: Sequence[run_pb2.Run]) -> RowBeside:
    return present(
        RowBeside,
        row,
        custom_id=row.row_id or str(row.doc_id),
        row=row.doc_id,
        answers=[
            _answer(answer.outcome, run.order) if answer.HasField("outcome") else None
            for answer, run in zip(row.answers, runs, strict=True)
        ],
    )


def _answer(recorded: outcome_pb2.RecordedOutcome, order: run_pb2.RunOrder) -> AnswerBesideShown:
    answer = given_answer(recorded.outcome) or outcome_pb2.Answer()
    body = json_value(answer.body_json)
    return present(AnswerBesideShown, recorded, answer, **answer_fields(recorded, order), body=body)


async def _named_runs(scheduler: SchedulerCalls, ids: Ids) -> list[run_pb2.Run]:
    named = [given.strip() for given in ids.split(",")]
    if "" in named:
        raise EmptyId(parameter="ids")
    run_ids = [run_id_of(given) for given in named]
    return await asyncio.gather(*(get_dataset_run(scheduler, run_id) for run_id in run_ids))


NamedRuns = Annotated[list[run_pb2.Run], Depends(_named_runs)]


@router.get(
    "/side-by-side",
    responses=problems(400, 404, 409, 422, 503),
    summary="Answers of two to six runs to the same rows",
)
async def side_by_side(
    results: ResultsCalls,
    runs: NamedRuns,
    chosen: Annotated[OutcomeConditions, Depends()],
    *,
    differing: Annotated[bool, Query(description="Only rows whose answers differ")] = False,
    limit: Annotated[int, Query(ge=1, le=200, description="A page of large rows has fewer")] = 20,
    cursor: Cursor = "",
) -> SideBySide:
    request = answer_pb2.ListSideBySideRequest(
        run_ids=[run.run_id for run in runs],
        only_differing=differing,
        filter=chosen.filter,
        page_size=limit,
        page_token=cursor,
    )
    try:
        page = await results.answers.ListSideBySide(request)
    except RemoteError as error:
        raise _translated(error, runs) from error
    return SideBySide(
        benchmarks=[DatasetRunIdentity.model_validate(identity_of(run)) for run in runs],
        rows=[_row(row, runs) for row in page.rows],
        next_cursor=page.next_page_token or None,
    )


@router.get(
    "/golden/export",
    response_class=StreamingResponse,
    responses=_FILE | problems(404, 409, 422, 503),
    summary="Golden answers as training or test data, one JSON object per line",
)
async def export_golden(
    results: ResultsCalls, runs: NamedRuns, form: Literal["training", "test"]
) -> StreamingResponse:
    request = export_pb2.ExportGoldenAnswersRequest(
        run_ids=[run.run_id for run in runs], form=value_of(export_pb2.GoldenForm, form)
    )
    chunks = results.exports.ExportGoldenAnswers(request)
    try:
        download = await begin(chunks, export_pb2.ExportGoldenAnswersResponse())
    except RemoteError as error:
        raise _translated(error, runs) from error
    name = attachment(f"golden_{form}.jsonl", is_ascii=True)
    return file_response(download, FileHeaders(name, "application/jsonl"))


@router.put(
    "/{benchmark_id}/golden",
    responses=problems(400, 404, 409, 422, 503),
    summary="Mark answers as golden, all or none",
)
async def mark(results: ResultsCalls, run: DatasetRun, named: AnswersNamed, user: User) -> MarkCount:
    return await _marked(results, run, named.request(run.run_id, user, is_golden=True))


@router.put(
    "/{benchmark_id}/wrong",
    responses=problems(400, 404, 409, 422, 503),
    summary="Mark answers as wrong, all or none; scores stay as they are",
)
async def mark_wrong(results: ResultsCalls, run: DatasetRun, named: AnswersNamed, user: User) -> MarkCount:
    return await _marked(results, run, named.request(run.run_id, user, is_marked_wrong=True))


@router.delete(
    "/{benchmark_id}/golden",
    responses=problems(400, 404, 409, 422, 503),
    summary="Remove marks, also those as wrong, all or none",
)
async def unmark(results: ResultsCalls, run: DatasetRun, named: AnswersNamed, user: User) -> MarkCount:
    return await _marked(results, run, named.request(run.run_id, user))


@router.get(
    "/{benchmark_id}/golden/changes",
    responses=problems(400, 404, 422, 503),
    summary="Who marked answers and who removed marks, latest first",
)
async def list_mark_changes(
    results: ResultsCalls, run: DatasetRun, limit: ChangesPerPage = 100, cursor: Cursor = ""
) -> MarkChangePage:
    request = answer_pb2.ListMarkChangesRequest(run_id=run.run_id, page_size=limit, page_token=cursor)
    page = await results.answers.ListMarkChanges(request)
    changes = [present(MarkChangeShown, change) for change in page.changes]
    return MarkChangePage(changes=changes, next_cursor=page.next_page_token or None)


async def _marked(results: Results, run: run_pb2.Run, marks: answer_pb2.MarkAnswersRequest) -> MarkCount:
    try:
        marked = await results.answers.MarkAnswers(marks)
    except RemoteError as error:
        raise _translated(error, [run]) from error
    return present(MarkCount, marked, benchmark_id=benchmark_id(run.run_id))


def _translated(error: RemoteError, runs: Sequence[run_pb2.Run]) -> Exception:
    """The error for the client. Results has no record of a run before it is planned."""
    if error.reason != "RUN_NOT_FOUND" or error.kind is not ErrorKind.NOT_FOUND:
        return with_parameter_names(error)
    unknown = [run.run_id for run in runs if run.run_id == error.facts.get("run_id")] or [runs[0].run_id]
    return DatasetRunNotPlanned(benchmark_id=benchmark_id(unknown[0]))
