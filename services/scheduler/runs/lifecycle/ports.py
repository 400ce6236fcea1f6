"""Stores of runs, and the notices about their states."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.ports import PlanRecord
from services.scheduler.planning.shard import Shard
from services.scheduler.progress.run_counts import RunCounts
from services.scheduler.runs.admission.run_slots import SlotChanges
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.run import Run, RunEnding, RunId
from services.scheduler.runs.reads.estimate_run import PastUsage
from services.scheduler.runs.reads.run_list import RunCursor, RunFilter, RunPage


class DeletedRunStore(Protocol):
    """Runs as they go for good."""

    async def delete(self, run_id: RunId, now: datetime) -> None:
        """Raises `RunNotFound`, or `RunNotOver`."""
        ...

    async def deleted(self, before: datetime) -> Sequence[RunId]:
        """Runs deleted before a moment that results may still have, the earliest first."""
        ...

    async def forget_deleted(self, run_id: RunId) -> None:
        """Results has it no more."""
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


class LedRunStore(Protocol):
    """Runs as the leader moves them on. Every write raises `LeadershipLost` once another leads.

    A write for a run that is no longer running in this epoch changes nothing and gives False.
    """

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
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

    async def set_step(self, token: FencingToken, run: Run, step: str) -> bool: ...

    async def delete_shards(self, token: FencingToken, run: Run) -> None:
        """Removes the shards of this epoch, which a planning that broke off has left."""
        ...

    async def next_shard_number(self, run: Run) -> int: ...

    async def add_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> bool: ...

    async def mark_planned(self, token: FencingToken, run: Run, plan: PlanRecord) -> bool: ...

    async def finish(self, token: FencingToken, run: Run, ending: RunEnding) -> bool:
        """Ends the run; with counts it is closed as well."""
        ...

    async def forget_admissions(self, token: FencingToken, before: datetime) -> None:
        """Drops when users got a place last, where that is long ago and they have nothing in the queue."""
        ...

    async def mark_closed(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None: ...


class RunControls(Protocol):
    """Tells workers, watchers and the leader where a run stands. A lost word is made good later."""

    async def announce(self, run: Run) -> None: ...

    async def refresh(self, run: Run) -> None:
        """Says the same again, for a bucket that was wiped."""
        ...

    async def announced(self) -> Sequence[RunId]:
        """Runs of which something is said."""
        ...

    async def withdraw(self, run_id: RunId) -> None: ...
