"""Small gRPC servers in the place of scheduler and results: they keep runs in a dict and note the calls."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from proctor.v1 import annotation_service_pb2_grpc as annotation_grpc
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import audit_service_pb2_grpc as audit_grpc
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import gate_service_pb2_grpc as gate_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import model_pb2, run_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from proctor.values.names.run_labels import MAX_NAME_CHARACTERS
from services.common.errors import ErrorKind, RemoteError
from services.common.grpc.server import GrpcServer, serve_grpc
from services.scheduler.audit.grpc_api import GrpcAuditApi
from tests.fakes.gateway.batch_services import FakeBatches, FakeFiles
from tests.fakes.gateway.dataset_service import FakeDatasets
from tests.fakes.gateway.queue_service import FakeGates, FakeQueue, FakeStorage
from tests.fakes.gateway.results_services import FakeResults
from tests.fakes.gateway.rollout_service import FakeArtifacts, FakeRollouts
from tests.fakes.gateway.suite_service import FakeSuites
from tests.fakes.refusals import refused
from tests.fakes.scheduler.memory_audit import MemoryAudit
from tests.fakes.scheduler.memory_keys import MemoryKeys, key_api

__all__ = ["FINAL", "FakeResults", "FakeScheduler", "refused", "results_server", "scheduler_server"]

PAUSABLE = (run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_PAUSED)
FINAL = (run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED)


@dataclass
class FakeScheduler(scheduler_grpc.SchedulerServiceServicer):
    """`refusal` is raised by submits and lists; watches end when the run is final.

    So many answers to orders, cancellations and retries as `answers_to_lose` says get lost on their way.
    """

    runs: dict[str, run_pb2.Run] = field(default_factory=dict)
    suites: FakeSuites = field(default_factory=FakeSuites)
    queue: FakeQueue = field(default_factory=FakeQueue)
    storage: FakeStorage = field(default_factory=FakeStorage)
    datasets: FakeDatasets = field(default_factory=FakeDatasets)
    files: FakeFiles = field(default_factory=FakeFiles)
    gates: FakeGates = field(default_factory=FakeGates)
    batches: FakeBatches = field(default_factory=FakeBatches)
    rollouts: FakeRollouts = field(default_factory=FakeRollouts)
    artifacts: FakeArtifacts = field(default_factory=FakeArtifacts)
    keys: MemoryKeys = field(default_factory=MemoryKeys)
    audit: MemoryAudit = field(default_factory=MemoryAudit)
    ordered_models: list[str] = field(default_factory=list)
    prices: dict[str, run_pb2.ModelPrice] = field(default_factory=dict)
    model_names_asked: int = 0
    # None: no worker of the pool says whether it has the key.
    has_gemini_key: bool | None = None
    submitted: list[scheduler_pb2.SubmitRunRequest] = field(default_factory=list)
    submitted_state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_PENDING
    estimated: list[scheduler_pb2.EstimateRunRequest] = field(default_factory=list)
    listed: list[scheduler_pb2.ListRunsRequest] = field(default_factory=list)
    next_tokens: list[str] = field(default_factory=list)
    completed: int = 0
    estimated_seconds: float | None = None
    estimated_cost: float | None = None
    price: run_pb2.ModelPrice | None = None
    refusal: RemoteError | None = None
    deadlines: list[float | None] = field(default_factory=list)
    metadata: list[dict[str, str | bytes]] = field(default_factory=list)
    # Keys of all calls; one may have several.
    traceparents: list[str] = field(default_factory=list)
    watches_open: int = 0
    answers_to_lose: int = 0
    # That of the engine of its worker.
    engine_load: model_pb2.EngineLoad | None = None
    # Lists of workers are answered once it is set, where there is one.
    workers_come: asyncio.Event | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, run: run_pb2.Run) -> None:
        self.runs[run.run_id] = run
        self.changed.set()
        self.changed = asyncio.Event()

    async def SubmitRun(
        self, request: scheduler_pb2.SubmitRunRequest, context: Any
    ) -> scheduler_pb2.SubmitRunResponse:
        self._note(context)
        if self.refusal:
            raise self.refusal
        self.submitted.append(request)
        run = run_pb2.Run(
            run_id=str(uuid.uuid4()),
            order=request.order,
            user=request.user,
            state=self.submitted_state,
            price=self.price,
            dataset_name=self.datasets.name_of(request.order.dataset_id),
            labels=request.labels,
        )
        run.created_at.FromSeconds(1_700_000_000)
        self.put(run)
        self._lose_answer()
        return scheduler_pb2.SubmitRunResponse(
            run=run, estimated_seconds=self.estimated_seconds, estimated_cost=self.estimated_cost
        )

    async def EstimateRun(
        self, request: scheduler_pb2.EstimateRunRequest, context: Any
    ) -> scheduler_pb2.EstimateRunResponse:
        self._note(context)
        if self.refusal:
            raise self.refusal
        self.estimated.append(request)
        return scheduler_pb2.EstimateRunResponse(
            estimated_seconds=self.estimated_seconds, estimated_cost=self.estimated_cost, price=self.price
        )

    async def GetRun(
        self, request: scheduler_pb2.GetRunRequest, context: Any
    ) -> scheduler_pb2.GetRunResponse:
        self._note(context)
        return scheduler_pb2.GetRunResponse(run=self._run(request.run_id))

    async def ListModelNames(
        self,
        request: scheduler_pb2.ListModelNamesRequest,
        context: Any,  # the generated method's
    ) -> scheduler_pb2.ListModelNamesResponse:
        self.model_names_asked += 1
        named = [
            model for model in self.ordered_models if request.model in ("", model, model.partition("/")[2])
        ]
        return scheduler_pb2.ListModelNamesResponse(models=named)

    async def ListRuns(
        self, request: scheduler_pb2.ListRunsRequest, context: Any
    ) -> scheduler_pb2.ListRunsResponse:
        self._note(context)
        if self.refusal:
            raise self.refusal
        self.listed.append(request)
        prefix = request.run_id_prefix
        runs = [run for run in self.runs.values() if run.run_id.replace("-", "").startswith(prefix)]
        token = self.next_tokens.pop(0) if self.next_tokens else "next"
        return scheduler_pb2.ListRunsResponse(
            runs=runs, next_page_token=token, total=len(runs), completed=self.completed
        )

    async def CancelRun(
        self, request: scheduler_pb2.CancelRunRequest, context: Any
    ) -> scheduler_pb2.CancelRunResponse:
        self._note(context)
        run = self._run(request.run_id)
        if run.state in FINAL:
            state = run_pb2.RunState.Name(run.state).removeprefix("RUN_STATE_").lower()
            raise refused(
                ErrorKind.CONFLICT,
                "RUN_ALREADY_FINISHED",
                f"Run {run.run_id} is already {state}.",
                state=state,
            )
        run.state = run_pb2.RUN_STATE_CANCELLED
        self.put(run)
        self._lose_answer()
        return scheduler_pb2.CancelRunResponse(run=run)

    async def RetryRun(
        self, request: scheduler_pb2.RetryRunRequest, context: Any
    ) -> scheduler_pb2.RetryRunResponse:
        self._note(context)
        run = self._run(request.run_id)
        run.state, run.epoch = run_pb2.RUN_STATE_PENDING, run.epoch + 1
        self.put(run)
        self._lose_answer()
        return scheduler_pb2.RetryRunResponse(run=run)

    async def PauseRun(
        self, request: scheduler_pb2.PauseRunRequest, context: Any
    ) -> scheduler_pb2.PauseRunResponse:
        self._note(context)
        run = self._run(request.run_id)
        _check_state(run, PAUSABLE, "RUN_NOT_PAUSABLE")
        run.state = run_pb2.RUN_STATE_PAUSED
        self.put(run)
        self._lose_answer()
        return scheduler_pb2.PauseRunResponse(run=run)

    async def ResumeRun(
        self, request: scheduler_pb2.ResumeRunRequest, context: Any
    ) -> scheduler_pb2.ResumeRunResponse:
        self._note(context)
        run = self._run(request.run_id)
        _check_state(run, (run_pb2.RUN_STATE_PAUSED,), "RUN_NOT_PAUSED")
        run.state = run_pb2.RUN_STATE_PENDING
        self.put(run)
        self._lose_answer()
        return scheduler_pb2.ResumeRunResponse(run=run)

    async def LabelRun(
        self, request: scheduler_pb2.LabelRunRequest, context: Any
    ) -> scheduler_pb2.LabelRunResponse:
        self._note(context)
        if self.refusal:
            raise self.refusal
        run = self._run(request.run_id)
        if len(request.name) > MAX_NAME_CHARACTERS:
            raise refused(ErrorKind.INVALID, "INVALID_ARGUMENT", "name is too long.", field="name")
        run.labels.name = request.name if request.HasField("name") else run.labels.name
        run.labels.note = request.note if request.HasField("note") else run.labels.note
        tags = [*(request.tags.tags if request.HasField("tags") else run.labels.tags), *request.added_tags]
        del run.labels.tags[:]
        run.labels.tags.extend(tag for tag in dict.fromkeys(tags) if tag not in request.removed_tags)
        self.put(run)
        return scheduler_pb2.LabelRunResponse(run=run)

    async def ArchiveRun(
        self, request: scheduler_pb2.ArchiveRunRequest, context: Any
    ) -> scheduler_pb2.ArchiveRunResponse:
        self._note(context)
        run = self._run(request.run_id)
        _check_state(run, FINAL, "RUN_NOT_CLOSED")
        run.archive_state = run_pb2.ARCHIVE_STATE_ARCHIVING
        self.put(run)
        return scheduler_pb2.ArchiveRunResponse(run=run)

    async def RestoreRun(
        self, request: scheduler_pb2.RestoreRunRequest, context: Any
    ) -> scheduler_pb2.RestoreRunResponse:
        self._note(context)
        run = self._run(request.run_id)
        if run.archive_state:
            run.archive_state = run_pb2.ARCHIVE_STATE_RESTORING
        self.put(run)
        return scheduler_pb2.RestoreRunResponse(run=run)

    async def DeleteRun(
        self, request: scheduler_pb2.DeleteRunRequest, context: Any
    ) -> scheduler_pb2.DeleteRunResponse:
        self._note(context)
        if self.refusal:
            raise self.refusal
        run = self._run(request.run_id)
        _check_state(run, FINAL, "RUN_STILL_ACTIVE")
        del self.runs[run.run_id]
        return scheduler_pb2.DeleteRunResponse()

    async def WatchRun(
        self, request: scheduler_pb2.WatchRunRequest, context: Any
    ) -> AsyncIterator[scheduler_pb2.WatchRunResponse]:
        self._note(context)
        self.watches_open += 1
        try:
            while True:
                changed, run = self.changed, self._run(request.run_id)
                yield scheduler_pb2.WatchRunResponse(run=run)
                if run.state in FINAL:
                    return
                await changed.wait()
        finally:
            self.watches_open -= 1

    async def ListSuites(
        self, request: scheduler_pb2.ListSuitesRequest, context: Any
    ) -> scheduler_pb2.ListSuitesResponse:
        task = scheduler_pb2.TaskInfo(
            task="sentiment", version="1", metrics=["acc"], row_source="own rows", repeats=4
        )
        sound = scheduler_pb2.SuiteInfo(suite="starter", description="Rows of our own", tasks=[task])
        sound.judges.add(model="openai/judge", prompt="style")
        problem = "mine/task.yaml: doc_to_text is missing"
        broken = scheduler_pb2.SuiteInfo(suite="mine", problem=problem, version=2, user="alice")
        return scheduler_pb2.ListSuitesResponse(suites=[broken, sound])

    async def ListModels(
        self, request: scheduler_pb2.ListModelsRequest, context: Any
    ) -> scheduler_pb2.ListModelsResponse:
        if request.provider not in ("", "vllm", "gemini"):
            sentence = f'No pool serves the provider "{request.provider}". Providers: gemini, vllm.'
            raise refused(ErrorKind.INVALID, "UNKNOWN_PROVIDER", sentence, provider=request.provider)
        starter = model_pb2.ModelInfo(model="vllm/starter", pool="local", is_loaded=True, context_tokens=1024)
        starter.size_bytes, starter.memory_bytes, starter.quantization = 15_400_000, 2_015_400_000, "bfloat16"
        starter.capabilities.chat = starter.capabilities.seed = True
        starter.created_at.FromSeconds(1_700_000_000)
        bare = model_pb2.ModelInfo(
            model="vllm/none", pool="local", problem="The folder /none does not exist."
        )
        local = scheduler_pb2.ModelSource(pool="local", provider="vllm", engine="vllm")
        local.listed_at.FromSeconds(1_700_000_000)
        remote = scheduler_pb2.ModelSource(
            pool="remote", provider="gemini", engine="gemini", has_key=self.has_gemini_key
        )
        remote.problem, remote.api_key_env = "No answer within 2 s.", "MY_GEMINI_KEY"
        aliases = {"small": "vllm/starter", "bare": "vllm/none"}
        return scheduler_pb2.ListModelsResponse(
            models=[starter, bare], sources=[local, remote], aliases=aliases, prices=self.prices
        )

    async def ListWorkers(
        self, request: scheduler_pb2.ListWorkersRequest, context: Any
    ) -> scheduler_pb2.ListWorkersResponse:
        if self.workers_come:
            await self.workers_come.wait()
        worker = scheduler_pb2.WorkerInfo(
            worker_id="w1", pool="local", engine="vllm", state=model_pb2.WORKER_STATE_READY, concurrency=64
        )
        if self.engine_load:
            worker.load.CopyFrom(self.engine_load)
        return scheduler_pb2.ListWorkersResponse(workers=[worker])

    def _lose_answer(self) -> None:
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise refused(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "Socket closed")

    def _run(self, run_id: str) -> run_pb2.Run:
        if run_id not in self.runs:
            raise refused(ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", f"Run {run_id} not found.", run_id=run_id)
        return self.runs[run_id]

    def _note(self, context: Any) -> None:
        self.deadlines.append(context.time_remaining())
        received = context.invocation_metadata()
        self.metadata.append(dict(received))
        self.traceparents += [str(value) for key, value in received if key == "traceparent"]


def _check_state(run: run_pb2.Run, allowed: Sequence[run_pb2.RunState.ValueType], reason: str) -> None:
    if run.state not in allowed:
        state = run_pb2.RunState.Name(run.state).removeprefix("RUN_STATE_").lower()
        raise refused(ErrorKind.CONFLICT, reason, f"Run {run.run_id} is {state}.", state=state)


@asynccontextmanager
async def scheduler_server(fake: FakeScheduler, address: str = "127.0.0.1:0") -> AsyncIterator[GrpcServer]:
    def register(server: grpc.aio.Server) -> None:
        scheduler_grpc.add_SchedulerServiceServicer_to_server(fake, server)
        suite_grpc.add_SuiteServiceServicer_to_server(fake.suites, server)
        gate_grpc.add_GateServiceServicer_to_server(fake.gates, server)
        fake.queue.register(server)
        fake.storage.register(server)
        fake.datasets.register(server)
        fake.files.register(server)
        fake.batches.register(server, fake.files)
        fake.rollouts.register(server)
        fake.artifacts.register(server)
        key_api(fake.keys, fake.audit).register(server)
        records = GrpcAuditApi(changes=fake.audit, audit=fake.audit)
        audit_grpc.add_AuditServiceServicer_to_server(records, server)

    async with _serving(register, address, "proctor.v1.SchedulerService") as server:
        yield server


@asynccontextmanager
async def results_server(fake: FakeResults, address: str = "127.0.0.1:0") -> AsyncIterator[GrpcServer]:
    def register(server: grpc.aio.Server) -> None:
        results_grpc.add_ResultsServiceServicer_to_server(fake, server)
        comparison_grpc.add_ComparisonServiceServicer_to_server(fake.comparisons, server)
        leaderboard_grpc.add_LeaderboardServiceServicer_to_server(fake.entries, server)
        rescore_grpc.add_RescoreServiceServicer_to_server(fake.rescoring, server)
        answer_grpc.add_AnswerServiceServicer_to_server(fake.answers, server)
        annotation_grpc.add_AnnotationServiceServicer_to_server(fake.annotations, server)
        export_grpc.add_ExportServiceServicer_to_server(fake.exports, server)

    async with _serving(register, address, "proctor.v1.ResultsService") as server:
        yield server


@asynccontextmanager
async def _serving(register: Any, address: str, name: str) -> AsyncIterator[GrpcServer]:
    server = await serve_grpc(address, [register], [name])
    await server.set_serving(True)
    try:
        yield server
    finally:
        await server.stop(0)
