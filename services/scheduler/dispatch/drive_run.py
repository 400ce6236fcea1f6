"""One run as the leader drives it, phase by phase: plan, dispatch, complete, close."""

from collections.abc import Callable
from datetime import datetime
from uuid import uuid4

from proctor.values.run import RunId, RunState
from services.common.errors import DomainError, ErrorKind, RemoteError
from services.common.structured_logs import get_logger
from services.scheduler.dispatch.decide_run import RunDecision
from services.scheduler.dispatch.dispatch_run import DispatchRun, DriverContext
from services.scheduler.dispatch.dispatch_shards import PoolLoad
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.plan_run import PlanningFailed, RunStopped
from services.scheduler.runs.lifecycle.run import Run, RunError, deadline_error

log = get_logger()

# Kinds of errors that a repetition would not change.
_PERMANENT = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT})


class _CurrentRun:
    """The run's row, and when workers were last told of it."""

    def __init__(self, context: DriverContext, run_id: RunId) -> None:
        self._context = context
        self._run_id = run_id
        self._refreshed_at = float("-inf")
        self.row: Run | None = None

    async def read(self) -> Run:
        rows, now = self._context.rows, self._context.clock.monotonic()
        self.row = await (rows.read_now if self.row is None else rows.read)(self._run_id)
        if now - self._refreshed_at >= self._context.timings.refresh_seconds:
            self._refreshed_at = now
            await self._context.controls.refresh(self.row)
        return self.row


