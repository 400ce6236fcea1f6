"""The shards of one planned run: dispatched by credit, and reconciled when nothing arrives."""

from collections.abc import Callable
from dataclasses import dataclass

from proctor.values.usage import NO_TOKENS, TokenUsage
from services.common.clock import Clock
from services.common.errors import MessageTooLarge
from services.scheduler.disks.disk_use import AwaitedDisk, DiskStage
from services.scheduler.dispatch.close_finished_run import CloseFinishedRun
from services.scheduler.dispatch.count_unscored import CountUnscored
from services.scheduler.dispatch.decide_run import DecideRun
from services.scheduler.dispatch.dispatch_shards import DispatchedRun, DispatchShards, PoolLoad
from services.scheduler.dispatch.driven_rows import DrivenRows
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.dispatch.run_watch import RunWatch
from services.scheduler.dispatch.shard_ledger import ShardLedger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.ports import EventLog
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.lifecycle.cost_limit import limit_problem
from services.scheduler.runs.lifecycle.ports import RunControls, RunStore
from services.scheduler.runs.lifecycle.run import Run, RunError
from services.scheduler.workers.ports import WorkerRegistry

_POSSIBLE_LOSS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DriverTimings:
    """Timings: after `quiet_seconds` without progress a run is searched for lost messages; sooner where
    something says that some may be lost.

    `refresh_seconds` is how often it is looked at whether workers are told of the run's state. A run that
    fails `unexpected_failures` times for unknown reasons is given up.
    """

    quiet_seconds: float
    outcomes_seconds: float = 5.0
    refresh_seconds: float = 5.0
    unexpected_failures: int = 10

    @property
    def possible_loss_seconds(self) -> float:
        """A small site may set a quiet time below this one; a possible loss never waits longer."""
        return min(self.quiet_seconds, _POSSIBLE_LOSS_SECONDS)


@dataclass(frozen=True, slots=True)
class DriverContext:
    runs: RunStore
    rows: DrivenRows
    planner: PlanRun
    dispatcher: DispatchShards
    reconciler: ReconcileShards
    finisher: FinishRun
    closer: CloseFinishedRun
    unscored: CountUnscored
    decider: DecideRun
    events: EventLog
    controls: RunControls
    registry: WorkerRegistry
    tracker: ProgressTracker
    clock: Clock
    timings: DriverTimings
    awaited_disk: AwaitedDisk

    @property
    def has_room(self) -> bool:
        """Whether the disks have room for more outcomes and samples."""
        return self.awaited_disk(DiskStage.DISPATCH) is None


