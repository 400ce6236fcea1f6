"""Bodies of side-by-side answers and golden marks."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2
from services.gateway.api.dataset_runs.dataset_run import identity_of
from services.gateway.api.dataset_runs.rows import answer_fields, given_answer
from services.gateway.api.dataset_runs.schemas import DatasetRunIdentity, ShownAnswer
from services.gateway.http.fields import INT32_MAX, INT64_MAX, Text
from services.gateway.http.presentation import json_value, present


class AnswerNamed(BaseModel):
    """An answer by the number of its sample, as results list it, or by the id of its row."""

    model_config = ConfigDict(extra="forbid")

    sample: int | None = Field(default=None, ge=0, le=INT64_MAX)
    custom_id: Text = Field(default="", max_length=512, description="Replaces sample")
    rollout: int = Field(default=0, ge=0, le=INT32_MAX)

    @model_validator(mode="after")
    def is_named_once(self) -> Self:
        if (self.sample is None) == (not self.custom_id):
            raise ValueError("name the answer either by sample or by custom_id")
        return self

    def to_proto(self) -> answer_pb2.AnswerKey:
        return answer_pb2.AnswerKey(sample=self.sample or 0, rollout=self.rollout, row_id=self.custom_id)


class AnswersNamed(BaseModel):
    """Either all of them are marked or none."""

    model_config = ConfigDict(extra="forbid")

    answers: list[AnswerNamed] = Field(max_length=1000)


class GoldenCount(BaseModel):
    benchmark_id: str
    golden: int = Field(description="Golden answers after the call")


class AnswerBeside(ShownAnswer):
    text: str = Field(description="The answer of the model; empty for a failure")
    body: dict[str, Any] | None = Field(
        description="The provider's complete response, if more than text was requested"
    )


class RowBeside(BaseModel):
    custom_id: str = Field(description='"custom_id" or "id" of the row; else its number')
    row: int = Field(description="In the data set of the first run, from 0")
    prompt: str
    target: str
    is_differing: bool = Field(description="The answers differ")
    answers: list[AnswerBeside | None] = Field(description="In the order of the ids; null without an answer")


class SideBySide(BaseModel):
    benchmarks: list[DatasetRunIdentity] = Field(description="In the order of the ids")
    rows: list[RowBeside] = Field(description="In the order of the first benchmark")
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")


def side_by_side(runs: Sequence[run_pb2.Run], page: answer_pb2.ListSideBySideResponse) -> SideBySide:
    return SideBySide(
        benchmarks=[DatasetRunIdentity.model_validate(identity_of(run)) for run in runs],
        rows=[_row(row, runs) for row in page.rows],
        next_cursor=page.next_page_token or None,
    )


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


def _answer(recorded: outcome_pb2.RecordedOutcome, order: run_pb2.RunOrder) -> AnswerBeside:
    answer = given_answer(recorded.outcome) or outcome_pb2.Answer()
    body = json_value(answer.body_json)
    return present(AnswerBeside, recorded, **answer_fields(recorded, order), text=answer.text, body=body)
