"""Answers side by side, and marks on them, as they come in and go out over HTTP."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.gateway.dataset_runs.http_dataset_run_bodies import RowError
from services.gateway.http_text import Text

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
