"""Ports of planning: the store of shards, and the record that results keeps of a run."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from proctor.values.run import RunId
from proctor.values.scoring import TaskGroup, TaskScoring
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.shard import MissingSample, Shard
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.suites.rendering.sample import RenderedSample


@dataclass(frozen=True, slots=True)
class ClosingProgress:
    """The figures of a run are being computed; `share` of its answers are read."""

    share: float


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The tasks of a planned run, the number of its outcomes, and facts for repeating it."""

    tasks: tuple[PlannedTask, ...]
    total: int
    environment: dict[str, str] = field(default_factory=dict)
    reused_answers: int = 0


@dataclass(frozen=True, slots=True)
class ShardMoves:
    """Shards that are done, and shards that are dispatched with these attempts."""

    done: Sequence[int] = ()
    dispatched: Sequence[Shard] = ()


class ShardStore(Protocol):
    """Tasks and shards of planned runs. Writes raise `LeadershipLost` once another scheduler leads.

    A write for a run that is no longer running in this epoch changes nothing and returns False or 0.
    """

    async def delete_shards(self, token: FencingToken, run: Run) -> None:
        """Deletes the shards of this epoch: an interrupted planning has left them, or the run is closed."""
        ...

    async def next_shard_number(self, run: Run) -> int: ...

    async def add_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> bool: ...

    async def mark_planned(self, token: FencingToken, run: Run, plan: PlanRecord) -> bool: ...

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        """Shards that wait to be dispatched, with numbers above `after`, in order."""
        ...

    async def dispatched(self, run: Run) -> Sequence[Shard]: ...

    async def move(self, token: FencingToken, run: Run, moves: ShardMoves) -> int:
        """How many of the first shards are dispatched: as many as the run's group has room for.

        A shard is a rollout where a run has a group.
        """
        ...

    async def room(self, run: Run) -> float:
        """The most shards that the run's group has room for at this moment; infinite without a bound."""
        ...

    async def return_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> None:
        """Makes dispatched shards wait again, with the given samples."""
        ...


@dataclass(frozen=True, slots=True)
class CommittedSet:
    sample_set_id: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class TaskToOpen:
    """`facts` are what one needs to know to ask the same again. `code`: files of the code that scores."""

    planned: PlannedTask
    scoring: TaskScoring
    facts: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanToOpen:
    """The plan that results stores; empty for a retry, whose plan is stored already."""

    tasks: Sequence[TaskToOpen] = ()
    groups: Sequence[TaskGroup] = ()
    missing_tasks: Sequence[str] = ()


class MissingSamples(Protocol):
    def missing(self, run_id: RunId, epoch: int) -> AsyncIterator[MissingSample]:
        """Samples without an outcome, ordered by rollout and sample."""
        ...


class OpenableRecord(MissingSamples, Protocol):
    """The record of a run in results. Every call is repeatable."""

    async def put_samples(
        self, staging_id: str, samples: Sequence[RenderedSample], scoring: TaskScoring | None
    ) -> None:
        """Stages samples. With a `scoring`, samples that it cannot score are refused."""
        ...

    async def commit_sample_set(
        self, staging_id: str, sample_count: int, project_id: int, content_hash: bytes
    ) -> CommittedSet:
        """`content_hash`: of `ContentHash`, over all samples of the set."""
        ...

    async def open_run(self, run: Run, plan: PlanToOpen) -> Sequence[str]:
        """Opens the epoch and returns the recorded sample sets in order."""
        ...

    async def reuse_answers(self, run: Run, environment: Mapping[str, str]) -> int:
        """Copies answers of earlier runs of an equal engine; returns how many the run has now."""
        ...
