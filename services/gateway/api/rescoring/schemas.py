"""Another scoring of stored answers, and the figures it gives."""

import json
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from proctor.v1 import sample_pb2
from services.gateway.api.runs.schemas import Figure
from services.gateway.http.fields import Text


def _json(value: object) -> str:
    """Raises ValueError for what JSON cannot write: NaN, half a character."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    return text


def _writable(value: dict[str, Any]) -> dict[str, Any]:
    _json(value)
    return value


class MetricWanted(BaseModel):
    """A metric with its options beside it, as in a metric_list."""

    model_config = ConfigDict(extra="allow")

    metric: Text = Field(min_length=1)

    @model_validator(mode="after")
    def options_can_be_sent(self) -> Self:
        _json(self.model_extra)
        return self


def _named(given: object) -> object:
    """Read as one form, so that what is wrong is told of the form that it has."""
    return {"metric": given} if isinstance(given, str) else given


Wanted = Annotated[MetricWanted, BeforeValidator(_named, json_schema_input_type=str | MetricWanted)]


class RescoreRequest(BaseModel):
    """Other metrics or filters for one task. What is recorded stays as it is."""

    model_config = ConfigDict(extra="forbid")

    task: Text = Field(min_length=1)
    metrics: list[Wanted] = Field(
        default_factory=list,
        description="Names, or entries of a metric_list with their options; empty means the task's own",
        examples=[["exact_match", {"metric": "exact_match", "ignore_case": True}]],
    )
    filters: list[Annotated[dict[str, Any], AfterValidator(_writable)]] | None = Field(
        default=None, description="In the form of a filter_list; null means the task's own, empty means none"
    )

    def metric_uses(self) -> list[sample_pb2.MetricUse]:
        return [_metric_use(metric) for metric in self.metrics]

    def filters_json(self) -> str | None:
        if self.filters is None:
            return None
        return _json(self.filters) if self.filters else ""


class UnscoredAnswer(BaseModel):
    sample: int = Field(description="Its number in the run, from 0")
    rollout: int = 0
    row_id: str = Field(default="", description="Of a data set's row")
    problem: str


class Rescored(BaseModel):
    job_id: str
    task: str
    figures: dict[str, Figure] = Field(description="By metric, under the other scoring")
    recorded: dict[str, Figure] = Field(description="By metric, as recorded")
    changed: int = Field(description="Answers that are taken as something else than recorded")
    unparsed: int
    recorded_unparsed: int
    unscored: int = Field(default=0, description="Answers that cannot be scored so; they are in no figure")
    unscored_answers: list[UnscoredAnswer] = Field(default_factory=list, description="The first 20 of them")


def _metric_use(metric: MetricWanted) -> sample_pb2.MetricUse:
    options = metric.model_extra
    return sample_pb2.MetricUse(name=metric.metric, options_json=_json(options) if options else "")
