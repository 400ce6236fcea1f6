"""What a run's figure scatters by, from its repetitions."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from proctor.v1 import leaderboard_service_pb2
from services.gateway.backends.calls import ResultsCalls
from services.gateway.http.parameters import JobId, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import optional, present
from services.gateway.http.problem import problems

router = APIRouter(prefix=BENCHMARKING, tags=["comparisons"])


class VarianceSplitShown(BaseModel):
    """The standard error of the figure of a run with one rollout, in parts whose squares add up."""

    sample: float = Field(description="By other rows of the same kind")
    rollout: float = Field(description="By other answers to these rows")
    run: float | None = Field(description="By what moves all rows of a run together; null with one run")
    run_p_value: float | None = Field(description="Of the test that the part of runs is 0")
    noise_floor: float = Field(description="Two such runs of one model differ by less in 95 % of repetitions")


class NoisyTaskShown(BaseModel):
    task: str
    metric: str
    rows: int = Field(description="That all runs answered")
    split: VarianceSplitShown | None


class NoiseShown(BaseModel):
    jobs: list[str] = Field(description="The job and its repetitions, newest first")
    metric: str
    rollouts: int
    tasks: list[NoisyTaskShown] = Field(description="Empty where the figure is no mean of rows")
    split: VarianceSplitShown | None = Field(description="Of the figure; null where nothing was asked twice")


@router.get(
    "/noise/{job_id}",
    responses=problems(400, 404, 409, 422, 503),
    summary="What the figure of a job scatters by: rows, rollouts and runs",
)
async def noise(
    results: ResultsCalls,
    job_id: JobId,
    metric: Annotated[
        Text, Query(max_length=128, description="Any metric of the benchmark; empty: the headline figure")
    ] = "",
) -> NoiseShown:
    found = await results.leaderboard.GetNoise(
        leaderboard_service_pb2.GetNoiseRequest(run_id=job_id, metric=metric)
    )
    tasks = [present(NoisyTaskShown, task, split=_split_of(task)) for task in found.tasks]
    return present(NoiseShown, found, jobs=list(found.run_ids), tasks=tasks, split=_split_of(found))


def _split_of(
    message: leaderboard_service_pb2.NoisyTask | leaderboard_service_pb2.GetNoiseResponse,
) -> VarianceSplitShown | None:
    if not message.HasField("split"):
        return None
    split = message.split
    return present(
        VarianceSplitShown, split, run=optional(split, "run"), run_p_value=optional(split, "run_p_value")
    )
