"""Answers side by side, and marks on them, as they come in and go out over HTTP.
Answers side by side on their way out, between the contracts and HTTP.
"""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2
from services.gateway.api.dataset_runs.dataset_run import model_name
from services.gateway.api.dataset_runs.rows import answer_status, row_error
from services.gateway.api.dataset_runs.schemas import RowError
from services.gateway.errors.run_ids import benchmark_id
from services.gateway.http.fields import Text
from services.gateway.http.presentation import state_word

_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1


class AnswerNamed(BaseModel):
    """By the number of its sample, as results show it, or by the id of its row."""

    model_config = ConfigDict(extra="forbid")

    sample: int | None = Field(default=None, ge=0, le=_INT64_MAX)
    custom_id: Text = Field(default="", max_length=512, description="In place of sample")
    rollout: int = Field(default=0, ge=0, le=_INT32_MAX)

    @model_validator(mode="after")
    def is_named_once(self) -> "AnswerNamed":
        if (self.sample is None) == (not self.custom_id):
            raise ValueError("name the answer either by sample or by custom_id")
        return self


class AnswersNamed(BaseModel):
    """All of them are marked, or none."""

    model_config = ConfigDict(extra="forbid")

    answers: list[AnswerNamed] = Field(max_length=1000)


class GoldenCount(BaseModel):
    benchmark_id: str
    golden: int = Field(description="Golden answers that it has now")


class RunBeside(BaseModel):
    benchmark_id: str
    model_id: str
    model_name: str
    dataset_id: str
    dataset_name: str
    status: str


class AnswerBeside(BaseModel):
    sample: int = Field(description="Names the answer in its run, together with rollout")
    rollout: int
    status: str = Field(description="answered (not scored), scored, unparsed or failed")
    text: str = Field(description="As the model said it; empty where the machinery failed")
    prediction: str = Field(description="What the answer was taken as")
    body: dict[str, Any] | None = Field(
        description="The whole answer of the provider, where more was asked for than a text"
    )
    error: RowError | None
    scores: dict[str, float]
    is_golden: bool
    total_seconds: float | None = Field(description="To the last token; null where it was not asked for here")


class RowBeside(BaseModel):
    custom_id: str = Field(description='"custom_id" or "id" of the row; else its number')
    row: int = Field(description="In the data set of the first run, from 0")
    prompt: str
    target: str
    is_differing: bool = Field(description="Two models said something different")
    answers: list[AnswerBeside | None] = Field(
        description="In the order of the ids; null where there is none"
    )


class SideBySide(BaseModel):
    benchmarks: list[RunBeside] = Field(description="In the order of the ids")
    rows: list[RowBeside] = Field(description="In the order of the first benchmark")
    next_cursor: str | None = Field(description="Null on the last page; a page may be short, even empty")


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
