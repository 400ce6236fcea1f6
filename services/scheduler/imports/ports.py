"""Ports of imports: the record of a run in results, and the store of runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.scoring import TaskGroup, TaskScoring
from proctor.values.usage import TokenUsage
from services.scheduler.imports.logged_run import LoggedSample, LoggedTask
from services.scheduler.planning.ports import ClosingProgress, CommittedSet
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.suites.rendering.sample import RenderedSample


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task of a log whose samples are stored. `digest`: of its samples."""

    planned: PlannedTask
    logged: LoggedTask
    digest: bytes


@dataclass(frozen=True, slots=True)
class ImportedPlan:
    """`tool`: in the conditions of its tasks."""

    tool: str
    tasks: Sequence[StoredTask]
    groups: Sequence[TaskGroup]
    missing_tasks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EarlierImport:
    """A run that was imported, and the SHA-256 of its file in hexadecimal digits."""

    run_id: RunId
    digest: str


class ImportedRecord(Protocol):
    """The record of a run in results. Every call is repeatable."""

    async def put_samples(
        self, staging_id: str, samples: Sequence[RenderedSample], scoring: TaskScoring | None
    ) -> None: ...

    async def commit_sample_set(
        self, staging_id: str, sample_count: int, project_id: int, content_hash: bytes
    ) -> CommittedSet:
        """`content_hash`: of `ContentHash`, over all samples of the set."""
        ...

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool, unscored: TokenUsage
    ) -> RunCounts | ClosingProgress | None: ...

    async def delete_run(self, run_id: RunId) -> None: ...


class LoggedRecord(Protocol):
    """What only imports ask of it."""

    async def open_logged(self, run: Run, plan: ImportedPlan) -> None: ...

    async def record_logged(self, run: Run, first_sample: int, samples: Sequence[LoggedSample]) -> None:
        """The answers to some samples, of which the first has that number in the run."""
        ...


class LoggedParts(Protocol):
    """Samples of a log between the process that reads it and results, below `prefix`."""

    @property
    def prefix(self) -> str: ...

    def put(self, key: str, chunks: Sequence[bytes]) -> None: ...

    def of_task(self, task_index: int) -> Iterator[Sequence[LoggedSample]]:
        """The samples of a task in order. Raises `CheckStopped` for what is none."""
        ...

    def close(self) -> None:
        """Deletes them."""
        ...


class ImportedRuns(Protocol):
    async def announce(self, run_id: RunId, until: datetime) -> None:
        """From `until` on results is asked to delete what it has of a run that was not added."""
        ...

    async def give_up(self, run_id: RunId, now: datetime) -> None:
        """Results is asked now. Has no effect on a run that was added."""
        ...

    async def earlier(self, request_id: str, user: str) -> EarlierImport | None:
        """That of the same request of this user, if there was one."""
        ...

    async def add(self, run: Run, tasks: Sequence[PlannedTask], request_id: str, file_digest: str) -> bool:
        """Adds a closed run; repeatable. False if it was given up before. Raises `ImportedElsewhere`."""
        ...
