"""A run becomes samples and shards: rows are read serially, sent to results, and cut on the way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

from proctor.values.names.project import declared_or_none
from proctor.values.scoring import TaskScoring
from services.common.clock import Clock
from services.common.errors import RemoteError
from services.common.threads.cancellable_threads import CancellableThreads
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.find_tasks import FindTasks
from services.scheduler.planning.known_sets import ContentHash, KnownSet, KnownSets
from services.scheduler.planning.ports import (
    CommittedSet,
    OpenableRecord,
    PlanRecord,
    PlanToOpen,
    ShardStore,
    TaskToOpen,
)
from services.scheduler.planning.random_order import shards_in_order
from services.scheduler.planning.rendered_samples import RenderedSamples
from services.scheduler.planning.sample_set_id import new_sample_set_id
from services.scheduler.planning.shard import (
    MissingSample,
    ShardCutter,
    may_grow,
    most_samples,
    number_shards,
    shards_of_missing,
)
from services.scheduler.planning.task_to_plan import OpenedTask, TaskToPlan
from services.scheduler.runs.lifecycle.ports import LedRunStore
from services.scheduler.runs.lifecycle.run import PlannedTask, Run, RunError
from services.scheduler.suites.errors import SuiteError
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import engine_facts

# Results unpacks one while Postgres stores the other.
CHUNKS_ON_THEIR_WAY = 2
# One call to results: large enough that round trips do not count,
# far below the 16 MiB that a gRPC message may have, and below what results counts by its items.
CHUNK_SAMPLES = 1000
CHUNK_BYTES = 400_000
# Samples that are not sent come in chunks so many times as large: each is handed from a thread to the loop.
_UNSENT_CHUNKS = 5
# Rows of a slow hub go out in smaller chunks, so that a cancel is noticed in time.
CHUNK_SECONDS = 1.0
# So often, planning sets the phase again, which finds out whether the run was stopped.
PHASE_SECONDS = 1.0
# One transaction, which a cancel of the run waits for: it locks the run's row.
_SHARDS_PER_WRITE = 2000
_MISSING_PER_WRITE = 10_000
# Planning waits for rows of a hub more than it computes, so this is not a limit of how many runs go on.
_PLANNED_AT_A_TIME = 16


class RunStopped(Exception):
    """The run was stopped while it was being planned."""


class PlanningFailed(Exception):
    """The run cannot be planned, and trying again would not help."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error


@asynccontextmanager
async def storing_samples(
    record: OpenableRecord, staging_id: str, scoring: TaskScoring | None
) -> AsyncIterator[Callable[[Sequence[RenderedSample]], Awaitable[None]]]:
    """Gives what puts a chunk and waits only where too many are on their way; at the end all are stored.

    With a `scoring` results takes only samples that can be scored so. The first failure, here or of what is
    done meanwhile, ends both and is raised as it is.
    """
    room = asyncio.Semaphore(CHUNKS_ON_THEIR_WAY)

    async def store(chunk: Sequence[RenderedSample]) -> None:
        try:
            await record.put_samples(staging_id, chunk, scoring)
        # Also where it fails: the planner may wait for room, and the group's cancel has to find it awake.
        finally:
            room.release()

    try:
        async with asyncio.TaskGroup() as on_their_way:

            async def put(chunk: Sequence[RenderedSample]) -> None:
                await room.acquire()
                on_their_way.create_task(store(chunk), name="put samples")

            yield put
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


