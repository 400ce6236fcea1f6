"""One run in the hands of the leader, step by step: plan, dispatch, reconcile, close."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from proctor.values.run import RunId, RunState
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind, MessageTooLarge, RemoteError
from services.common.structured_logs import get_logger
from services.scheduler.dispatch.dispatch_shards import DispatchedRun, DispatchShards
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.dispatch.shard_ledger import ShardLedger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.errors import PlanningFailed, RunStopped
from services.scheduler.planning.plan_retry import PlanRetry
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.lifecycle.cost_limit import limit_problem
from services.scheduler.runs.lifecycle.ports import RunControls, RunStore
from services.scheduler.runs.lifecycle.run import Run, RunError, deadline_error
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import loading_problem, provider_refusal

log = get_logger()

# Kinds of refusal that asking again would not change.
_PERMANENT = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT})


@dataclass(frozen=True, slots=True)
class DriverTimings:
    """`quiet_seconds` without progress lead to a look for lost messages; less when a stream was made anew.

    A planning that breaks `unforeseen_failures` times for no known reason is given up.
    """

    quiet_seconds: float = 3.0
    suspicious_seconds: float = 1.0
    outcomes_seconds: float = 5.0
    row_seconds: float = 0.25
    reminder_seconds: float = 5.0
    unforeseen_failures: int = 10


@dataclass(frozen=True)
class DriverContext:
    """What every driver of a process shares."""

    runs: RunStore
    planner: PlanRun
    retry_planner: PlanRetry
    dispatcher: DispatchShards
    reconciler: ReconcileShards
    finisher: FinishRun
    controls: RunControls
    registry: WorkerRegistry
    tracker: ProgressTracker
    clock: Clock
    timings: DriverTimings = field(default_factory=DriverTimings)


class RunDriver:
    """Lives as long as the leader's term and the run; all that counts is in the stores."""

    def __init__(
        self, tools: DriverContext, token: FencingToken, run_id: RunId, peers: Callable[[str], int]
    ) -> None:
        self._tools = tools
        self._token = token
        self._run_id = run_id
        self._peers = peers
        self._run: Run | None = None
        self._run_read_at = 0.0
        self._slot_since: datetime | None = None
        self._reminded_at = float("-inf")
        self._clearing_since: float | None = None
        self._target: DispatchedRun | None = None
        self._recorded = -1
        self._quiet_since = 0.0
        self._is_suspicious = False
        self._was_incomplete = False
        self._unforeseen = 0

    @property
    def pool(self) -> str:
        return self._run.pool if self._run else ""

    def suspect(self) -> None:
        """Messages may have been lost: send nothing more until it is known what is missing."""
        self._is_suspicious = True

    def reset(self) -> None:
        """After a failure: believe the stores, not what is held here."""
        self._run = None
        self._target = None

    async def advance(self) -> bool:
        """Does what is to be done now; True when there is nothing left to do for the run."""
        run = await self._current_run()
        if run.is_over:
            return True
        if run.state in (RunState.PENDING, RunState.PAUSED):
            await self._tools.finisher.withdraw_work(run)
            return True
        if run.state.is_final:
            return await self._close(run)
        error = None if run.is_closing else self._why_it_cannot_go_on(run)
        if run.is_closing:
            await self._complete(run)
        elif error:
            await self._fail(run, error)
        elif not run.is_planned:
            await self._plan(run)
        else:
            await self._work(run)
        return False

    async def _current_run(self) -> Run:
        now = self._now()
        if self._run is None or now - self._run_read_at >= self._tools.timings.row_seconds:
            self._run = await self._tools.runs.get(self._run_id)
            self._run_read_at = now
            self._look_for_a_new_place(self._run)
        if now - self._reminded_at >= self._tools.timings.reminder_seconds:
            self._reminded_at = now
            await self._tools.controls.refresh(self._run)
        return self._run

    def _look_for_a_new_place(self, run: Run) -> None:
        """Since it was without one, workers may have dropped what by our books is on the wire."""
        if run.state is RunState.RUNNING and run.admitted_at != self._slot_since:
            self._slot_since = run.admitted_at
            self._target = None
            self._is_suspicious |= run.ran_seconds > 0

    def _why_it_cannot_go_on(self, run: Run) -> RunError | None:
        late = deadline_error(run, self._tools.clock.now())
        if late:
            return late
        reason = loading_problem(run.order.model, run.pool, self._tools.registry.workers())
        if reason:
            message = f"No worker of pool {run.pool} can load {run.order.model}: {reason}"
            return RunError("MODEL_CANNOT_LOAD", message)
        refusal = provider_refusal(run.run_id, run.epoch, self._tools.registry.workers())
        return RunError("PROVIDER_REFUSED", f"AI provider error: {refusal}") if refusal else None

    async def _fail(self, run: Run, error: RunError) -> None:
        log.info("run failed", run=run.run_id, reason=error.reason, message=error.message)
        await self._tools.finisher.fail(self._token, run, error)
        self.reset()

    async def _plan(self, run: Run) -> None:
        try:
            if run.planned_epoch == 0:
                await self._tools.planner.plan(self._token, run)
            else:
                await self._tools.retry_planner.plan(self._token, run)
        except PlanningFailed as failure:
            await self._fail(run, failure.error)
        except RunStopped:
            log.info("planning stopped", run=run.run_id)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told or raised again below
            await self._fail(run, self._why_it_cannot_be(error, "planned"))
        self.reset()
        self._tools.tracker.touch(run.run_id, self._now())

    def _why_it_cannot_be(self, error: Exception, done: str) -> RunError:
        """Raises the error again where another try may help."""
        if isinstance(error, DomainError) and error.kind in _PERMANENT:
            return RunError(error.reason, f"The run cannot be {done}: {error.message}")
        if isinstance(error, DomainError) and error.kind is not ErrorKind.INTERNAL:
            raise error
        self._unforeseen += 1
        if self._unforeseen < self._tools.timings.unforeseen_failures:
            raise error
        incident = uuid4().hex[:12]
        log.error("run broke", run=self._run_id, done=done, incident=incident, exc_info=error)
        message = f"Something went wrong while the run was {done}, {self._unforeseen} times"
        return RunError("INTERNAL", f"{message} (incident {incident}); the log of the scheduler says what.")

    async def _work(self, run: Run) -> None:
        target = await self._loaded_target(run)
        self._tools.dispatcher.collect_done(target)
        if self._is_full(target):
            await self._complete(run)
            return
        too_dear = limit_problem(run, self._tools.tracker.counts(run.run_id, run.epoch))
        if too_dear:
            await self._fail(run, too_dear)
            return
        if not self._is_suspicious:
            peers = max(self._peers(run.pool), 1)
            try:
                await self._tools.dispatcher.dispatch(target, runs_of_pool=peers, now=self._now())
            except MessageTooLarge as error:
                message = f"A shard of the run cannot be sent, now or later: {error.message}"
                await self._fail(run, RunError("SAMPLE_TOO_LARGE", message))
                return
        await self._reconcile_when_quiet(target)

    async def _loaded_target(self, run: Run) -> DispatchedRun:
        if self._target is None:
            tasks = await self._tools.runs.planned_tasks(run.run_id)
            target = DispatchedRun(self._token, run, tasks, ShardLedger())
            self._tools.tracker.keep_shards(run.run_id)
            # Before anything goes out: a worker that still holds it for waiting would drop it.
            await self._tools.controls.refresh(run)
            await self._tools.dispatcher.reload(target)
            await self._tools.reconciler.refresh_counts(target)
            self._target = target
            self._quiet_since = self._now()
        return self._target

    def _is_full(self, target: DispatchedRun) -> bool:
        counts = self._tools.tracker.counts(self._run_id, target.run.epoch)
        recorded = counts.recorded if counts else 0
        if recorded != self._recorded:
            self._recorded = recorded
            self._quiet_since = self._now()
        is_idle = target.ledger.is_drained and not target.ledger.in_flight
        return recorded >= target.run.total and (is_idle or not self._was_incomplete)

    async def _complete(self, run: Run) -> None:
        try:
            await self._tools.finisher.complete(self._token, run)
        except RemoteError as error:
            if error.reason == "RUN_INCOMPLETE":
                log.warning("counts were full and samples are missing", run=run.run_id)
                await self._tools.finisher.reopen(self._token, run)
                self._was_incomplete = self._is_suspicious = True
            else:
                await self._fail(run, self._why_it_cannot_be(error, "summed up"))
        self.reset()

    async def _reconcile_when_quiet(self, target: DispatchedRun) -> None:
        patience = self._tools.timings
        wanted = patience.suspicious_seconds if self._is_suspicious else patience.quiet_seconds
        has_something_out = target.ledger.in_flight or target.ledger.is_drained
        if self._now() - self._quiet_since < wanted or not (has_something_out or self._is_suspicious):
            return
        self._quiet_since = self._now()
        if not await self._tools.reconciler.is_quiet(target):
            return
        await self._tools.reconciler.refresh_counts(target)
        self._tools.dispatcher.collect_done(target)
        await self._tools.dispatcher.save_done(target)
        if self._is_full(target):
            return
        found = await self._tools.reconciler.reconcile(target)
        log.info(
            "reconciled", run=self._run_id, done=found.done, again=found.returned, orphans=found.orphaned
        )
        self._is_suspicious = False
        self._target = None

    async def _close(self, run: Run) -> bool:
        if self._clearing_since is None:
            await self._tools.finisher.withdraw_work(run)
            self._clearing_since = self._now()
        is_late = self._now() - self._clearing_since >= self._tools.timings.outcomes_seconds
        if not is_late and not await self._tools.finisher.are_outcomes_in(run):
            return False
        await self._tools.finisher.close_stopped(self._token, run)
        return True

    def _now(self) -> float:
        return self._tools.clock.monotonic()
