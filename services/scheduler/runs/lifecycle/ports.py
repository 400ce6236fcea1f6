"""Stores of runs, and the notices about their states."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from proctor.values.comparison import Decision
from proctor.values.run import RunCounts, RunId
from services.scheduler.audit.audit_record import Author
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.runs.lifecycle.run import PlannedTask, Run, RunFinish
from services.scheduler.runs.lifecycle.run_labels import LabelChange
from services.scheduler.runs.orders.run_gate import RunGate


class RunStore(Protocol):
    """Runs, as users submit, read, stop and delete them; results may still store deleted ones.

    A change and its author are stored in one transaction.
    """

    async def add(
        self,
        run: Run,
        request_id: str,
        base: Run | None = None,
        gate: RunGate | None = None,
        *,
        digest: bytes = b"",
    ) -> Run:
        """Stores the run and, in the same transaction, its `base` and gate; or returns the run of the user's
        first call with this id. `digest` is that of what the call sent.

        Raises `RequestIdTaken` if that call ordered something else; `QueueFull` or `PriorityNotAllowed`
        by the limits of this moment, `ProjectFull` or `ProjectBudgetUsed` by those of its project.
        """
        ...

    async def repeated(self, request_id: str, user: str, digest: bytes) -> Run | None:
        """The run of the user's first call with this id, if that sent the same; None else."""
        ...

    async def get(self, run_id: RunId) -> Run:
        """Raises `RunNotFound`."""
        ...

    async def among(self, run_ids: Sequence[RunId]) -> Sequence[Run]:
        """Those of them that are stored, in any order."""
        ...

    async def cancel(self, run_id: RunId, author: Author) -> Run | None:
        """Returns None if the run's state does not allow it."""
        ...

    async def requeue(self, run_id: RunId, author: Author) -> Run | None:
        """Makes the run pending in a new epoch, with at most the priority that its user may have now.

        Returns None if its state does not allow it. Raises `QueueFull`, and `RunOfBatch` for a batch's run.
        """
        ...

    async def pause(self, run_id: RunId, author: Author) -> Run | None:
        """Takes the run's slot or its position in the queue. Returns None if its state does not allow it."""
        ...

    async def resume(self, run_id: RunId, author: Author) -> Run | None:
        """Makes the run pending in this epoch, with at most the priority that its user may have now.

        Returns None if it was not paused.
        """
        ...

    async def label(self, run_id: RunId, change: LabelChange, author: Author) -> None:
        """Raises `RunNotFound`, and `InvalidParameter` for labels against the rules."""
        ...

    async def planned_tasks(self, run_id: RunId) -> tuple[PlannedTask, ...]: ...

    async def delete(self, run_id: RunId, author: Author) -> None:
        """Raises `RunNotFound`, `RunStillActive`, `RunNotClosed` or `BatchFilesUnwritten`."""
        ...

    async def deleted(self, before: datetime) -> Sequence[RunId]:
        """Runs deleted before a time that results may still store, earliest first."""
        ...

    async def postpone_deleted(self, run_id: RunId, now: datetime) -> None:
        """Restart the wait before the run's removal, as if it had been deleted only now."""
        ...

    async def delete_deletion(self, run_id: RunId) -> None:
        """Called once results has deleted the run."""
        ...


class LedRunStore(Protocol):
    """Runs, as the leader changes them. Writes raise `LeadershipLost` once another scheduler leads.

    A write for a run that has left its epoch or state changes nothing and returns False.
    """

    async def expired(self, now: datetime) -> Sequence[Run]:
        """Pending and paused runs whose completion window is over."""
        ...

    async def trace(self, run_id: RunId) -> str:
        """The trace that the run was ordered in, as traceparent; empty where it is not traced."""
        ...

    async def to_drive(self) -> Sequence[RunId]:
        """Runs that are running, or finished and not closed."""
        ...

    async def open_among(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        """The runs among them that are not yet closed in a final state, pending and paused ones included."""
        ...

    async def set_phase(self, token: FencingToken, run: Run, phase: str, *, is_closing: bool = False) -> bool:
        """Sets both of a running run; False if it is no longer running. A run that is closing has no slot."""
        ...

    async def stop(self, token: FencingToken, run: Run, decision: Decision) -> bool:
        """Stores why a running run stops early. It is closing from then on; False if it was before."""
        ...

    async def finish(self, token: FencingToken, run: Run, finish: RunFinish) -> bool:
        """Brings the run into its final state; a finish with counts closes it as well."""
        ...

    async def mark_closed(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None: ...


class RecordDeletion(Protocol):
    async def delete_run(self, run_id: RunId) -> None:
        """Makes results delete the run. Repeatable."""
        ...


class RecordArchive(Protocol):
    async def archive_run(self, run_id: RunId) -> bool:
        """Makes results move some answers of the run to the object store; True once all are there."""
        ...

    async def restore_run(self, run_id: RunId) -> bool:
        """Makes results move some answers of the run back; True once none is in the object store."""
        ...


class ArtifactDeletion(Protocol):
    async def delete(self, run_id: RunId) -> None:
        """Deletes what workers stored of the rollouts of a deleted run. What fails is collected later."""
        ...


class RunControls(Protocol):
    """Notifies workers, watchers and the leader of a run's state. A lost notice is repeated later."""

    async def announce(self, run: Run) -> None:
        """Called after the state has changed. A final state is withdrawn by itself after a while."""
        ...

    async def refresh(self, run: Run) -> None:
        """Stores the state for workers again, in case the bucket was wiped."""
        ...