@dataclass(slots=True)
class _Plan:
    """Shards and counts so far, while the tasks of a run are read."""

    tasks: list[TaskToOpen] = field(default_factory=list)
    ranges: list[Sequence[range]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    sample_count: int = 0


class _Rendering:
    """What one task is rendered to: how many samples, where they are cut, and their hash."""

    def __init__(self, staging_id: str, cutter: ShardCutter) -> None:
        self.staging_id = staging_id
        self.hash = ContentHash()
        self.ranges: Sequence[range] = ()
        self._cutter = cutter
        self.count = 0

    def next_chunk(self, chunks: Iterator[list[RenderedSample]]) -> Sequence[RenderedSample] | None:
        """The next samples, cut and hashed; None at the end. Called in a thread, as this keeps the loop."""
        if chunk := next(chunks, None):
            self._add(chunk)
        else:
            self.ranges = self._cutter.finish()
        return chunk

    def _add(self, chunk: Sequence[RenderedSample]) -> None:
        self._cutter.add([sample.size_bytes for sample in chunk])
        self.hash.add(chunk)
        self.count += len(chunk)


@dataclass(frozen=True, slots=True)
class PlanRun:
    """`concurrencies`: of the pools by name, as they are set up: a run may be planned before any worker is
    there."""

    runs: LedRunStore
    shards: ShardStore
    record: OpenableRecord
    tasks: FindTasks
    proctor_version: str
    clock: Clock
    registry: WorkerRegistry
    concurrencies: Mapping[str, int]
    rendered: RenderedSamples
    known_sets: KnownSets = field(default_factory=KnownSets)
    threads: CancellableThreads = field(default_factory=lambda: CancellableThreads(_PLANNED_AT_A_TIME))

    async def plan(self, token: FencingToken, run: Run) -> None:
        """Raises `RunStopped` or `PlanningFailed`; a crash in between starts it anew."""
        plan = _Plan(environment={"proctor": self.proctor_version})
        try:
            ordered = await self.tasks.find(run)
            for task in ordered.tasks:
                await self._set_phase(token, run, f"planning {task.name}")
                await self._plan_task(token, run, task, plan)
        except SuiteError as error:
            raise PlanningFailed(RunError(error.reason, error.message)) from error
        # Opened after the samples and before the shards: what is dispatched always has a record.
        await self._open(run, PlanToOpen(plan.tasks, ordered.groups, ordered.missing))
        await self._store(token, run, plan, await self._reuse_answers(token, run))

    async def plan_retry(self, token: FencingToken, run: Run, tasks: tuple[PlannedTask, ...]) -> None:
        """A later epoch, of what results misses. Raises `RunStopped`; a crash in between starts it anew."""
        await self.record.open_run(run, PlanToOpen())
        if not await self._add_missing(token, run, tasks):
            raise RunStopped
        await self._mark(token, run, PlanRecord(tasks, run.total, dict(run.environment), run.reused_answers))

    async def _set_phase(self, token: FencingToken, run: Run, phase: str) -> None:
        # The driver looks at the deadline between steps, and planning is one step of many minutes.
        is_late = run.deadline is not None and self.clock.now() >= run.deadline
        if is_late or not await self.runs.set_phase(token, run, phase):
            raise RunStopped

    async def _plan_task(self, token: FencingToken, run: Run, task: TaskToPlan, plan: _Plan) -> None:
        opened = await self.threads.run(task.open)
        project_id = declared_or_none(run.order.project_id)
        # Whatever else may decide what is rendered, its hash shows it.
        likely = (
            project_id,
            opened.planned,
            opened.facts.get("definition"),
            run.order.limit,
            task.checked_scoring,
        )
        rendering = self._rendering(run, opened, plan)
        committed = None
        if known := self.known_sets.likely(likely):
            await self._render(token, run, opened, rendering)
            committed = await self._commit_again(known, rendering, project_id)
        if committed is None:
            self.known_sets.forget(likely)
            opened = await self.threads.run(task.open) if known else opened
            rendering = self._rendering(run, opened, plan)
            async with storing_samples(self.record, rendering.staging_id, task.checked_scoring) as put:
                await self._render(token, run, opened, rendering, put)
            committed = await self.record.commit_sample_set(
                rendering.staging_id, rendering.count, run.order.project_id, rendering.hash.digest()
            )
        self.known_sets.remember(likely, KnownSet(committed, rendering.hash.digest()))
        self.rendered.rename(rendering.staging_id, committed.sample_set_id)
        planned = replace(
            opened.planned,
            sample_set_id=committed.sample_set_id,
            first_sample=plan.sample_count,
            sample_count=rendering.count,
        )
        facts = {**opened.facts, "samples": committed.digest.hex()}
        plan.tasks.append(TaskToOpen(planned, task.scoring, facts, task.code))
        plan.ranges.append(rendering.ranges)
        plan.environment |= _environment_of(planned, facts)
        plan.sample_count += rendering.count

    def _rendering(self, run: Run, opened: OpenedTask, plan: _Plan) -> _Rendering:
        task = opened.planned
        grows = may_grow(task, run.order, self.concurrencies.get(run.pool, 0))
        return _Rendering(new_sample_set_id(), ShardCutter(plan.sample_count, most_samples(task), grows))

    async def _render(
        self,
        token: FencingToken,
        run: Run,
        opened: OpenedTask,
        rendering: _Rendering,
        put: Callable[[Sequence[RenderedSample]], Awaitable[None]] | None = None,
    ) -> None:
        phase_set_at = self.clock.monotonic()
        chunks = _chunks(opened.samples, self.clock, 1 if put else _UNSENT_CHUNKS)
        try:
            while chunk := await self.threads.run(rendering.next_chunk, chunks):
                if put:
                    await put(chunk)
                self.rendered.add(rendering.staging_id, chunk)
                if self.clock.monotonic() - phase_set_at >= PHASE_SECONDS:
                    await self._set_phase(token, run, f"planning {opened.planned.task}")
                    phase_set_at = self.clock.monotonic()
        except BaseException:
            self.rendered.drop(rendering.staging_id)
            raise

    async def _commit_again(
        self, known: KnownSet, rendering: _Rendering, project_id: int
    ) -> CommittedSet | None:
        """The known set, which is then kept for a while; None where it is another, or is gone."""
        try:
            if rendering.hash.digest() == known.content_hash:
                sample_set_id = known.committed.sample_set_id
                return await self.record.commit_sample_set(
                    sample_set_id, rendering.count, project_id, known.content_hash
                )
        except RemoteError as error:
            if error.reason != "SAMPLE_SET_NOT_FOUND":
                raise
        self.rendered.drop(rendering.staging_id)
        return None

    async def _open(self, run: Run, plan: PlanToOpen) -> None:
        recorded = await self.record.open_run(run, plan)
        if list(recorded) != [task.planned.sample_set_id for task in plan.tasks]:
            message = "The suite or its rows were changed while the run was being planned. Submit it again."
            raise PlanningFailed(RunError("INVALID_SUITE_FILE", message))

    async def _reuse_answers(self, token: FencingToken, run: Run) -> int:
        """Reuses no answer without a live worker.

        The engine is unknown, so no earlier answer can be recognised as equal.
        """
        if not run.order.reuse_answers:
            return 0
        await self._set_phase(token, run, "reusing answers")
        workers = self.registry.workers()
        return await self.record.reuse_answers(
            run, engine_facts(run.order.model, run.order.base_url, run.pool, workers)
        )

    async def _store(self, token: FencingToken, run: Run, plan: _Plan, reused_answers: int) -> None:
        tasks = tuple(task.planned for task in plan.tasks)
        is_going_on = (
            await self._add_missing(token, run, tasks)
            if reused_answers or run.order.until_decided
            else await self._add_shards(token, run, plan)
        )
        if not is_going_on:
            raise RunStopped
        total = run.order.outcomes_of(range(plan.sample_count))
        environment = {**run.environment, **plan.environment}
        await self._mark(token, run, PlanRecord(tasks, total, environment, reused_answers))

    async def _mark(self, token: FencingToken, run: Run, plan: PlanRecord) -> None:
        if not await self.shards.mark_planned(token, run, plan):
            raise RunStopped

    async def _add_shards(self, token: FencingToken, run: Run, plan: _Plan) -> bool:
        """Replaces shards of an interrupted planning. Returns False if the run was stopped."""
        # Not in one transaction with the rest: no step reads these shards before `mark_planned`.
        await self.shards.delete_shards(token, run)
        shards = number_shards(plan.ranges, run.order.rollouts, run.order.row_rollouts)
        while chunk := list(islice(shards, _SHARDS_PER_WRITE)):
            if not await self.shards.add_shards(token, run, chunk):
                return False
        return True

    async def _add_missing(self, token: FencingToken, run: Run, tasks: Sequence[PlannedTask]) -> bool:
        """Add shards of the samples that have no outcome; returns what `_add_shards` does."""
        await self.shards.delete_shards(token, run)
        if run.order.until_decided:
            return await self._add_in_order(token, run, tasks, run.order.until_decided.seed)
        held: list[MissingSample] = []
        async for item in self.record.missing(run.run_id, run.epoch):
            held.append(item)
            if len(held) == _MISSING_PER_WRITE:
                if not await self._add_shards_of(token, run, tasks, held):
                    return False
                held = []
        return await self._add_shards_of(token, run, tasks, held)

    async def _add_in_order(
        self, token: FencingToken, run: Run, tasks: Sequence[PlannedTask], seed: int
    ) -> bool:
        first = await self.shards.next_shard_number(run)
        missing = [item async for item in self.record.missing(run.run_id, run.epoch)]
        shards = await self.threads.run(lambda: iter([*shards_in_order(missing, tasks, seed, first)]))
        while chunk := list(islice(shards, _SHARDS_PER_WRITE)):
            if not await self.shards.add_shards(token, run, chunk):
                return False
        return True

    async def _add_shards_of(
        self, token: FencingToken, run: Run, tasks: Sequence[PlannedTask], missing: Sequence[MissingSample]
    ) -> bool:
        # Behind those of earlier epochs: results counts outcomes by the number of the shard.
        first = await self.shards.next_shard_number(run)
        shards = list(shards_of_missing(missing, tasks, first))
        return not shards or await self.shards.add_shards(token, run, shards)


def _chunks(samples: Iterator[RenderedSample], clock: Clock, messages: int) -> Iterator[list[RenderedSample]]:
    """Lists of samples that fit so many messages; a sample that is heavier than a chunk travels alone.

    Between two the planner may look whether the run was stopped, so slow samples travel in smaller ones.
    """
    chunk: list[RenderedSample] = []
    size, begun_at = 0, clock.monotonic()
    most, most_bytes = CHUNK_SAMPLES * messages, CHUNK_BYTES * messages
    for sample in samples:
        is_full = len(chunk) == most or size + sample.stored_bytes > most_bytes
        if chunk and (is_full or clock.monotonic() - begun_at > CHUNK_SECONDS):
            yield chunk
            chunk, size, begun_at = [], 0, clock.monotonic()
        chunk.append(sample)
        size += sample.stored_bytes
    if chunk:
        yield chunk


def _environment_of(planned: PlannedTask, facts: Mapping[str, str]) -> dict[str, str]:
    known = {
        "version": planned.version,
        "row_source": planned.row_source,
        "row_source_revision": planned.row_source_revision,
        **facts,
    }
    return {f"task.{planned.task}.{name}": fact for name, fact in known.items()}
