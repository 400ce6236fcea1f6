"""The scheduler's stores in memory: they keep what Postgres keeps and refuse what it refuses."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from proctor.values.comparison import Decision
from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.usage import TokenUsage
from services.common.checked_fields import refuse
from services.common.errors import RunNotFound
from services.scheduler.audit.audit_record import Author
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.planning.ports import PlanRecord, ShardMoves
from services.scheduler.planning.shard import Shard
from services.scheduler.runs.admission.run_estimate import CompletedRun
from services.scheduler.runs.admission.run_slots import SlotChanges, assign_slots, slot_of, slot_request_of
from services.scheduler.runs.lifecycle import errors
from services.scheduler.runs.lifecycle.run import CLOSING, PlannedTask, Run, RunFinish, may_become
from services.scheduler.runs.lifecycle.run_labels import LabelChange, labels_problem
from services.scheduler.runs.reads.run_list import PastUsage, RunCursor, RunFilter, RunPage
from tests.fakes.scheduler.memory import shards as memory_shards
from tests.fakes.scheduler.memory.limits import InMemoryLimits
from tests.fakes.scheduler.memory.run_filters import matches
from tests.fakes.scheduler.memory.shards import StoredShard
from tests.fakes.scheduler.surroundings import slot_seconds

NO_TERM = FencingToken(0)


@dataclass
class InMemoryRuns:
    """Runs, tasks and shards; `token` is the number of the present term."""

    fencing_token: FencingToken = NO_TERM
    runs: dict[RunId, Run] = field(default_factory=dict)
    queued_at: dict[RunId, datetime] = field(default_factory=dict)
    placed_at: dict[str, datetime] = field(default_factory=dict)
    requests: dict[tuple[str, str], RunId] = field(default_factory=dict)
    digests: dict[tuple[str, str], bytes] = field(default_factory=dict)
    tasks: dict[RunId, tuple[PlannedTask, ...]] = field(default_factory=dict)
    shards: dict[RunId, dict[int, StoredShard]] = field(default_factory=dict)
    deletions: dict[RunId, datetime] = field(default_factory=dict)
    limits: InMemoryLimits = field(default_factory=InMemoryLimits)

    async def trace(self, _: RunId) -> str:
        return ""

    def begin_term(self) -> FencingToken:
        self.fencing_token = FencingToken(self.fencing_token + 1)
        return self.fencing_token

    # RunStore

    async def add(
        self, run: Run, request_id: str, base: Run | None = None, gate: object = None, *, digest: bytes = b""
    ) -> Run:
        del gate  # never read with the run
        stored = self._add(run, request_id)
        self.digests.setdefault((run.user, request_id), digest)
        if base is not None and stored is run:
            self._add(base, "")
        return stored

    def _add(self, run: Run, request_id: str) -> Run:
        found = self.runs.get(self.requests.get(request := (run.user, request_id), run.run_id))
        if found is not None:
            if found.order.is_repeated_by(run.order):
                return found
            of = {"run_id": found.run_id, "dataset_id": found.order.dataset_id}
            raise errors.RequestIdTaken(request_id=request_id, **of)
        self._check_priority(run)
        self._check_queue(run.user)
        if request_id:
            self.requests[request] = run.run_id
        self.runs[run.run_id] = run
        self.queued_at[run.run_id] = run.created_at
        return run

    async def repeated(self, request_id: str, user: str, digest: bytes) -> Run | None:
        request = (user, request_id)
        return self.runs.get(self.requests[request]) if self.digests.get(request) == digest else None

    async def get(self, run_id: RunId) -> Run:
        if run_id not in self.runs:
            raise RunNotFound(run_id=run_id)
        return self.runs[run_id]

    async def among(self, run_ids: Sequence[RunId]) -> Sequence[Run]:
        return [self.runs[run_id] for run_id in run_ids if run_id in self.runs]

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage:
        newest = sorted(self.runs.values(), key=lambda run: (run.created_at, run.run_id), reverse=True)
        matching = [run for run in newest if matches(run, wanted)]
        behind = [
            run
            for run in matching
            if after is None or (run.created_at, run.run_id) < (after.created_at, after.run_id)
        ]
        if after:
            return RunPage(behind[:size], after.total)
        completed = sum(run.state is RunState.COMPLETED for run in matching)
        return RunPage(behind[:size], len(matching), completed)

    async def cancel(self, run_id: RunId, author: Author) -> Run | None:
        run = self.runs.get(run_id)
        if run is None or (run.state is RunState.CANCELLED and run.finished_at == author.at):
            return run
        if not may_become(run.state, RunState.CANCELLED):
            return None
        return self._put(replace(run, state=RunState.CANCELLED, finished_at=author.at, is_closing=False))

    async def label(self, run_id: RunId, change: LabelChange, _: Author) -> None:
        run = await self.get(run_id)
        labels = change.of(run.labels)
        refuse(labels_problem(labels))
        self._put(replace(run, labels=labels))

    async def requeue(self, run_id: RunId, author: Author) -> Run | None:
        now = author.at
        run = await self.get(run_id)
        if run.state is RunState.PENDING and self.queued_at[run_id] == now:
            return run
        if not (run.is_closed and may_become(run.state, RunState.PENDING)):
            return None
        self._check_queue(run.user)
        self.queued_at[run_id] = now
        run = run.limited_to(self.limits.now.highest_priority(run.user))
        earlier = run.earlier_seconds + slot_seconds(run)
        fresh = replace(run, state=RunState.PENDING, epoch=run.epoch + 1, is_closed=False, is_closing=False)
        fresh = replace(fresh, phase="", started_at=None, admitted_at=None, finished_at=None)
        blank = replace(fresh, earlier_seconds=earlier, ran_seconds=0.0)
        window = run.order.completion_window_seconds
        expires_at = now + timedelta(seconds=window) if window else None
        return self._put(replace(blank, deadline=None, error=None, final_counts=None, expires_at=expires_at))

    async def pause(self, run_id: RunId, author: Author) -> Run | None:
        run = self.runs.get(run_id)
        if run is None or run.is_closing or not may_become(run.state, RunState.PAUSED):
            return None
        return self._leave_slot(run, RunState.PAUSED, author.at)

    async def resume(self, run_id: RunId, author: Author) -> Run | None:
        run = await self.get(run_id)
        if run.state is RunState.PENDING and self.queued_at[run_id] == author.at:
            return run
        if run.state is not RunState.PAUSED:
            return None
        self.queued_at[run_id] = author.at
        run = run.limited_to(self.limits.now.highest_priority(run.user))
        return self._put(replace(run, state=RunState.PENDING))

    def queue_order(self) -> list[Run]:
        """Priority, then fair share: runs of the user that run or wait before; then the last slot."""
        shares = Counter(run.user for run in self._in_state(RunState.RUNNING))
        keys: dict[RunId, tuple[Priority, int, datetime, RunId]] = {}
        for run in sorted(self._in_state(RunState.PENDING), key=self._own_order):
            shares[run.user] += 1
            queued_at = self.queued_at[run.run_id]
            age = max(queued_at, self.placed_at.get(run.user, queued_at))
            keys[run.run_id] = (run.order.priority, shares[run.user], age, run.run_id)
        return [self.runs[run_id] for run_id in sorted(keys, key=lambda run_id: keys[run_id])]

    async def count_running(self) -> int:
        return len(self._in_state(RunState.RUNNING))

    async def past_runs(self, benchmark: str, model: str) -> Sequence[CompletedRun]:
        return [
            CompletedRun(
                run.order.tasks,
                run.order.limit,
                run.order.rollouts,
                run.total,
                run.earlier_seconds + slot_seconds(run),
            )
            for run in reversed(self._in_state(RunState.COMPLETED))
            if (run.order.benchmark, run.order.model) == (benchmark, model)
            and run.finished_at
            and run.admitted_at
        ]

    async def model_names(self, name: str) -> Sequence[str]:
        known = {run.order.model for run in self.runs.values()}
        return sorted(model for model in known if name in (model, model.partition("/")[2]))

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        alike = [
            each
            for each in reversed(self._in_state(RunState.COMPLETED))
            if (each.order.benchmark, each.scoring_method) == (run.order.benchmark, run.scoring_method)
            and each.order.token_settings == run.order.token_settings
        ]
        of_model = [each for each in alike if each.order.model == run.order.model]
        return [
            PastUsage(
                CompletedRun(each.order.tasks, each.order.limit, each.order.rollouts, each.total, 0.0),
                each.final_counts.usage if each.final_counts else TokenUsage(),
            )
            for each in of_model or alike
        ]

    async def planned_tasks(self, run_id: RunId) -> tuple[PlannedTask, ...]:
        return self.tasks.get(run_id, ())

    async def delete(self, run_id: RunId, author: Author) -> None:
        run = await self.get(run_id)
        if not run.state.is_final:
            raise errors.RunStillActive(run_id=run_id, state=run.display_state)
        if not run.is_closed:
            raise errors.RunNotClosed(run_id=run_id, state=run.state)
        del self.runs[run_id]
        self.deletions[run_id] = author.at

    async def deleted(self, before: datetime) -> Sequence[RunId]:
        return [run_id for run_id, at in self.deletions.items() if at < before]

    async def postpone_deleted(self, run_id: RunId, now: datetime) -> None:
        self.deletions[run_id] = now

    async def delete_deletion(self, run_id: RunId) -> None:
        self.deletions.pop(run_id, None)

    # LedRunStore

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
        self._check(token)
        limits = await self.limits.limits()
        running = self._in_state(RunState.RUNNING)
        slots = [slot_of(run, now) for run in running if not run.is_closing]
        slot_requests = [slot_request_of(run) for run in self.queue_order()]
        moves = assign_slots(slots, slot_requests[: limits.max_running_runs], limits, now)
        waits = [
            (self.runs[run_id].order.priority, (now - self.queued_at[run_id]).total_seconds())
            for run_id in moves.admitted
        ]
        for run_id in moves.preempted:
            self._leave_slot(self.runs[run_id], RunState.PENDING, now)
        for run_id in moves.admitted:
            run = self.runs[run_id]
            deadline = run.expires_at or now + limits.run_time_limit - timedelta(seconds=run.ran_seconds)
            self.placed_at[run.user] = now
            placed = replace(run, state=RunState.RUNNING, admitted_at=now, deadline=deadline)
            self._put(replace(placed, started_at=run.started_at or now))
        return replace(moves, waits=waits) if waits else moves

    async def expired(self, now: datetime) -> Sequence[Run]:
        held = [*self._in_state(RunState.PENDING), *self._in_state(RunState.PAUSED)]
        return [run for run in held if run.expires_at is not None and run.expires_at <= now]

    async def to_drive(self) -> Sequence[RunId]:
        running, runs = RunState.RUNNING, self.runs.values()
        return [
            one.run_id for one in runs if one.state is running or (one.state.is_final and not one.is_closed)
        ]

    async def open_among(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        return [run_id for run_id in runs if run_id in self.runs and not self.runs[run_id].is_closed]

    async def set_phase(self, token: FencingToken, run: Run, phase: str, *, is_closing: bool = False) -> bool:
        return self._change(token, run, phase=phase, is_closing=is_closing)

    async def stop(self, token: FencingToken, run: Run, decision: Decision) -> bool:
        return self._change(token, run, phase=CLOSING, is_closing=True, decision=decision)

    async def delete_shards(self, token: FencingToken, run: Run) -> None:
        self._check(token)
        stored = self.shards.get(run.run_id, {})
        self.shards[run.run_id] = {
            number: shard for number, shard in stored.items() if shard.epoch != run.epoch
        }

    async def next_shard_number(self, run: Run) -> int:
        return max(self.shards.get(run.run_id, {}), default=-1) + 1

    async def add_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> bool:
        self._check(token)
        if not self._is_current(run):
            return False
        stored = self.shards.setdefault(run.run_id, {})
        for shard in shards:
            stored.setdefault(shard.number, StoredShard(replace(shard, samples=[*shard.samples]), run.epoch))
        return True

    async def mark_planned(self, token: FencingToken, run: Run, plan: PlanRecord) -> bool:
        changes = {"planned_epoch": run.epoch, "total": plan.total, "phase": ""}
        changes |= {"environment": plan.environment, "reused_answers": plan.reused_answers}
        if is_changed := self._change(token, run, **changes):
            self.tasks[run.run_id] = plan.tasks
        return is_changed

    async def finish(self, token: FencingToken, run: Run, finish: RunFinish) -> bool:
        self._check(token)
        stored = self.runs[run.run_id]
        if stored.epoch != run.epoch or not may_become(stored.state, finish.state):
            return False
        ended = replace(stored, state=finish.state, phase="", is_closing=False)
        ended = replace(ended, finished_at=finish.now, error=finish.error)
        self._put(_with_counts(ended, finish.counts, is_closed=finish.counts is not None))
        return True

    async def delete_admissions(self, token: FencingToken, before: datetime) -> None:
        self._check(token)
        queued = {run.user for run in self.runs.values() if not run.state.is_final}
        for user in [user for user, at in self.placed_at.items() if at < before and user not in queued]:
            del self.placed_at[user]

    async def mark_closed(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None:
        self._check(token)
        stored = self.runs[run.run_id]
        if stored.epoch == run.epoch and stored.state.is_final:
            self._put(_with_counts(stored, counts, is_closed=True))

    # ShardStore

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        return [shard for shard in self._shards(run, "planned") if shard.number > after][:limit]

    async def dispatched(self, run: Run) -> Sequence[Shard]:
        return self._shards(run, "dispatched")

    async def room(self, run: Run) -> float:
        if run.order.parallel is None:
            return math.inf
        group = run.order.parallel_group
        in_flight = sum(
            len(self._shards(other, "dispatched"))
            for other in self.runs.values()
            if other.order.parallel_group == group and self._is_current(other) and not other.is_closing
        )
        return max(run.order.parallel - in_flight, 0)

    async def move(self, token: FencingToken, run: Run, moves: ShardMoves) -> int:
        self._check(token)
        if not self._is_current(run):
            return 0
        places = await self.room(run)
        return memory_shards.move(self.shards.setdefault(run.run_id, {}), moves, run.epoch, places)

    async def return_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> None:
        self._check(token)
        memory_shards.put_back(self.shards.setdefault(run.run_id, {}), shards, run.epoch)

    def _check(self, token: FencingToken) -> None:
        if token != self.fencing_token:
            raise LeadershipLost

    def _check_priority(self, run: Run) -> None:
        allowed = self.limits.now.allowed_priorities(run.user)
        if run.order.priority not in allowed:
            priority, names = run.order.priority, ", ".join(allowed)
            raise errors.PriorityNotAllowed(user=run.user, priority=priority, allowed=names)

    def _check_queue(self, user: str) -> None:
        max_pending = self.limits.now.max_pending_runs_per_user
        held = [*self._in_state(RunState.PENDING), *self._in_state(RunState.PAUSED)]
        if sum(run.user == user for run in held) >= max_pending:
            raise errors.QueueFull(user=user, limit=max_pending, retry_after_seconds=30)

    def _is_current(self, run: Run) -> bool:
        stored = self.runs[run.run_id]
        return stored.state is RunState.RUNNING and stored.epoch == run.epoch

    def _change(self, token: FencingToken, run: Run, **changes: object) -> bool:
        self._check(token)
        if not self._is_current(run):
            return False
        self._put(replace(self.runs[run.run_id], **changes))  # type: ignore[arg-type]  # names are checked by replace
        return True

    def _put(self, run: Run) -> Run:
        self.runs[run.run_id] = run
        return run

    def _in_state(self, state: RunState) -> list[Run]:
        return [run for run in self.runs.values() if run.state is state]

    def _leave_slot(self, run: Run, state: RunState, now: datetime) -> Run:
        stayed = (now - run.admitted_at).total_seconds() if run.admitted_at else 0.0
        self.queued_at[run.run_id] = now
        left = replace(run, state=state, phase="", is_closing=False, admitted_at=None, deadline=None)
        return self._put(replace(left, ran_seconds=run.ran_seconds + stayed))

    def _own_order(self, run: Run) -> tuple[Priority, bool, datetime, RunId]:
        return run.order.priority, not run.ran_seconds, self.queued_at[run.run_id], run.run_id

    def _shards(self, run: Run, state: str) -> list[Shard]:
        return memory_shards.in_state(self.shards.get(run.run_id, {}), state, run.epoch)


def _with_counts(run: Run, counts: RunCounts | None, *, is_closed: bool) -> Run:
    environment = {**run.environment, **(counts.environment if counts else {})}
    return replace(run, final_counts=counts, is_closed=is_closed, environment=environment)
