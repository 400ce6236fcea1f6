"""What the use cases need of the world: stores, results, the wire, workers, suites."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NewType, Protocol

from services.scheduler.pools.pool import Worker
from services.scheduler.runs.run import Run, RunError, RunId, RunState
from services.scheduler.runs.run_counts import ProgressNews, RunCounts
from services.scheduler.runs.run_estimate import PastRun
from services.scheduler.runs.run_list import RunCursor, RunFilter, RunPage
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.shards.shard import FilledShard, Shard
from services.scheduler.shards.shard_plan import MissingSample
from services.scheduler.suites.sample import Sample
from services.scheduler.suites.task_definition import SuiteDefinition, TaskScoring

# Number of a term of leadership. Each write of a leader checks it, in the same transaction.
Fence = NewType("Fence", int)


class RunStore(Protocol):
    """Runs as anyone may see, order and stop them."""

    async def add(self, run: Run, request_id: str, max_pending: int) -> Run:
        """Stores the run, or gives that of the first call with this id. Raises `QueueFull`."""
        ...

    async def get(self, run_id: RunId) -> Run:
        """Raises `RunNotFound`."""
        ...

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage: ...

    async def cancel(self, run_id: RunId, now: datetime) -> Run | None:
        """None where the run's state does not allow it."""
        ...

    async def requeue(self, run_id: RunId, now: datetime, max_pending: int) -> Run | None:
        """The run pending again in a new epoch; None where its state does not allow it."""
        ...

    async def queue_position(self, run_id: RunId) -> int: ...

    async def count_running(self) -> int: ...

    async def past_runs(self, suite: str, model: str) -> Sequence[PastRun]:
        """The last completed ones, latest first."""
        ...

    async def planned_tasks(self, run_id: RunId) -> tuple[PlannedTask, ...]: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """How many runs may run, and how long each may take."""

    max_running: int
    time_limit: timedelta
    now: datetime


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The tasks of a planned run, and what is known of how to repeat it."""

    tasks: tuple[PlannedTask, ...]
    total: int
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ends; `counts` are known once results has closed it."""

    state: RunState
    now: datetime
    error: RunError | None = None
    counts: RunCounts | None = None


@dataclass(frozen=True, slots=True)
class ShardMoves:
    """Shards that are done, and shards that go out with these attempts."""

    done: Sequence[int] = ()
    dispatched: Sequence[Shard] = ()

    def __bool__(self) -> bool:
        return bool(self.done or self.dispatched)


class LedRunStore(Protocol):
    """Runs as the leader moves them on. Every write raises `LeadershipLost` once another leads.

    A write for a run that is no longer running in this epoch changes nothing and gives False.
    """

    async def admit(self, fence: Fence, admission: Admission) -> Sequence[RunId]: ...

    async def unfinished(self) -> Sequence[RunId]:
        """Runs that are running, or in a final state and not closed."""
        ...

    async def note_step(self, fence: Fence, run: Run, step: str) -> bool: ...

    async def drop_shards(self, fence: Fence, run: Run) -> None:
        """Removes the shards of this epoch, which a planning that broke off has left."""
        ...

    async def next_shard_number(self, run: Run) -> int: ...

    async def add_shards(self, fence: Fence, run: Run, shards: Sequence[Shard]) -> bool: ...

    async def mark_planned(self, fence: Fence, run: Run, plan: PlanRecord) -> bool: ...

    async def finish(self, fence: Fence, run: Run, ending: RunEnding) -> bool:
        """Ends the run; with counts it is closed as well."""
        ...

    async def mark_closed(self, fence: Fence, run: Run, counts: RunCounts | None) -> None: ...


class ShardStore(Protocol):
    """Shards of planned runs, of their current epoch."""

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        """Shards that wait to be dispatched, with numbers above `after`, in order."""
        ...

    async def dispatched(self, run: Run) -> Sequence[Shard]: ...

    async def move(self, fence: Fence, run: Run, moves: ShardMoves) -> bool:
        """False, and nothing done, when the run is no longer running in this epoch."""
        ...

    async def give_back(self, fence: Fence, run: Run, shards: Sequence[Shard]) -> None:
        """Dispatched shards wait again, with the samples given here."""
        ...


@dataclass(frozen=True, slots=True)
class CommittedSet:
    sample_set_id: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class TaskToOpen:
    planned: PlannedTask
    scoring: TaskScoring


class RunRecord(Protocol):
    """What results keeps of a run. Every call can be repeated."""

    async def put_samples(self, staging_id: str, samples: Sequence[Sample]) -> None: ...

    async def commit_sample_set(self, staging_id: str, sample_count: int) -> CommittedSet: ...

    async def open_run(self, run: Run, tasks: Sequence[TaskToOpen]) -> Sequence[str]:
        """Opens the epoch; gives the sample sets as results has recorded them, in order."""
        ...

    async def counts(self, run_id: RunId) -> ProgressNews: ...

    def missing(self, run_id: RunId, epoch: int) -> AsyncIterator[MissingSample]:
        """In the order of rollout and sample."""
        ...

    async def close_run(self, run: Run, *, allow_partial: bool) -> RunCounts | None:
        """The counts of the stored summary; None where results knows no such run."""
        ...

    async def failure_example(self, run_id: RunId) -> str:
        """The message of one failed sample; empty where there is none."""
        ...


class ShardWire(Protocol):
    """The way of shards to workers and of outcomes to results."""

    async def fill(
        self, run: Run, tasks: Sequence[PlannedTask], shards: Sequence[Shard]
    ) -> Sequence[FilledShard]:
        """Reads the samples of the shards back from results: of the first ones only where they are heavy."""
        ...

    async def publish(self, run: Run, shards: Sequence[FilledShard]) -> None:
        """Returns when the stream holds them all."""
        ...

    async def pending_work(self, run_id: RunId) -> int:
        """Messages that wait for a worker or are held by one."""
        ...

    async def pending_outcomes(self, run_id: RunId) -> int: ...

    async def purge_work(self, run_id: RunId) -> None: ...

    async def incarnation(self) -> str:
        """Changes when a stream was made anew, and messages were lost with the old one."""
        ...


class RunControls(Protocol):
    """Tells workers, watchers and the leader where a run stands. A lost word is made good later."""

    async def tell(self, run: Run) -> None: ...

    async def remind(self, run: Run) -> None:
        """Says the same again, for a bucket that was wiped."""
        ...

    async def told(self) -> Sequence[RunId]:
        """Runs of which something is said."""
        ...

    async def withdraw(self, run_id: RunId) -> None: ...


class Crew(Protocol):
    """Live workers, as far as heard."""

    def workers(self) -> Sequence[Worker]: ...


@dataclass(frozen=True, slots=True)
class BrokenSuite:
    name: str
    problem: str


class SuiteCatalogue(Protocol):
    """Registered suites, as their files are now."""

    def suite(self, name: str) -> SuiteDefinition:
        """Raises a `SuiteError`."""
        ...

    def suites(self) -> Sequence[SuiteDefinition | BrokenSuite]:
        """By name."""
        ...
