"""The scheduler's use cases on in-memory ports, with a worker that answers on demand."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import uuid4

from proctor.values.providers.worker import WorkerState
from proctor.values.run import RunId
from services.scheduler.audit.audit_record import ChangePage, ObjectKind
from services.scheduler.disks.watch_disks import WatchDisks
from services.scheduler.dispatch.close_finished_run import CloseFinishedRun
from services.scheduler.dispatch.count_unscored import CountUnscored
from services.scheduler.dispatch.decide_run import DecideRun
from services.scheduler.dispatch.dispatch_run import DriverContext
from services.scheduler.dispatch.dispatch_shards import CreditRule, DispatchShards, PoolLoad
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.dispatch.driven_rows import DrivenRows
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.judging.yaml_judge_prompts import YamlJudgePrompts
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.find_tasks import FindTasks
from services.scheduler.planning.open_verdicts import OpenVerdicts
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.planning.ports import OpenableRecord
from services.scheduler.planning.rendered_samples import RenderedSamples
from services.scheduler.pricing.price_list import PriceList
from services.scheduler.pricing.resolve_price import ResolvePrice
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.lifecycle.change_state import ChangeState, DeleteRun
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.estimate_run import EstimateRun
from services.scheduler.runs.reads.list_runs import ListRuns
from services.scheduler.runs.reads.run_snapshot import RunEstimate
from services.scheduler.runs.reads.show_run import ShowRun, WatchRun
from services.scheduler.uploads.storage.store_parts import LoadRows
from services.scheduler.workers.model_names import Aliases
from services.scheduler.workers.worker import Worker
from tests.fakes.pools import model_pool, provider_pool
from tests.fakes.scheduler.listed_answers import ListedAnswers
from tests.fakes.scheduler.memory.queue import InMemoryQueue
from tests.fakes.scheduler.memory.runs import NO_TERM, InMemoryRuns
from tests.fakes.scheduler.surroundings import (
    InMemoryRecord,
    InMemoryStream,
    ListedWorkers,
    NoArtifacts,
    NotedControls,
    NotedEvents,
    NotedRolloutUse,
    SetClock,
)
from tests.fakes.scheduler_rules import CREDIT, TIMINGS, queue_limits
from tests.fakes.storage.set_disk import DISK_LIMITS, SetDisk
from tests.fakes.storage.uploaded_contents import UploadedContents
from tests.fakes.suites.toy_suites import MODEL, SUITE, ToyCatalogue, ToyRows

POOL = provider_pool("remote")
LISTED_POOL = model_pool("local", "vllm/starter")
TIME_LIMIT = timedelta(hours=3)
LIMITS = queue_limits(max_running_runs=3, max_pending_runs_per_user=10)

FailureOf = Callable[[int], str]


def toy_order(**changes: object) -> RunOrder:
    return replace(RunOrder(SUITE, MODEL), **changes)  # type: ignore[arg-type]  # names are checked by replace


def ready_worker(**changes: object) -> Worker:
    worker = Worker("w1", POOL.name, "openai", "openai", concurrency=64, state=WorkerState.READY)
    return replace(worker, **changes)  # type: ignore[arg-type]  # names are checked by replace


class NoChanges:
    """A list of changes that is empty."""

    async def page(
        self, size: int, before: int | None, *, object_id: str | None = None, kind: ObjectKind | None = None
    ) -> ChangePage:
        del size, before, object_id, kind
        return ChangePage([], None)


@dataclass
class SchedulerHarness:
    runs: InMemoryRuns = field(default_factory=InMemoryRuns)
    record: InMemoryRecord = field(default_factory=InMemoryRecord)
    stream: InMemoryStream = field(default_factory=InMemoryStream)
    rollout_use: NotedRolloutUse = field(default_factory=NotedRolloutUse)
    registry: ListedWorkers = field(default_factory=lambda: ListedWorkers([ready_worker()]))
    controls: NotedControls = field(default_factory=NotedControls)
    clock: SetClock = field(default_factory=SetClock)
    tracker: ProgressTracker = field(default_factory=ProgressTracker)
    suites: ToyCatalogue = field(default_factory=ToyCatalogue)
    rows: ToyRows = field(default_factory=ToyRows)
    datasets: UploadedContents = field(default_factory=UploadedContents)
    answers: ListedAnswers = field(default_factory=ListedAnswers)
    aliases: Aliases = field(default_factory=dict)
    rule: CreditRule = CREDIT
    concurrencies: Mapping[str, int] = field(default_factory=lambda: {POOL.name: 64})
    prices: PriceList = field(default_factory=PriceList)
    fencing_token: FencingToken = NO_TERM
    asked: list[int] = field(default_factory=list)
    refused_streams: dict[str, str] = field(default_factory=dict)
    disk: SetDisk = field(default_factory=SetDisk)
    events: NotedEvents = field(default_factory=NotedEvents)

    def __post_init__(self) -> None:
        pools = (POOL, LISTED_POOL)
        pricing = ResolvePrice(self.prices, pools)
        self.queue_store = InMemoryQueue(self.runs)
        self.disks = WatchDisks([self.disk], DISK_LIMITS)
        self.forecasts = self.forecasting(max_age_seconds=0)
        self.submitting = SubmitRun(
            self.runs,
            self.suites,
            self.datasets,
            YamlJudgePrompts(),
            pools,
            self.controls,
            self.clock,
            pricing,
            self.aliases,
        )
        self.changing = ChangeState(self.runs, self.controls, self.clock)
        self.artifacts = NoArtifacts()
        self.deleting = DeleteRun(self.runs, self.record, self.artifacts, self.clock)
        self.counting = CountRuns(
            self.record,
            self.tracker,
            self.registry,
            lambda: self.refused_streams,
            self.disks.awaited,
            self.clock,
        )
        self.showing = ShowRun(self.runs, self.counting, self.forecasts, NoChanges())
        self.listing = self.listing_by(self.forecasts)
        self.watching = WatchRun(self.showing, self.tracker, self.clock)
        self.tools = self._tools()

    def forecasting(self, max_age_seconds: float) -> ForecastQueue:
        return ForecastQueue(
            self.queue_store,
            self.runs.limits,
            self.tracker,
            self.registry,
            self.clock,
            self.disks.awaited,
            max_age_seconds,
        )

    def listing_by(self, forecasts: ForecastQueue) -> ListRuns:
        return ListRuns(self.runs, self.counting, forecasts, self.registry)

    async def estimate(self, run: Run, *, is_stored: bool = True) -> RunEstimate:
        return await EstimateRun(self.runs, self.forecasts).estimate(run, is_stored=is_stored)

    async def submit(self, order: RunOrder | None = None, user: str = "local") -> Run:
        submission = Submission(RunId(str(uuid4())), order or toy_order(), user)
        return await self.submitting.submit(submission)

    async def fill_disk(self, used: int) -> None:
        """So many of its 1,000 bytes are used, and that is noticed."""
        self.disk.used = used
        await self.disks.watch()

    async def admit(self) -> None:
        await self.runs.admit(self.fencing_token, self.clock.now())

    async def start(self, order: RunOrder | None = None) -> tuple[Run, DriveRun]:
        """A run that is admitted, with its driver."""
        run = await self.submit(order)
        await self.admit()
        return await self.runs.get(run.run_id), self.driver(run.run_id)

    def driver(self, run_id: RunId) -> DriveRun:
        return DriveRun(self.tools, self.fencing_token, run_id, lambda _: PoolLoad(1, math.inf))

    async def advance(self, driver: DriveRun, steps: int = 1) -> bool:
        """Steps with a second between them; True when the driver says that it is done."""
        for _ in range(steps):
            self.clock.seconds += 1
            if await driver.advance():
                return True
        return False

    async def work(self, run_id: RunId, failure_of: FailureOf = lambda _: "") -> int:
        """A worker answers all that was sent, and results reports it; gives the number of samples."""
        answered = 0
        for run, shard in self.stream.take(run_id):
            for sample in shard.samples:
                self.record.answer(run, sample, shard, failure_of(sample))
                answered += 1
                self.asked.append(sample)
        report = await self.record.counts(run_id, includes_shards=True)
        self.tracker.record(report, self.clock.monotonic())
        return answered

    async def finish(self, run_id: RunId, driver: DriveRun, failure_of: FailureOf = lambda _: "") -> Run:
        """Drives and answers until the run is closed."""
        for _ in range(200):
            if await self.advance(driver):
                return await self.runs.get(run_id)
            if run_id in self.record.records:
                await self.work(run_id, failure_of)
        raise AssertionError("the run does not end")

    def planner(self, record: OpenableRecord) -> PlanRun:
        return PlanRun(
            runs=self.runs,
            shards=self.runs,
            record=record,
            tasks=FindTasks(
                self.suites,
                self.rows,
                self.datasets,
                LoadRows(self.datasets.objects),
                OpenVerdicts(YamlJudgePrompts(), self.answers),
            ),
            proctor_version="0.1.0",
            clock=self.clock,
            registry=self.registry,
            concurrencies=self.concurrencies,
            rendered=RenderedSamples(),
        )

    def _tools(self) -> DriverContext:
        unscored = CountUnscored(self.rollout_use, self.record)
        return DriverContext(
            runs=self.runs,
            rows=DrivenRows(self.runs, self.clock, 0.25),
            planner=self.planner(self.record),
            dispatcher=DispatchShards(self.runs, self.stream, self.tracker, self.registry, self.rule),
            reconciler=ReconcileShards(self.runs, self.record, self.stream, self.tracker, self.clock),
            finisher=FinishRun(self.runs, self.runs, self.record, self.controls, self.clock, unscored),
            decider=DecideRun(self.runs, self.runs, self.record, self.tracker, self.clock),
            closer=CloseFinishedRun(self.runs, self.runs, self.record, self.stream, self.controls, unscored),
            unscored=unscored,
            events=self.events,
            controls=self.controls,
            registry=self.registry,
            tracker=self.tracker,
            clock=self.clock,
            timings=TIMINGS,
            awaited_disk=self.disks.awaited,
        )
