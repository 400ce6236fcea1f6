"""What the use cases need of the world: stores, results, the wire, workers; folders have more of it."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType, Protocol

from services.scheduler.pools.listed_model import PoolListing
from services.scheduler.pools.pool import Worker
from services.scheduler.prices.cost_estimate import PastUsage
from services.scheduler.runs.model_price import ModelPrice
from services.scheduler.runs.places import PlaceMoves
from services.scheduler.runs.queue_limits import LimitChanges, QueueLimits
from services.scheduler.runs.run import Run, RunError, RunId, RunState
from services.scheduler.runs.run_counts import ProgressNews, RunCounts
from services.scheduler.runs.run_estimate import History
from services.scheduler.runs.run_list import RunCursor, RunFilter, RunPage
from services.scheduler.runs.run_queue import QueuedRuns
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.shards.shard import FilledShard, Shard
from services.scheduler.shards.shard_plan import MissingSample
from services.scheduler.suites.rendering.sample import Sample
from services.scheduler.suites.suite import TaskGroup, TaskScoring

# Number of a term of leadership. Each write of a leader checks it, in the same transaction.
Fence = NewType("Fence", int)


class LimitStore(Protocol):
    """Limits that hold for all replicas, and the requests of users."""

    async def limits(self) -> QueueLimits:
        """For showing. A store that enforces a limit reads it in the same transaction."""
        ...

    async def change(self, changes: LimitChanges) -> QueueLimits:
        """The limits as they are then; once it returns, nothing is decided by the old ones any more."""
        ...

    async def count_request(self, user: str, now: datetime) -> int:
        """Requests that the user has left in this minute. Raises `TooManyRequests`."""
        ...

    async def forget_requests(self, before: datetime) -> None:
        """Drops the counts of minutes that are over."""
        ...


class RunStore(Protocol):
    """Runs as anyone may see, order and stop them."""

    async def add(self, run: Run, request_id: str) -> Run:
        """Stores the run, or gives that of the user's first call with this id.

        Raises `RequestIdTaken` where that ordered something else; `QueueFull` or `PriorityNotAllowed`, by the
        limits of this moment.
        """
        ...

    async def get(self, run_id: RunId) -> Run:
        """Raises `RunNotFound`."""
        ...

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage: ...

    async def cancel(self, run_id: RunId, now: datetime) -> Run | None:
        """None where the run's state does not allow it."""
        ...

    async def requeue(self, run_id: RunId, now: datetime) -> Run | None:
        """The run pending again in a new epoch, no more urgent than its user may have it now.

        None where its state does not allow it. Raises `QueueFull`, and `RunOfBatch` for that of a batch.
        """
        ...

    async def pause(self, run_id: RunId, now: datetime) -> Run | None:
        """The run without a place in this epoch; None where its state does not allow it."""
        ...

    async def resume(self, run_id: RunId, now: datetime) -> Run | None:
        """The run pending again in this epoch, no more urgent than its user may have it now.

        None where it was not paused.
        """
        ...

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        """Tokens of the last completed ones of its suite that were asked alike: of its model, else of any."""
        ...

    async def planned_tasks(self, run_id: RunId) -> tuple[PlannedTask, ...]: ...


class QueueStore(Protocol):
    """The queue, to be looked at."""

    async def queue(self, most: int) -> QueuedRuns:
        """As of one moment, with at most so many waiting and as many paused runs."""
        ...

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        """1 is next; without those that do not wait."""
        ...

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> History:
        """The last completed ones of each suite and model."""
        ...


class Prices(Protocol):
    """What models cost now."""

    def price_of(self, model: str) -> ModelPrice | None: ...


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The tasks of a planned run, and what is known of how to repeat it."""

    tasks: tuple[PlannedTask, ...]
    total: int
    environment: dict[str, str] = field(default_factory=dict)
    reused_answers: int = 0


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

    async def admit(self, fence: Fence, now: datetime) -> PlaceMoves:
        """Gives the places of this moment's limits to those whose turn it is."""
        ...

    async def expired(self, now: datetime) -> Sequence[Run]:
        """Runs that wait or are paused, and whose completion window is over."""
        ...

    async def unfinished(self) -> Sequence[RunId]:
        """Runs that are running, or in a final state and not closed."""
        ...

    async def live_among(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        """Those that are not over: also what waits or is paused."""
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

    async def forget_turns(self, fence: Fence, before: datetime) -> None:
        """Drops when users got a place last, where that is long ago and they have nothing in the queue."""
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


@dataclass(frozen=True, slots=True)
class PlanToOpen:
    """What results is told of a planned run; a retry has nothing to add to what was told before."""

    tasks: Sequence[TaskToOpen] = ()
    groups: Sequence[TaskGroup] = ()
    missing_tasks: Sequence[str] = ()


class RunRecord(Protocol):
    """What results keeps of a run. Every call can be repeated."""

    async def put_samples(
        self, staging_id: str, samples: Sequence[Sample], scoring: TaskScoring | None
    ) -> None:
        """`scoring`: samples that cannot be scored so are refused."""
        ...

    async def commit_sample_set(self, staging_id: str, sample_count: int) -> CommittedSet: ...

    async def open_run(self, run: Run, plan: PlanToOpen) -> Sequence[str]:
        """Opens the epoch; gives the sample sets as results has recorded them, in order."""
        ...

    async def reuse_answers(self, run: Run, environment: Mapping[str, str]) -> int:
        """Takes stored answers of earlier runs where the engine said the same; gives how many the run has."""
        ...

    async def counts(self, run_id: RunId) -> ProgressNews: ...

    def missing(self, run_id: RunId, epoch: int) -> AsyncIterator[MissingSample]:
        """In the order of rollout and sample."""
        ...

    async def close_run(self, run: Run, state: RunState, *, allow_partial: bool) -> RunCounts | None:
        """Freezes it with the state that it ends in.

        Gives the counts of the stored summary; None where results knows no such run.
        """
        ...

    async def delete_run(self, run_id: RunId) -> None:
        """Removes all that is known of it."""
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
        """Returns when the stream holds them all. Raises `MessageTooLarge`, as `fill` does."""
        ...

    async def pending_work(self, run_id: RunId) -> int:
        """Messages that wait for a worker or are held by one."""
        ...

    async def pending_outcomes(self, run_id: RunId) -> int: ...

    async def purge_work(self, run_id: RunId) -> None: ...

    async def stream_generation(self) -> str:
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


class ModelLists(Protocol):
    """What pools tell of their models now."""

    async def of_pool(self, pool: str) -> PoolListing:
        """Within a time of its own; what keeps it from being told is told instead."""
        ...
