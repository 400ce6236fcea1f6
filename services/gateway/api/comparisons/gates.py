"""Whether a run is worse than its base by more than a margin."""

import uuid
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.v1 import gate_service_pb2 as gate_pb2
from proctor.values.comparison import (
    DEFAULT_MARGIN_POINTS,
    GATE_MAX_FAILED_SHARE,
    GATE_MAX_UNPARSED_SHARE,
    MAX_MARGIN_POINTS,
)
from services.gateway.api.comparisons.conclusions import DifferenceShown
from services.gateway.api.comparisons.routes import (
    ComparedJob,
    DifferingConditionShown,
    compared_job,
    difference_shown,
    run_names,
)
from services.gateway.backends.calls import BackendCalls
from services.gateway.http.parameters import MAX_FIELDS, MAX_TASKS, RequestBody, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

router = APIRouter(prefix=BENCHMARKING, tags=["comparisons"])

Share = Annotated[float, Field(ge=0, le=1)]


class GateRequest(RequestBody):
    """A completed job and the one it is compared to, over the same suite or data set."""

    job_id: uuid.UUID
    base_job_id: uuid.UUID
    margin_points: float = Field(
        default=DEFAULT_MARGIN_POINTS,
        ge=0,
        le=MAX_MARGIN_POINTS,
        description="Accepted drop in points: hundredths of a share",
    )
    alpha: float = Field(
        default=0.05, gt=0, lt=0.5, description="Chance of a wrong decision in any task, for each of the two"
    )
    metrics: dict[Text, Text] = Field(
        default_factory=dict,
        max_length=MAX_TASKS,
        description="Metric by task; other tasks have their main one",
    )
    tasks: list[Text] = Field(
        default_factory=list, max_length=MAX_TASKS, description="Empty means all that both runs share"
    )
    whole: bool = Field(default=False, description="Gate the figure of the benchmark instead of each task")
    may_differ: list[Text] = Field(
        default_factory=list,
        max_length=MAX_FIELDS,
        description="Evaluation conditions in which the two may differ",
        examples=[["temperature"]],
    )
    max_failed_share: Share = Field(
        default=GATE_MAX_FAILED_SHARE,
        description="Of the samples of a task; with more failed or without a figure it is inconclusive",
    )
    max_unparsed_share: Share = Field(
        default=GATE_MAX_UNPARSED_SHARE,
        description="Of the samples of a task; with more unparsed answers it is inconclusive",
    )

    def to_proto(self) -> comparison_service_pb2.GateRunRequest:
        return comparison_service_pb2.GateRunRequest(
            run_id=str(self.job_id),
            base_run_id=str(self.base_job_id),
            is_whole=self.whole,
            **self.model_dump(exclude={"job_id", "base_job_id", "whole"}),
        )


class GatedTaskShown(BaseModel):
    """Run minus base, in the unit of the metric. Null means undefined."""

    task: str | None = Field(description="Null for the benchmark as a whole")
    metric: str
    verdict: str = Field(description="pass, fail or inconclusive")
    reason: str = Field(description="Why it is inconclusive; empty otherwise")
    margin: float
    p_not_worse: float | None = Field(description="Holm; small: the drop is not larger than the margin")
    p_worse: float | None = Field(description="Holm; small: the drop is larger than the margin")
    lower_limit: float | None = Field(description="One-sided, corrected; above -margin where it passes")
    upper_limit: float | None = Field(description="One-sided, corrected; below -margin where it fails")
    detectable: float | None = Field(
        description="Distance below -margin at which a true difference fails with a power of 80 %"
    )
    pairs_needed: int | None = Field(
        description="To pass in 80 % of repetitions without a difference; null where there are enough"
    )
    difference: DifferenceShown


class GateShown(BaseModel):
    verdict: str = Field(description="pass, fail or inconclusive")
    reasons: list[str] = Field(description="Why all of it is inconclusive whatever the tasks say")
    benchmark_suite: str
    run: ComparedJob
    base: ComparedJob
    margin_points: float
    alpha: float
    tasks: list[GatedTaskShown]
    conditions: list[DifferingConditionShown] = Field(
        description="Evaluation conditions in which the two differ, beside their models"
    )
    warnings: list[str]


class Gated(BaseModel):
    gate: GateShown


@router.post(
    "/gate",
    responses=problems(400, 404, 409, 422, 503),
    summary="Decide whether a run is worse than another by more than a margin",
)
async def gate(backends: BackendCalls, body: GateRequest) -> Gated:
    response = await backends.results.comparisons.GateRun(body.to_proto())
    if response.gate.verdict == comparison_pb2.GATE_VERDICT_FAIL:
        # Before the answer: a caller who has none asks again, and nothing is told twice.
        await backends.scheduler.gates.TellGate(gate_pb2.TellGateRequest(gate=response.gate))
    return Gated(gate=gate_shown(response.gate))


def gate_shown(gate: comparison_pb2.Gate) -> GateShown:
    run, base = (compared_job(ComparedJob, each) for each in gate.runs)
    names = run_names(comparison_pb2.Comparison(runs=gate.runs))
    return present(
        GateShown,
        gate,
        benchmark_suite=gate.benchmark,
        run=run,
        base=base,
        tasks=[_task_shown(task, names) for task in gate.tasks],
        conditions=[present(DifferingConditionShown, one) for one in gate.conditions],
    )


def _task_shown(task: comparison_pb2.GatedTask, names: list[str]) -> GatedTaskShown:
    return present(
        GatedTaskShown,
        task,
        task=task.difference.task or None,
        metric=task.difference.metric,
        difference=difference_shown(DifferenceShown, task.difference, names),
    )