class DriveRun:
    """Lives for one term of the leader and one run. The stores hold everything that matters."""

    def __init__(
        self,
        context: DriverContext,
        token: FencingToken,
        run_id: RunId,
        load_of: Callable[[str], PoolLoad],
    ) -> None:
        self._context = context
        self._token = token
        self._current = _CurrentRun(context, run_id)
        self._shards = DispatchRun(context, token, load_of)
        self._decision = RunDecision(context.decider, token)
        self._admitted_at: datetime | None = None
        self._finished_since: float | None = None
        self._unexpected_failures = 0

    @property
    def pool(self) -> str:
        return self._current.row.pool if self._current.row else ""

    @property
    def dispatched_bytes(self) -> int:
        """Bytes of the run that may be on the stream of shards."""
        return self._shards.dispatched_bytes

    @property
    def shard_samples(self) -> float:
        """Samples of its dispatched shards in the mean."""
        return self._shards.shard_samples

    def note_possible_loss(self) -> None:
        """Messages may be lost: nothing more is sent until it is known what is missing."""
        self._shards.note_possible_loss()

    def reset(self) -> None:
        """Starts over after a failure: everything is read from the stores again."""
        self._current.row = None
        self._shards.reset()

    async def advance(self) -> bool:
        """Does the next step; returns True once nothing is left to do for the run."""
        run = await self._current.read()
        self._note_slot(run)
        if run.is_closed:
            return True
        # The run lost its slot. Its driver ends here; the next admission starts a new one.
        if run.state in (RunState.PENDING, RunState.PAUSED):
            await self._context.closer.withdraw_work(run)
            return True
        if run.state.is_final:
            return await self._close(run)
        if run.is_closing:
            # Of a run that stopped early, what is on its way is recorded; the rest is not asked.
            if not run.needs_no_worker or await self._is_withdrawn(run):
                await self._complete(run)
        elif error := self._blocking_error(run):
            await self._fail(run, error)
        elif run.is_planned:
            await self._dispatch(run)
        # A plan is written to the disks too.
        elif self._context.has_room:
            await self._plan(run)
        return False

    def _note_slot(self, run: Run) -> None:
        """While the run had no slot, workers may have dropped shards that are stored as dispatched."""
        if run.state is RunState.RUNNING and run.admitted_at != self._admitted_at:
            self._admitted_at = run.admitted_at
            self._shards.reset()
            if run.ran_seconds > 0:
                self._shards.note_possible_loss()

    def _blocking_error(self, run: Run) -> RunError | None:
        late = deadline_error(run, self._context.clock.now())
        if late:
            return late
        workers = self._context.registry.table().pool(run.pool)
        reason = workers.loading_problem(run.order.model)
        if reason:
            message = f"No worker of pool {run.pool} can load {run.order.model}: {reason}"
            return RunError("MODEL_CANNOT_LOAD", message)
        refusal = workers.provider_refusal(run.run_id, run.epoch)
        return RunError("PROVIDER_REFUSED", f"AI provider error: {refusal}") if refusal else None

    async def _plan(self, run: Run) -> None:
        try:
            # A retry keeps the tasks and samples of the first plan, and plans only what is missing.
            if run.planned_epoch == 0:
                await self._context.planner.plan(self._token, run)
            else:
                tasks = await self._context.runs.planned_tasks(run.run_id)
                await self._context.planner.plan_retry(self._token, run, tasks)
        except PlanningFailed as failure:
            await self._fail(run, failure.error)
        except RunStopped:
            log.info("planning stopped", run_id=run.run_id)
        except Exception as error:  # noqa: BLE001  # reported as the run's error or raised again
            await self._fail(run, self._run_error(run, error, "planned"))
        self.reset()
        self._context.tracker.touch(run.run_id, self._context.clock.monotonic())

    async def _dispatch(self, run: Run) -> None:
        # Before the next shards go out.
        if await self._decision.stops(run):
            self.reset()
            return
        is_held = not self._context.has_room or await self._decision.waits(run)
        outcome = await self._shards.step(run, is_held=is_held)
        if isinstance(outcome, RunError):
            await self._fail(run, outcome)
        elif outcome:
            await self._complete(run)

    async def _complete(self, run: Run) -> None:
        try:
            await self._context.finisher.complete(self._token, run)
        except RemoteError as error:
            # The counters said that all is recorded and results disagrees: results is right.
            if error.reason == "RUN_INCOMPLETE":
                log.warning("all outcomes counted, but some are missing", run_id=run.run_id)
                await self._context.finisher.reopen(self._token, run)
                self._shards.note_incomplete()
            else:
                await self._fail(run, self._run_error(run, error, "closed"))
        except Exception as error:  # noqa: BLE001  # reported as the run's error or raised again
            await self._fail(run, self._run_error(run, error, "closed"))
        self.reset()

    async def _fail(self, run: Run, error: RunError) -> None:
        log.info("run failed", run_id=run.run_id, reason=error.reason, message=error.message)
        await self._context.finisher.fail(self._token, run, error)
        self.reset()

    async def _close(self, run: Run) -> bool:
        """Waits a while for outcomes that are on their way, then closes the record.

        What results can never close is closed here: the run can be retried and deleted.
        """
        if not await self._is_withdrawn(run):
            return False
        try:
            return await self._context.closer.close(self._token, run)
        except Exception as error:  # noqa: BLE001  # closes the run or is raised again
            problem = self._run_error(run, error, "closed")
        log.error("run closed without a summary", run_id=run.run_id, reason=problem.reason)
        await self._context.closer.close_without_counts(self._token, run)
        return True

    async def _is_withdrawn(self, run: Run) -> bool:
        """Whether its last outcomes are in, or late."""
        now = self._context.clock.monotonic()
        # Work is withdrawn first, so that the wait below sees the last outcomes and no new ones.
        if self._finished_since is None:
            await self._context.closer.withdraw_work(run)
            self._finished_since = now = self._context.clock.monotonic()
        is_late = now - self._finished_since >= self._context.timings.outcomes_seconds
        return is_late or await self._context.closer.are_outcomes_in(run)

    def _run_error(self, run: Run, error: Exception, done: str) -> RunError:
        """The error of a run that cannot be `done`. Raises `error` again if a repetition may help."""
        if isinstance(error, DomainError) and error.kind in _PERMANENT:
            return RunError(error.reason, f"The run cannot be {done}: {error.message}")
        # An outage, a full stream or a lost term: counted failures are only those that no rule explains.
        if isinstance(error, DomainError) and error.kind is not ErrorKind.INTERNAL:
            raise error
        self._unexpected_failures += 1
        if self._unexpected_failures < self._context.timings.unexpected_failures:
            raise error
        incident = uuid4().hex[:12]
        log.error("run failed unexpectedly", run_id=run.run_id, done=done, incident=incident, exc_info=error)
        message = f"Something went wrong while the run was being {done}, {self._unexpected_failures} times"
        return RunError("INTERNAL", f"{message} (incident {incident}); the log of the scheduler says what.")
