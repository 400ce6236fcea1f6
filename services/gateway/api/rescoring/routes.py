"""Stored answers under other filters or metrics, over HTTP."""

from fastapi import APIRouter

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from services.gateway.api.rescoring.schemas import Rescored, RescoreRequest, UnscoredAnswer
from services.gateway.api.runs.job import task_figures
from services.gateway.backends.results import ResultsBackend
from services.gateway.errors.http_problem import problems
from services.gateway.http.path_ids import JobId
from services.gateway.paths import BENCHMARKING


class RescoringApi:
    """The handler, with what it asks."""

    def __init__(self, results: ResultsBackend) -> None:
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])
        router.post(
            "/rescore/{job_id}",
            responses=problems(400, 404, 409, 422, 503),
            response_model_exclude_defaults=True,
            summary="Score stored answers again, without asking the model",
        )(self.rescore)
        return router

    async def rescore(self, job_id: JobId, body: RescoreRequest) -> Rescored:
        response = await self._results.rescore_task(
            rescore_pb2.RescoreTaskRequest(
                run_id=job_id,
                task=body.task,
                metrics=body.metric_uses(),
                filters_json=body.filters_json(),
            )
        )
        return Rescored(
            job_id=job_id,
            task=body.task,
            figures=task_figures(response.summary),
            recorded=task_figures(response.recorded),
            changed=response.changed,
            unparsed=response.summary.unparsed,
            recorded_unparsed=response.recorded.unparsed,
            unscored=response.unscored,
            unscored_answers=[
                UnscoredAnswer(
                    sample=answer.sample,
                    rollout=answer.rollout,
                    row_id=answer.row_id,
                    problem=answer.problem,
                )
                for answer in response.unscored_answers
            ],
        )
