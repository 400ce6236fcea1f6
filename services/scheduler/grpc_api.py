"""SchedulerService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import grpc

from proctor.v1 import scheduler_service_pb2 as messages
from proctor.v1 import scheduler_service_pb2_grpc
from proctor.values.run import RunId, RunKind, RunState
from proctor.wire.convert import member_of
from services.scheduler.errors import InvalidParameter
from services.scheduler.requests import DEFAULT_USER, checked_page_size, checked_request_id, nul_problem
from services.scheduler.runs.lifecycle.change_state import CancelRun, DeleteRun, PauseRun, ResumeRun, RetryRun
from services.scheduler.runs.lifecycle.errors import RunNotFound
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.proto import order_from_proto
from services.scheduler.runs.reads.proto import (
    brief_to_proto,
    cursor_from_token,
    snapshot_to_proto,
    token_behind,
)
from services.scheduler.runs.reads.run_list import RunFilter
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.runs.reads.show_run_forecast import ForecastRun
from services.scheduler.suites.grpc_api import suite_to_proto
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.workers.list_models import ListModels
from services.scheduler.workers.pool import Aliases
from services.scheduler.workers.proto import WORKER, models_to_proto
from services.scheduler.workers.worker import WorkerRegistry

SERVICE_NAME = messages.DESCRIPTOR.services_by_name["SchedulerService"].full_name

Context = grpc.aio.ServicerContext[object, object]


@dataclass(frozen=True)
class SchedulerUseCases:
    submit: SubmitRun
    forecast: ForecastRun
    cancel: CancelRun
    retry: RetryRun
    pause: PauseRun
    resume: ResumeRun
    delete: DeleteRun
    show: ShowRun
    suites: SuiteCatalogue
    list_models: ListModels
    aliases: Aliases
    registry: WorkerRegistry


class GrpcApi(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    """The public face of the scheduler."""

    def __init__(self, use_cases: SchedulerUseCases) -> None:
        self._use = use_cases

    def register(self, server: grpc.aio.Server) -> None:
        scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server(self, server)

    async def SubmitRun(
        self, request: messages.SubmitRunRequest, context: Context
    ) -> messages.SubmitRunResponse:
        submission = Submission(
            run_id=RunId(str(uuid4())),
            order=order_from_proto(request.order),
            user=request.user or DEFAULT_USER,
            request_id=checked_request_id(request.request_id),
        )
        run = await self._use.submit.submit(submission)
        forecast = await self._use.forecast.forecast(run)
        return messages.SubmitRunResponse(
            run=snapshot_to_proto(await self._use.show.show(run.run_id)),
            estimated_seconds=forecast.seconds,
            estimated_cost=forecast.cost,
        )

    async def GetRun(self, request: messages.GetRunRequest, context: Context) -> messages.GetRunResponse:
        snapshot = await self._use.show.show(_run_id(request.run_id))
        return messages.GetRunResponse(run=snapshot_to_proto(snapshot))

    async def ListRuns(
        self, request: messages.ListRunsRequest, context: Context
    ) -> messages.ListRunsResponse:
        size = checked_page_size(request.page_size)
        page = await self._use.show.page(_filter(request), size, cursor_from_token(request.page_token))
        is_last = len(page.snapshots) < size
        return messages.ListRunsResponse(
            runs=[brief_to_proto(snapshot) for snapshot in page.snapshots],
            next_page_token="" if is_last else token_behind(page.snapshots[-1].run, page.total),
            total=page.total,
        )

    async def CancelRun(
        self, request: messages.CancelRunRequest, context: Context
    ) -> messages.CancelRunResponse:
        run = await self._use.cancel.cancel(_run_id(request.run_id))
        snapshot = await self._use.show.show(run.run_id)
        return messages.CancelRunResponse(run=snapshot_to_proto(snapshot))

    async def RetryRun(
        self, request: messages.RetryRunRequest, context: Context
    ) -> messages.RetryRunResponse:
        run = await self._use.retry.retry(_run_id(request.run_id))
        snapshot = await self._use.show.show(run.run_id)
        return messages.RetryRunResponse(run=snapshot_to_proto(snapshot))

    async def PauseRun(
        self, request: messages.PauseRunRequest, context: Context
    ) -> messages.PauseRunResponse:
        run = await self._use.pause.pause(_run_id(request.run_id))
        snapshot = await self._use.show.show(run.run_id)
        return messages.PauseRunResponse(run=snapshot_to_proto(snapshot))

    async def ResumeRun(
        self, request: messages.ResumeRunRequest, context: Context
    ) -> messages.ResumeRunResponse:
        run = await self._use.resume.resume(_run_id(request.run_id))
        snapshot = await self._use.show.show(run.run_id)
        return messages.ResumeRunResponse(run=snapshot_to_proto(snapshot))

    async def DeleteRun(
        self, request: messages.DeleteRunRequest, context: Context
    ) -> messages.DeleteRunResponse:
        await self._use.delete.delete(_run_id(request.run_id))
        return messages.DeleteRunResponse()

    async def WatchRun(
        self, request: messages.WatchRunRequest, context: Context
    ) -> AsyncIterator[messages.WatchRunResponse]:
        async for snapshot in self._use.show.watch(_run_id(request.run_id)):
            yield messages.WatchRunResponse(run=snapshot_to_proto(snapshot))

    async def ListSuites(
        self, request: messages.ListSuitesRequest, context: Context
    ) -> messages.ListSuitesResponse:
        suites = [suite_to_proto(suite) for suite in await self._use.suites.suites()]
        return messages.ListSuitesResponse(suites=suites)

    async def ListModels(
        self, request: messages.ListModelsRequest, context: Context
    ) -> messages.ListModelsResponse:
        listed = await self._use.list_models.list_models(request.provider)
        return models_to_proto(listed, self._use.aliases)

    async def ListWorkers(
        self, request: messages.ListWorkersRequest, context: Context
    ) -> messages.ListWorkersResponse:
        workers = [WORKER.to_proto(worker) for worker in self._use.registry.workers()]
        return messages.ListWorkersResponse(workers=workers)


def _run_id(text: str) -> RunId:
    """What is no UUID is the name of no run."""
    try:
        return RunId(str(UUID(text)))
    except ValueError as error:
        raise RunNotFound(run_id=text) from error


def _filter(request: messages.ListRunsRequest) -> RunFilter:
    texts = {"suite": request.suite, "model": request.model, "dataset_id": request.dataset_id}
    problem = next(filter(None, (nul_problem(field, text) for field, text in texts.items())), None)
    if problem:
        raise InvalidParameter(field=problem.field, sentence=problem.sentence)
    return RunFilter(
        state=member_of(RunState, request.state),
        suite=request.suite,
        model=request.model,
        project_id=request.project_id if request.HasField("project_id") else None,
        kind=member_of(RunKind, request.kind),
        dataset_id=request.dataset_id,
    )
