"""How many rows and rollouts show a difference."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.values.comparison import MAX_MARGIN_POINTS
from services.gateway.api.comparisons.conclusions import DifferenceShown
from services.gateway.api.comparisons.routes import (
    ComparedJob,
    RunsOrModels,
    compared_job,
    difference_shown,
    run_names,
)
from services.gateway.api.models import full_model
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import present
from services.gateway.http.problem import problems

router = APIRouter(prefix=BENCHMARKING, tags=["comparisons"])


class PlanSizeRequest(RunsOrModels):
    """Two models by their latest completed run of a benchmark, or two runs, whose spread is taken."""

    difference_points: float = Field(
        gt=0, le=MAX_MARGIN_POINTS, description="True difference in points: hundredths of a share"
    )
    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="Level of the two-sided test")
    power: float = Field(default=0.8, ge=0.5, lt=1, description="Chance that the difference is shown")
    max_rollouts: int = Field(default=16, ge=1, le=1_024, description="Most rollouts of a row")

    def to_proto(self) -> comparison_service_pb2.PlanSizeRequest:
        return comparison_service_pb2.PlanSizeRequest(
            **self.compared(),
            difference_points=self.difference_points,
            alpha=self.alpha,
            power=self.power,
            max_rollouts=self.max_rollouts,
        )


class PlannedSizeShown(BaseModel):
    rollouts: int | None = Field(description="Of each row in both runs; null: as many as the two runs have")
    rows: int = Field(description="Of the kind that the task has")


class SizedTaskShown(BaseModel):
    """Null means undefined."""

    task: str | None = Field(description="Null for the benchmark as a whole")
    metric: str
    wanted: float = Field(description="The difference in the unit of the metric")
    rows: int = Field(description="Rows that both runs answered")
    sample_std: float | None = Field(description="Standard deviation of the difference between rows")
    rollout_std: float | None = Field(description="The same within a row, of one rollout each")
    sizes: list[PlannedSizeShown]
    difference: DifferenceShown


class SizePlanShown(BaseModel):
    benchmark_suite: str
    runs: list[ComparedJob]
    tasks: list[SizedTaskShown]
    warnings: list[str]


class SizePlanned(BaseModel):
    plan: SizePlanShown


@router.post(
    "/plan-size",
    responses=problems(400, 404, 409, 422, 503),
    summary="Plan how many rows and rollouts show a difference",
)
async def plan_size(scheduler: SchedulerCalls, results: ResultsCalls, body: PlanSizeRequest) -> SizePlanned:
    request = body.to_proto()
    # Results stores models under their full names.
    request.models[:] = [await full_model(scheduler, model) for model in request.models]
    plan = (await results.comparisons.PlanSize(request)).plan
    names = run_names(comparison_pb2.Comparison(runs=plan.runs))
    return SizePlanned(
        plan=SizePlanShown(
            benchmark_suite=plan.benchmark,
            runs=[compared_job(ComparedJob, run) for run in plan.runs],
            tasks=[_task_shown(task, names) for task in plan.tasks],
            warnings=list(plan.warnings),
        )
    )


def _task_shown(task: comparison_pb2.SizedTask, names: list[str]) -> SizedTaskShown:
    return present(
        SizedTaskShown,
        task,
        task=task.difference.task or None,
        metric=task.difference.metric,
        sizes=[present(PlannedSizeShown, size) for size in task.sizes],
        difference=difference_shown(DifferenceShown, task.difference, names),
    )