class DispatchRun:
    """Keeps a view of the stored shards. `reset` drops it, so that the next step reads it again."""

    def __init__(
        self, context: DriverContext, token: FencingToken, load_of: Callable[[str], PoolLoad]
    ) -> None:
        self._context = context
        self._token = token
        self._load_of = load_of
        self._dispatched_run: DispatchedRun | None = None
        self._recorded = -1
        self._quiet_since = 0.0
        self._may_have_lost = False
        self._was_incomplete = False
        self._watch = RunWatch(context.events, token, context.clock)

    @property
    def dispatched_bytes(self) -> int:
        return self._dispatched_run.ledger.dispatched_bytes if self._dispatched_run else 0

    @property
    def shard_samples(self) -> float:
        return self._dispatched_run.ledger.mean_samples if self._dispatched_run else 0

    def reset(self) -> None:
        self._dispatched_run = None

    def note_possible_loss(self) -> None:
        """Messages may be lost: nothing more is sent until it is known what is missing."""
        self._may_have_lost = True

    def note_incomplete(self) -> None:
        """All outcomes were counted, but results misses some."""
        self._was_incomplete = self._may_have_lost = True

    async def step(self, run: Run, *, is_held: bool = False) -> bool | RunError:
        """Sends what the credit allows, nothing where the run `is_held`.

        True once all is recorded, a `RunError` if the run has to fail.
        """
        dispatched_run = await self._loaded(run)
        self._context.dispatcher.collect_done(dispatched_run)
        # Before the cost limit: a run whose last outcome crosses the limit is complete, not failed.
        if self._is_complete(dispatched_run):
            return True
        counts = self._context.tracker.counts(run.run_id, run.epoch)
        unscored = await self._unscored(dispatched_run)
        await self._watch.look(run, counts, unscored)
        error = limit_problem(run, counts, unscored)
        if error is None and not self._may_have_lost and not is_held:
            error = await self._dispatch(dispatched_run)
        if error is not None:
            return error
        await self._reconcile_when_quiet(dispatched_run)
        return False

    async def _unscored(self, dispatched_run: DispatchedRun) -> TokenUsage:
        """Tokens of rollouts without an outcome, where they may end the run: one may cost as much as many."""
        run, tasks = dispatched_run.run, dispatched_run.tasks
        if run.order.max_cost is None or not any(task.is_of_rollouts for task in tasks):
            return NO_TOKENS
        return await self._context.unscored.count(run, list(dispatched_run.ledger.dispatched.values()))

    async def _loaded(self, run: Run) -> DispatchedRun:
        if self._dispatched_run is None:
            context = self._context
            tasks = await context.runs.planned_tasks(run.run_id)
            dispatched_run = DispatchedRun(self._token, run, tasks, ShardLedger())
            context.tracker.keep_shards(run.run_id)
            # Before the first dispatch: a worker that still sees the run as pending would drop its shards.
            await context.controls.refresh(run)
            await context.dispatcher.reload(dispatched_run)
            await context.reconciler.refresh_counts(dispatched_run)
            self._dispatched_run = dispatched_run
            self._quiet_since = self._now()
        return self._dispatched_run

    async def _dispatch(self, dispatched_run: DispatchedRun) -> RunError | None:
        try:
            await self._context.dispatcher.dispatch(
                dispatched_run, self._load_of(dispatched_run.run.pool), self._now()
            )
        except MessageTooLarge as error:
            message = f"A shard of the run cannot be sent, now or later: {error.message}"
            return RunError("SAMPLE_TOO_LARGE", message)
        return None

    def _is_complete(self, dispatched_run: DispatchedRun) -> bool:
        counts = self._context.tracker.counts(dispatched_run.run.run_id, dispatched_run.run.epoch)
        recorded = counts.recorded if counts else 0
        if recorded != self._recorded:
            self._recorded = recorded
            self._quiet_since = self._now()
        # After results refused to close the run, the counters alone no longer say that it is complete.
        is_idle = dispatched_run.ledger.is_drained and not dispatched_run.ledger.dispatched
        return recorded >= dispatched_run.run.total and (is_idle or not self._was_incomplete)

    async def _reconcile_when_quiet(self, dispatched_run: DispatchedRun) -> None:
        timings, reconciler = self._context.timings, self._context.reconciler
        wanted = timings.possible_loss_seconds if self._may_have_lost else timings.quiet_seconds
        has_something_out = dispatched_run.ledger.dispatched or dispatched_run.ledger.is_drained
        if self._now() - self._quiet_since < wanted or not (has_something_out or self._may_have_lost):
            return
        self._quiet_since = self._now()
        # Slow is not lost: while the stream holds a message of the run, nothing is sent again.
        if not await reconciler.is_quiet(dispatched_run):
            return
        await reconciler.refresh_counts(dispatched_run)
        self._context.dispatcher.collect_done(dispatched_run)
        # The view is dropped below: what is done and not stored would come back as dispatched.
        await self._context.dispatcher.save_done(dispatched_run)
        if self._is_complete(dispatched_run):
            return
        await reconciler.reconcile(dispatched_run)
        self._may_have_lost = False
        # The search changed stored shards, so the view is read again.
        self._dispatched_run = None

    def _now(self) -> float:
        return self._context.clock.monotonic()
