"""SchedulerService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

import grpc

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.values.names.user import LOCAL_USER, Caller
from proctor.values.run import MAX_HISTORY_DAYS, RunId, RunKind, RunState
from proctor.wire.enums import member_of
from proctor.wire.values import PRICE
from services.common.checked_fields import checked_ids, checked_texts, invalid_field, nul_problem, refuse
from services.common.errors import RunNotFound
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import (
    MAX_PAGE_SIZE,
    check_sees,
    checked_page_size,
    checked_request_id,
)
from services.scheduler.runs.archives import archive_runs
from services.scheduler.runs.lifecycle import change_state, label_run, submit_run
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission
from services.scheduler.runs.orders.proto import gate_from_proto, order_from_proto
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.estimate_run import EstimateRun
from services.scheduler.runs.reads.list_runs import ListRuns
from services.scheduler.runs.reads.proto import (
    LABELS,
    brief_to_proto,
    cursor_from_token,
    label_change,
    snapshot_to_proto,
    token_behind,
)
from services.scheduler.runs.reads.run_list import RunFilter
from services.scheduler.runs.reads.show_run import ShowRun, WatchRun
from services.scheduler.suites.grpc_api import suite_to_proto
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.workers import list_models
from services.scheduler.workers.model_names import Aliases
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.proto import WORKER, models_to_proto

_ID_PREFIX = re.compile(r"[0-9a-fA-F]{1,32}")

SERVICE_NAME = scheduler_pb2.DESCRIPTOR.services_by_name["SchedulerService"].full_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReads:
    """The use cases that read runs."""

    show_run: ShowRun
    list_runs: ListRuns
    watch_run: WatchRun
    count_runs: CountRuns
    estimate_run: EstimateRun


@dataclass(frozen=True, kw_only=True)
class GrpcApi(scheduler_grpc.SchedulerServiceServicer):
    """The public face of the scheduler."""

    submit: submit_run.SubmitRun
    change: change_state.ChangeState
    delete: change_state.DeleteRun
    archives: archive_runs.ArchiveRuns
    label: label_run.LabelRun
    reads: RunReads
    suites: SuiteCatalogue
    models: list_models.ListModels
    aliases: Aliases
    registry: WorkerRegistry

    def register(self, server: grpc.aio.Server) -> None:
        scheduler_grpc.add_SchedulerServiceServicer_to_server(self, server)

    async def SubmitRun(
        self, request: scheduler_pb2.SubmitRunRequest, context: RpcContext
    ) -> scheduler_pb2.SubmitRunResponse:
        submission = Submission(
            run_id=RunId(str(uuid4())),
            order=order_from_proto(request.order),
            user=request.user or LOCAL_USER,
            request_id=checked_request_id(request.request_id),
            labels=LABELS.from_proto(request.labels),
            gate=gate_from_proto(request.gate) if request.HasField("gate") else None,
        )
        run = await self.submit.submit(submission)
        estimate = await self.reads.estimate_run.estimate(run)
        return scheduler_pb2.SubmitRunResponse(
            run=snapshot_to_proto(await self.reads.show_run.show(run.run_id)),
            estimated_seconds=estimate.time.seconds if estimate.time else None,
            estimated_cost=estimate.cost,
        )

    async def EstimateRun(
        self, request: scheduler_pb2.EstimateRunRequest, context: RpcContext
    ) -> scheduler_pb2.EstimateRunResponse:
        check_sees(caller_of(context.invocation_metadata()), request.order.project_id)
        user = request.user or LOCAL_USER
        submission = Submission(RunId(str(uuid4())), order_from_proto(request.order), user)
        run = await self.submit.prepare(submission)
        estimate = await self.reads.estimate_run.estimate(run, is_stored=False)
        time = estimate.time
        return scheduler_pb2.EstimateRunResponse(
            estimated_seconds=time.seconds if time else None,
            estimated_low_seconds=time.low if time else None,
            estimated_high_seconds=time.high if time else None,
            estimated_cost=estimate.cost,
            price=PRICE.to_proto(run.price) if run.price else None,
        )

    async def GetRun(
        self, request: scheduler_pb2.GetRunRequest, context: RpcContext
    ) -> scheduler_pb2.GetRunResponse:
        snapshot = await self.reads.show_run.show(_run_id(request.run_id))
        return scheduler_pb2.GetRunResponse(run=snapshot_to_proto(snapshot))

    async def ListRuns(
        self, request: scheduler_pb2.ListRunsRequest, context: RpcContext
    ) -> scheduler_pb2.ListRunsResponse:
        size = checked_page_size(request.page_size)
        page = await self.reads.list_runs.list_page(
            _filter(request), size, cursor_from_token(request.page_token)
        )
        is_last = len(page.snapshots) < size
        return scheduler_pb2.ListRunsResponse(
            runs=[brief_to_proto(snapshot) for snapshot in page.snapshots],
            next_page_token="" if is_last else token_behind(page.snapshots[-1].run, page.total),
            total=page.total,
            completed=page.completed,
        )

    async def ListModelNames(
        self, request: scheduler_pb2.ListModelNamesRequest, context: RpcContext
    ) -> scheduler_pb2.ListModelNamesResponse:
        refuse(nul_problem("model", request.model))
        return scheduler_pb2.ListModelNamesResponse(
            models=await self.reads.list_runs.list_model_names(request.model)
        )

    async def CancelRun(
        self, request: scheduler_pb2.CancelRunRequest, context: RpcContext
    ) -> scheduler_pb2.CancelRunResponse:
        return scheduler_pb2.CancelRunResponse(
            run=await self._changed(self.change.cancel, request.run_id, context)
        )

    async def RetryRun(
        self, request: scheduler_pb2.RetryRunRequest, context: RpcContext
    ) -> scheduler_pb2.RetryRunResponse:
        return scheduler_pb2.RetryRunResponse(
            run=await self._changed(self.change.retry, request.run_id, context)
        )

    async def PauseRun(
        self, request: scheduler_pb2.PauseRunRequest, context: RpcContext
    ) -> scheduler_pb2.PauseRunResponse:
        return scheduler_pb2.PauseRunResponse(
            run=await self._changed(self.change.pause, request.run_id, context)
        )

    async def ResumeRun(
        self, request: scheduler_pb2.ResumeRunRequest, context: RpcContext
    ) -> scheduler_pb2.ResumeRunResponse:
        return scheduler_pb2.ResumeRunResponse(
            run=await self._changed(self.change.resume, request.run_id, context)
        )

    async def _changed(
        self, change: Callable[[RunId, Caller], Awaitable[Run]], run_id: str, context: RpcContext
    ) -> run_pb2.Run:
        run = await change(_run_id(run_id), caller_of(context.invocation_metadata()))
        return snapshot_to_proto(await self.reads.show_run.show(run.run_id))

    async def DeleteRun(
        self, request: scheduler_pb2.DeleteRunRequest, context: RpcContext
    ) -> scheduler_pb2.DeleteRunResponse:
        await self.delete.delete(_run_id(request.run_id), caller_of(context.invocation_metadata()))
        return scheduler_pb2.DeleteRunResponse()

    async def ArchiveRun(
        self, request: scheduler_pb2.ArchiveRunRequest, context: RpcContext
    ) -> scheduler_pb2.ArchiveRunResponse:
        run_id = _run_id(request.run_id)
        await self.archives.archive(run_id, caller_of(context.invocation_metadata()))
        return scheduler_pb2.ArchiveRunResponse(run=snapshot_to_proto(await self.reads.show_run.show(run_id)))

    async def RestoreRun(
        self, request: scheduler_pb2.RestoreRunRequest, context: RpcContext
    ) -> scheduler_pb2.RestoreRunResponse:
        run_id = _run_id(request.run_id)
        await self.archives.restore(run_id, caller_of(context.invocation_metadata()))
        return scheduler_pb2.RestoreRunResponse(run=snapshot_to_proto(await self.reads.show_run.show(run_id)))

    async def LabelRun(
        self, request: scheduler_pb2.LabelRunRequest, context: RpcContext
    ) -> scheduler_pb2.LabelRunResponse:
        run_id = _run_id(request.run_id)
        await self.label.label(run_id, label_change(request), caller_of(context.invocation_metadata()))
        return scheduler_pb2.LabelRunResponse(run=snapshot_to_proto(await self.reads.show_run.show(run_id)))

    async def WatchRun(
        self, request: scheduler_pb2.WatchRunRequest, context: RpcContext
    ) -> AsyncIterator[scheduler_pb2.WatchRunResponse]:
        async for snapshot in self.reads.watch_run.watch(_run_id(request.run_id)):
            yield scheduler_pb2.WatchRunResponse(run=snapshot_to_proto(snapshot))

    async def ListSuites(
        self, request: scheduler_pb2.ListSuitesRequest, context: RpcContext
    ) -> scheduler_pb2.ListSuitesResponse:
        suites = [suite_to_proto(suite) for suite in await self.suites.suites()]
        return scheduler_pb2.ListSuitesResponse(suites=suites)

    async def ListModels(
        self, request: scheduler_pb2.ListModelsRequest, context: RpcContext
    ) -> scheduler_pb2.ListModelsResponse:
        listed = await self.models.list_models(request.provider)
        response = models_to_proto(listed, self.aliases)
        for model in response.models:
            if price := self.submit.pricing.price_of(model.model, "", None):
                response.prices[model.model].CopyFrom(PRICE.to_proto(price))
        return response

    async def ListWorkers(
        self, request: scheduler_pb2.ListWorkersRequest, context: RpcContext
    ) -> scheduler_pb2.ListWorkersResponse:
        workers = [WORKER.to_proto(worker) for worker in self.registry.workers()]
        return scheduler_pb2.ListWorkersResponse(workers=workers)


def _run_id(text: str) -> RunId:
    """Raises RunNotFound for a text that is not a UUID."""
    try:
        return RunId(str(UUID(text)))
    except ValueError as error:
        raise RunNotFound(run_id=text) from error


def _filter(request: scheduler_pb2.ListRunsRequest) -> RunFilter:
    for field in ("benchmark", "model", "dataset_id", "name", "tag"):
        refuse(nul_problem(field, getattr(request, field)))
    return RunFilter(
        state=member_of(RunState, request.state),
        benchmark=request.benchmark,
        model=request.model,
        project_id=request.project_id if request.HasField("project_id") else None,
        kind=member_of(RunKind, request.kind),
        dataset_id=request.dataset_id,
        id_prefix=_id_prefix(request.run_id_prefix),
        name=request.name.strip(),
        tag=request.tag.strip(),
        days=_days(request.days),
        models=checked_texts("models", request.models),
        run_ids=tuple(checked_ids("run_ids", request.run_ids, MAX_PAGE_SIZE)),
    )


def _days(number: int) -> int:
    if not 0 <= number <= MAX_HISTORY_DAYS:
        raise invalid_field("days", f"is {number}, but must be 1 to {MAX_HISTORY_DAYS}, or 0 for all")
    return number


def _id_prefix(text: str) -> str:
    if text and not _ID_PREFIX.fullmatch(text):
        raise invalid_field("run_id_prefix", "must be 1 to 32 hexadecimal digits without dashes")
    return text.lower()
