"""What to know beside a comparison: what single runs scatter by, and whether the runs were judged alike."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import comparison_pb2, leaderboard_service_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.comparison_notes import judge_warnings, judged_sentence, judges_of_both, main_metric
from services.common.errors import DomainError
from services.gateway.backends.calls import Results, Scheduler

# The newest judging runs of a run that are looked at.
_JUDGES = 50
# For the runs of a model: the comparison does not wait longer for repetitions of millions of rows.
_NOISE_SECONDS = 3.0


class NoiseFloorShown(BaseModel):
    job_id: str = Field(description="The job whose repetitions it is of")
    model: str
    metric: str
    noise_floor: float = Field(
        description="Two single runs of the model differ by less in 95 % of repetitions"
    )
    runs: int = Field(description="The job and its repetitions")
    rollouts: int


@dataclass(frozen=True, slots=True)
class ComparisonNotes:
    """`noise_floors` of the runs that were repeated, in rows, rollouts or runs."""

    noise_floors: Sequence[NoiseFloorShown] = ()
    judge_warnings: Sequence[str] = ()
    # Two runs by each judge of both, corrected for its error.
    judged_differences: Sequence[str] = ()


async def read_notes(
    scheduler: Scheduler, results: Results, comparison: comparison_pb2.Comparison, names: Sequence[str]
) -> ComparisonNotes:
    """`names` are those of the compared runs."""
    floors, judging = await asyncio.gather(
        _noise_floors(results, comparison, names),
        asyncio.gather(*(_judging_runs(scheduler, run.run_id) for run in comparison.runs)),
    )
    judged = [await _judged_difference(results, names, *both) for both in judges_of_both(judging)]
    return ComparisonNotes(floors, list(judge_warnings(names, judging)), [each for each in judged if each])


async def _judged_difference(
    results: Results, names: Sequence[str], first: run_pb2.Run, second: run_pb2.Run
) -> str:
    """ "" where it cannot be told, such as of runs over other samples, or with too few marks."""
    request = answer_pb2.CalibrateJudgeRequest(run_id=first.run_id)
    request.against_run_id = second.run_id
    try:
        found = await results.answers.CalibrateJudge(request)
    except DomainError:
        return ""
    return judged_sentence(names, first, found.difference)


async def _noise_floors(
    results: Results, comparison: comparison_pb2.Comparison, names: Sequence[str]
) -> Sequence[NoiseFloorShown]:
    """In the order of the models; all models are read at once."""
    metric = main_metric(comparison)
    if not metric:
        return []
    runs_by_model: dict[str, dict[str, str]] = {}
    for run, name in zip(comparison.runs, names, strict=True):
        runs_by_model.setdefault(run.model, {})[run.run_id] = name
    found = await asyncio.gather(*(_floors_of_one(results, runs, metric) for runs in runs_by_model.values()))
    return [floor for floors in found for floor in floors]


async def _floors_of_one(
    results: Results, names_by_run: Mapping[str, str], metric: str
) -> Sequence[NoiseFloorShown]:
    """Of the runs of one model, those that `_NOISE_SECONDS` suffice for."""
    shown: list[NoiseFloorShown] = []
    covered: set[str] = set()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_NOISE_SECONDS):
            # One after the other: runs that repeat one another share a floor.
            for run_id, name in names_by_run.items():
                if run_id in covered:
                    continue
                noise = await _noise(results, run_id, metric)
                if noise is None or not noise.HasField("split"):
                    continue
                covered |= {run_id, *noise.run_ids}
                shown.append(
                    NoiseFloorShown(
                        job_id=run_id,
                        model=name,
                        metric=noise.metric,
                        noise_floor=noise.split.noise_floor,
                        runs=len(noise.run_ids),
                        rollouts=noise.rollouts,
                    )
                )
    return shown


async def _noise(
    results: Results, run_id: str, metric: str
) -> leaderboard_service_pb2.GetNoiseResponse | None:
    """None where it cannot be told, such as of an archived run, or a metric that its figures lack."""
    request = leaderboard_service_pb2.GetNoiseRequest(run_id=run_id, metric=metric)
    try:
        return await results.leaderboard.GetNoise(request)
    except DomainError:
        return None


async def _judging_runs(scheduler: Scheduler, run_id: str) -> Sequence[run_pb2.Run]:
    request = scheduler_pb2.ListRunsRequest(benchmark=run_id, page_size=_JUDGES)
    found = await scheduler.runs.ListRuns(request)
    # A suite may be called as the run is.
    return [run for run in found.runs if run.order.judge.run_id == run_id]
