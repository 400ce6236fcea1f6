"""The scheduler's use cases on in-memory ports, with a worker that answers when told."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import uuid4

from services.scheduler.datasets.load_rows import LoadRows
from services.scheduler.pools.model_names import Aliases
from services.scheduler.pools.pool import Pool, Worker
from services.scheduler.ports import Fence, RunRecord
from services.scheduler.prices.price_list import PriceList
from services.scheduler.prices.settle_price import SettlePrice
from services.scheduler.runs.cancel_run import CancelRun
from services.scheduler.runs.delete_run import DeleteRun
from services.scheduler.runs.drive_run import DriveRun, DriveTools, Patience
from services.scheduler.runs.finish_run import FinishRun
from services.scheduler.runs.pause_run import PauseRun
from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.resume_run import ResumeRun
from services.scheduler.runs.retry_run import RetryRun
from services.scheduler.runs.run import Run, RunId
from services.scheduler.runs.run_order import RunOrder
from services.scheduler.runs.show_queue import ShowQueue
from services.scheduler.runs.show_run import ShowRun
from services.scheduler.runs.submit_run import Submission, SubmitRun
from services.scheduler.shards.add_missing_shards import AddMissingShards
from services.scheduler.shards.credit import CreditRule
from services.scheduler.shards.dispatch_shards import DispatchShards
from services.scheduler.shards.find_dataset_tasks import FindDatasetTasks
from services.scheduler.shards.find_suite_tasks import FindSuiteTasks
from services.scheduler.shards.plan_retry import PlanRetry
from services.scheduler.shards.plan_run import PlanRun
from services.scheduler.shards.progress_board import ProgressBoard
from services.scheduler.shards.reconcile_shards import ReconcileShards
from tests.fakes.in_memory_queue import InMemoryQueue
from tests.fakes.in_memory_runs import NO_TERM, InMemoryRuns
from tests.fakes.scheduler_world import (
    InMemoryRecord,
    InMemoryWire,
    ListedCrew,
    NotedControls,
    SetClock,
)
from tests.fakes.toy_suites import MODEL, SUITE, ToyCatalogue, ToyRows
from tests.fakes.uploaded_contents import UploadedContents

POOL = Pool("remote", "openai", 64, provider="openai")
LISTED_POOL = Pool("local", "vllm", 64, models=("vllm/starter",))
TIME_LIMIT = timedelta(hours=3)
LIMITS = QueueLimits(max_running=3, max_pending_per_user=10)

FailureOf = Callable[[int], str]


def toy_order(**changes: object) -> RunOrder:
    return replace(RunOrder(SUITE, MODEL), **changes)  # type: ignore[arg-type]  # names are checked by replace


def ready_worker(**changes: object) -> Worker:
    worker = Worker("w1", POOL.name, "openai", "openai", concurrency=64, condition="ready")
    return replace(worker, **changes)  # type: ignore[arg-type]  # names are checked by replace


@dataclass
class SchedulerStand:
    runs: InMemoryRuns = field(default_factory=InMemoryRuns)
    record: InMemoryRecord = field(default_factory=InMemoryRecord)
    wire: InMemoryWire = field(default_factory=InMemoryWire)
    crew: ListedCrew = field(default_factory=lambda: ListedCrew([ready_worker()]))
    controls: NotedControls = field(default_factory=NotedControls)
    clock: SetClock = field(default_factory=SetClock)
    board: ProgressBoard = field(default_factory=ProgressBoard)
    suites: ToyCatalogue = field(default_factory=ToyCatalogue)
    rows: ToyRows = field(default_factory=ToyRows)
    datasets: UploadedContents = field(default_factory=UploadedContents)
    aliases: Aliases = field(default_factory=dict)
    rule: CreditRule = field(default_factory=CreditRule)
    prices: PriceList = field(default_factory=PriceList)
    fence: Fence = NO_TERM
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        pools = (POOL, LISTED_POOL)
        pricing = SettlePrice(self.prices, self.runs)
        self.queue_store = InMemoryQueue(self.runs)
        self.queue = ShowQueue(
            self.queue_store, self.runs.limits, self.board, self.crew, self.clock, moment_seconds=0
        )
        self.submitting = SubmitRun(
            self.runs,
            self.suites,
            self.datasets,
            pools,
            self.controls,
            self.clock,
            pricing,
            self.queue,
            self.aliases,
        )
        self.cancelling = CancelRun(self.runs, self.controls, self.clock)
        self.retrying = RetryRun(self.runs, self.controls, self.clock)
        self.pausing = PauseRun(self.runs, self.controls, self.clock)
        self.resuming = ResumeRun(self.runs, self.controls, self.clock)
        self.deleting = DeleteRun(self.runs, self.record, self.clock)
        self.showing = ShowRun(self.runs, self.record, self.board, self.crew, self.clock, self.queue)
        self.tools = self._tools()

    async def submit(self, order: RunOrder | None = None, user: str = "local") -> Run:
        submission = Submission(RunId(str(uuid4())), order or toy_order(), user)
        return (await self.submitting.submit(submission)).run

    async def admit(self) -> None:
        await self.runs.admit(self.fence, self.clock.now())

    async def start(self, order: RunOrder | None = None) -> tuple[Run, DriveRun]:
        """A run that is admitted, with its driver."""
        run = await self.submit(order)
        await self.admit()
        return await self.runs.get(run.run_id), self.driver(run.run_id)

    def driver(self, run_id: RunId) -> DriveRun:
        return DriveRun(self.tools, self.fence, run_id, lambda _: 1)

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
        for run, shard in self.wire.take(run_id):
            for sample in shard.samples:
                self.record.answer(run, sample, shard, failure_of(sample))
                answered += 1
                self.asked.append(sample)
        self.board.record(await self.record.counts(run_id), self.clock.monotonic())
        return answered

    async def finish(self, run_id: RunId, driver: DriveRun, failure_of: FailureOf = lambda _: "") -> Run:
        """Drives and answers until the run is over."""
        for _ in range(200):
            if await self.advance(driver):
                return await self.runs.get(run_id)
            if run_id in self.record.records:
                await self.work(run_id, failure_of)
        raise AssertionError("the run does not end")

    def planner(self, record: RunRecord) -> PlanRun:
        missing_shards = AddMissingShards(self.runs, record)
        return PlanRun(
            self.runs,
            record,
            FindSuiteTasks(self.suites, self.rows),
            FindDatasetTasks(self.datasets, LoadRows(self.datasets.objects)),
            "0.1.0",
            self.clock,
            self.crew,
            missing_shards,
        )

    def _tools(self) -> DriveTools:
        return DriveTools(
            runs=self.runs,
            planner=self.planner(self.record),
            retry_planner=PlanRetry(
                self.runs, self.runs, self.record, AddMissingShards(self.runs, self.record)
            ),
            dispatcher=DispatchShards(self.runs, self.wire, self.board, self.crew, self.rule),
            reconciler=ReconcileShards(self.runs, self.runs, self.record, self.wire, self.board, self.clock),
            finisher=FinishRun(self.runs, self.record, self.wire, self.controls, self.clock),
            controls=self.controls,
            crew=self.crew,
            board=self.board,
            clock=self.clock,
            patience=Patience(),
        )
